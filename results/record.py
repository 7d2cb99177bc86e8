"""Run the recorded comparisons on real data, and show them in the README.

    python results/record.py                 run what is missing (hours), and keep what is there
    python results/record.py mnist-fast      these alone
    python results/record.py --readme        only the README, from the recorded JSON

Each comparison goes to runs/<name> and can be stopped at any time; its results.json, .csv, .md and picture.svg are copied here.
"""

import argparse
import json
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from pluribus.core.files import write_file
from pluribus.reports import format_markdown

HERE = Path(__file__).parent
ROOT = HERE.parent
METHODS = (
    "single,inner,maxout:copies=2,variance,variational-dropout,mc-dropout,multihead,mimo,treenet,batch-ensemble,mixture,"
    "deep-ensemble:members=2,of=mimo,deep-ensemble"
)
PHOTOS = "single,mimo,multihead,deep-ensemble"
"""On CIFAR-10, where a run takes minutes. Methods that are added at the end are added to what is recorded."""
TABLES = (
    "--recipe fast-table --epochs auto --max-epochs 300 --tune 3 --seeds 5 --distil single "
    "--methods single,variance,mc-dropout,multihead,mimo,batch-ensemble,mixture,mixture:of=mimo,deep-ensemble"
)
COMPARISONS = {
    "cifar10-fast": (
        "--data cifar10 --recipe fast --model fast-cnn:width=0.5 --tune 3 --seeds 3 --corruptions standard --shift-rows 500 "
        f"--ood svhn --distil single,multihead:members=4 --methods {PHOTOS}"
    ),
    "cifar10-few": (
        "--data cifar10 --rows 6000 --validation 0.1667 --recipe fast --model fast-cnn:width=0.5 --epochs 120 --warmup 4 "
        "--tune 3 --seeds 3 --corruptions standard --shift-rows 500 --ood svhn --distil single "
        "--student epochs=360,mixup=1,teacher_weight=1,teacher_members=one --methods single,deep-ensemble"
    ),
    "cifar10-long": (
        "--data cifar10 --recipe fast --model fast-cnn:width=0.5 --epochs 24 --seeds 3 --corruptions standard --shift-rows 500 "
        "--ood svhn --distil single,multihead:members=4 --student epochs=72,mixup=1,teacher_weight=1 "
        "--methods single,deep-ensemble"
    ),
    "mnist-fast": (
        f"--data mnist --recipe fast-mnist --rows 6000 --methods {METHODS} --distil single,multihead:members=4 --tune 3 "
        "--seeds 3 --ood fashion-mnist,kmnist"
    ),
    "uci-concrete": f"--data uci-concrete {TABLES}",
    "uci-energy": f"--data uci-energy {TABLES}",
}
RECORDED = ("results.json", "results.csv", "results.md", "picture.svg")
BEGIN, END = "<!-- recorded results: make results -->", "<!-- end of recorded results -->"


def record_comparison(name: str, options: str) -> None:
    """Run what is missing of a comparison, and copy its results here."""
    folder = ROOT / "runs" / name
    words = shlex.split(options)
    asked = f"{options} --out runs/{name}"
    if (folder / "compare.yaml").is_file():  # what it lacks is added
        asked = f"--resume runs/{name} --methods {words[words.index('--methods') + 1]}"
    subprocess.run([sys.executable, "-m", "pluribus", "compare", *shlex.split(asked)], check=True, cwd=ROOT)
    copy_results(name, folder)


def copy_results(name: str, folder: Path) -> None:
    """Copy the results of a comparison from its folder to this one."""
    (HERE / name).mkdir(exist_ok=True)
    for file in RECORDED:
        shutil.copyfile(folder / file, HERE / name / file)


GOAL_COST, GOAL_NETWORKS, GOAL_SHARE = 1.05, 2.0, 0.8


def describe_goal(results: dict[str, Any]) -> str:
    """How near the methods come to our goal: the FLOPs of one network, the worth of two, most of an ensemble's gain."""
    cheap = [
        method
        for method in results["methods"]
        if method["name"] != "single" and method["cost"]["deployed_flops"] <= GOAL_COST and method["equivalents"]
    ]
    text = (
        f"The goal on CIFAR-10 is a method that answers at no more than {GOAL_COST:g} times the FLOPs of one network, is worth "
        f"at least {GOAL_NETWORKS:g} networks, and keeps {GOAL_SHARE:.0%} of a deep ensemble's gain."
    )
    if not cheap:
        return f"{text} No method here is so cheap."
    best = max(cheap, key=lambda method: (method["equivalents"]["value"], (method["share"] or {"value": -1.0})["value"]))
    found, share = best["equivalents"], best["share"]
    worth = "less than 1" if found["below"] else f"{found['value']:.1f}"
    kept = "none of the gain" if share is None or share["value"] <= 0 else f"{share['value']:.0%} of the gain"
    met = not found["below"] and found["value"] >= GOAL_NETWORKS and share is not None and share["value"] >= GOAL_SHARE
    return (
        f"{text} It is {'met' if met else 'missed'}: of these, {best['name']} comes nearest, worth {worth} "
        f"({found['low']:.1f} to {found['high']:.1f}) networks, and keeps {kept}."
    )


def format_section() -> str:
    """The recorded results as the README shows them."""
    parts = [BEGIN]
    for name in COMPARISONS:
        place = HERE / name / "results.json"
        if not place.is_file():
            continue
        results = json.loads(place.read_text(encoding="utf-8"))
        title = f"{results['title']}, {results['data']['train']:,} training rows"
        text = format_markdown(results).replace(f"# {results['title']}", f"### {title}", 1).strip()
        picture = f"![{title}: what methods are worth in networks, against latency](results/{name}/picture.svg)"
        parts += ["", text, "", *([describe_goal(results), ""] if name.startswith("cifar10") else []), picture]
    return "\n".join([*parts, "", END])


def update_readme() -> None:
    """Replace the recorded results in the README."""
    place = ROOT / "README.md"
    text = place.read_text(encoding="utf-8")
    before, rest = text.split(BEGIN)
    write_file(place, before + format_section() + rest.split(END)[1])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help=f"the comparisons to run: {', '.join(COMPARISONS)} [all]")
    parser.add_argument("--readme", action="store_true", help="only the README, from what is recorded")
    asked = parser.parse_args()
    for name in [] if asked.readme else asked.names or COMPARISONS:
        record_comparison(name, COMPARISONS[name])
    update_readme()
