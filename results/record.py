"""Run the recorded comparisons on real data, and show them in the README.

    python results/record.py            run what is missing (hours), and keep what is there
    python results/record.py --readme   only the README, from the recorded JSON

Each comparison goes to runs/<name> and can be stopped at any time; its results.json, .csv, .md and picture.svg are copied here.
"""

import argparse
import json
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

from pluribus.core.files import write_file
from pluribus.reports import format_markdown

HERE = Path(__file__).parent
ROOT = HERE.parent
COMPARISONS = {
    "mnist-lenet5": "--data mnist --model lenet5 --rows 10000 --epochs 5 --batch-size 64 --seeds 3 --ood fashion-mnist,kmnist",
    "cifar10-small-cnn": (
        "--data cifar10 --model small-cnn --rows 10000 --epochs 6 --batch-size 64 --seeds 3 --corruptions standard "
        "--shift-rows 100 --ood svhn"
    ),
}
RECORDED = ("results.json", "results.csv", "results.md", "picture.svg")
BEGIN, END = "<!-- recorded results: make results -->", "<!-- end of recorded results -->"


def record_comparison(name: str, options: str) -> None:
    """Run what is missing of a comparison, and copy its results here."""
    folder = ROOT / "runs" / name
    new = f"{options} --out {shlex.quote(str(folder.relative_to(ROOT)))}"
    asked = f"--resume runs/{name}" if (folder / "compare.yaml").is_file() else new
    subprocess.run([sys.executable, "-m", "pluribus", "compare", *shlex.split(asked)], check=True, cwd=ROOT)
    copy_results(name, folder)


def copy_results(name: str, folder: Path) -> None:
    """Copy the results of a comparison from its folder to this one."""
    (HERE / name).mkdir(exist_ok=True)
    for file in RECORDED:
        shutil.copyfile(folder / file, HERE / name / file)


def format_section() -> str:
    """The recorded results as the README shows them."""
    parts = [BEGIN]
    for name in COMPARISONS:
        place = HERE / name / "results.json"
        if not place.is_file():
            continue
        results = json.loads(place.read_text(encoding="utf-8"))
        text = format_markdown(results).replace(f"# {results['title']}", f"### {results['title']}", 1).strip()
        picture = f"![{results['title']}: share of the deep ensemble's gain against latency](results/{name}/picture.svg)"
        parts += ["", text, "", picture]
    return "\n".join([*parts, "", END])


def update_readme() -> None:
    """Replace the recorded results in the README."""
    place = ROOT / "README.md"
    text = place.read_text(encoding="utf-8")
    before, rest = text.split(BEGIN)
    write_file(place, before + format_section() + rest.split(END)[1])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--readme", action="store_true", help="only the README, from what is recorded")
    if not parser.parse_args().readme:
        for name, options in COMPARISONS.items():
            record_comparison(name, options)
    update_readme()
