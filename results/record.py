"""Run the recorded comparisons on real data, and show them in docs/results.md and README.md.

    python results/record.py                 run what is missing (hours), and keep what is there
    python results/record.py mnist-fast      these alone
    python results/record.py --readme        only these pages, from the recorded JSON
    python results/record.py --pack cifar10-methods   keep the finished runs of a comparison that was stopped

Each comparison goes to runs/<name> and can be stopped at any time; its results.json, .csv, .md and picture.svg are copied here.
A large one is recorded in stages: results/<name>/runs holds its finished runs without their weights, so that a copy of the
repository on another machine adds methods to it, or computes its intervals again, without training what is there.
"""

import argparse
import io
import json
import shlex
import shutil
import statistics
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Any

import torch
from scipy.stats import t as students_t

from pluribus.comparison.equivalents import find_equivalents
from pluribus.core.files import write_file
from pluribus.reports import format_markdown
from pluribus.reports.table_columns import COSTS, EQUIVALENTS, SHARE, Column
from pluribus.reports.values import format_estimate, format_spread

HERE = Path(__file__).parent
ROOT = HERE.parent
METHODS = (
    "single,inner,maxout:copies=2,variance,variational-dropout,mc-dropout,multihead,mimo,treenet,batch-ensemble,mixture,"
    "deep-ensemble:members=2,of=mimo,deep-ensemble"
)
PHOTOS = "single,mimo,multihead,deep-ensemble"
"""On CIFAR-10, where a run takes minutes. Methods that are added at the end are added to what is recorded."""
STAGES = (
    "single,deep-ensemble,mimo,multihead",
    "mc-dropout,deep-ensemble:members=2,of=mimo,treenet",
    "batch-ensemble,treenet:of=mc-dropout",
    "mixture,variance",
    "variational-dropout,maxout:copies=2,inner",
)
"""Every method and two combinations, in the order in which they are recorded."""
TABLES = (
    "--recipe fast-table --epochs auto --max-epochs 300 --tune 3 --seeds 5 --distil single "
    "--methods single,variance,mc-dropout,multihead,mimo,batch-ensemble,mixture,mixture:of=mimo,deep-ensemble"
)
COMPARISONS = {
    "cifar10-fast": (
        "--data cifar10 --recipe fast-sgd --model fast-cnn:width=0.5 --tune 3 --seeds 3 --corruptions standard "
        f"--shift-rows 500 --ood svhn --distil single,multihead:members=4 --methods {PHOTOS}"
    ),
    "cifar10-muon": (
        "--data cifar10 --recipe fast --validation 0 --seeds 3 --ood svhn --methods single,multihead,deep-ensemble"
    ),
    "cifar10-few": (
        "--data cifar10 --rows 6000 --validation 0.1667 --recipe fast-sgd --model fast-cnn:width=0.5 --epochs 120 --warmup 4 "
        "--tune 3 --seeds 3 --corruptions standard --shift-rows 500 --ood svhn --distil single "
        "--student epochs=360,mixup=1,teacher_weight=1,teacher_members=one --methods single,deep-ensemble"
    ),
    "cifar10-methods": (
        "--data cifar10 --rows 6000 --validation 0.1667 --recipe fast-sgd --model fast-cnn:width=0.5 --epochs 40 --warmup 2 "
        "--tune 3 --seeds 3 --corruptions standard --shift-rows 500 --ood svhn --distil single "
        f"--student epochs=120,mixup=1,teacher_weight=1,teacher_members=one --methods {','.join(STAGES)}"
    ),
    "cifar10-wide": (
        "--data cifar10 --rows 6000 --validation 0.1667 --recipe fast --epochs 40 --warmup 4 --tune 3 --seeds 3 "
        "--corruptions standard --shift-rows 500 --ood svhn --distil single "
        "--student epochs=360,warmup=36,mixup=1,teacher_weight=1,teacher_members=one "
        "--methods single,deep-ensemble,mimo,multihead"
    ),
    "cifar10-all": (  # every method where one network fits its rows, by the recipe that all of them share from now on
        "--data cifar10 --rows 6000 --validation 0.1667 --recipe fast --precision bf16-mixed --epochs 40 --warmup 4 --tune 3 "
        "--seeds 3 --corruptions standard --shift-rows 500 --ood svhn --distil single "
        f"--student epochs=120,warmup=12,mixup=1,teacher_weight=1,teacher_members=one --methods {','.join(STAGES)}"
    ),
    "cifar10-alone": (  # what the student of cifar10-wide is without its teacher: its length, its inputs and its decay
        "--data cifar10 --rows 6000 --validation 0.1667 --recipe fast --epochs 360 --warmup 36 --mixup 1 --weight-decay 0.015 "
        "--seeds 3 --corruptions standard --shift-rows 500 --ood svhn --methods single"
    ),
    "cifar10-trained": (  # networks that have their training, and a student of theirs that has no more
        "--data cifar10 --rows 6000 --validation 0.1667 --recipe fast --epochs 120 --warmup 12 --mixup 1 --weight-decay 0.015 "
        "--seeds 3 --corruptions standard --shift-rows 500 --ood svhn --distil single "
        "--student teacher_weight=1,teacher_members=one --methods single,deep-ensemble,mimo:members=2,batch_repetition=2"
    ),
    "cifar10-long": (
        "--data cifar10 --recipe fast-sgd --model fast-cnn:width=0.5 --epochs 24 --seeds 3 --corruptions standard "
        "--shift-rows 500 --ood svhn --distil single,multihead:members=4 --student epochs=72,mixup=1,teacher_weight=1 "
        "--methods single,deep-ensemble"
    ),
    "mnist-fast": (
        f"--data mnist --recipe fast-mnist --rows 6000 --methods {METHODS} --distil single,multihead:members=4 --tune 3 "
        "--seeds 3 --ood fashion-mnist,kmnist"
    ),
    "uci-concrete": f"--data uci-concrete {TABLES}",
    "uci-energy": f"--data uci-energy {TABLES}",
}
PACKED = "runs"
RECORDED = ("results.json", "results.csv", "results.md", "picture.svg")
LEFT_OUT = {"checkpoints", "weights.safetensors", "weights.json", ".lock", "report.html", *RECORDED}
BEGIN, END = "<!-- recorded results: make results -->", "<!-- end of recorded results -->"


def record_comparison(name: str, options: str) -> None:
    """Run what is missing of a comparison, and copy its results here after each of its stages."""
    folder, packed = ROOT / "runs" / name, HERE / name / PACKED
    if packed.is_dir() and not folder.exists():
        unpack_runs(packed, folder)
    stages = list_stages(options)
    for stage in stages:
        words = shlex.split(stage)
        asked = [*words, "--out", f"runs/{name}"]
        if (folder / "compare.yaml").is_file():  # what it lacks is added
            asked = ["--resume", f"runs/{name}", "--methods", words[words.index("--methods") + 1]]
        subprocess.run([sys.executable, "-m", "pluribus", "compare", *asked], check=True, cwd=ROOT)
        copy_results(name, folder)
        update_pages()
        if len(stages) > 1:
            pack_runs(folder, packed)


def list_stages(options: str) -> list[str]:
    """The options of each stage of a comparison: a large one has more methods in each."""
    whole = ",".join(STAGES)
    if not options.endswith(f" {whole}"):
        return [options]
    return [options.removesuffix(whole) + ",".join(STAGES[:count]) for count in range(1, len(STAGES) + 1)]


def pack_runs(folder: Path, packed: Path) -> None:
    """Put the records of a comparison into archives: one for each judged run, which stays as it is, and one for the rest.

    Weights, checkpoints, runs that are not judged yet, and what `compare` writes at its end are left out.
    """
    packed.mkdir(parents=True, exist_ok=True)
    files = [place.relative_to(folder) for place in sorted(folder.rglob("*")) if place.is_file()]
    kept = [file for file in files if not LEFT_OUT.intersection(file.parts)]
    runs = {file.parts[0] for file in kept if len(file.parts) == 2 and file.name == "judgement.json"}
    for run in sorted(runs):
        if not (packed / f"{run}.tar.xz").is_file():
            write_archive(packed / f"{run}.tar.xz", folder, [file for file in kept if file.parts[0] == run])
    plan = [file for file in kept if len(file.parts) == 1 or file.parts[0] == "tuning"]
    write_archive(packed / "plan.tar.xz", folder, plan)


def write_archive(place: Path, folder: Path, files: list[Path]) -> None:
    """Write files of a folder into an archive, without the names of a machine."""
    with io.BytesIO() as stream:
        with tarfile.open(fileobj=stream, mode="w:xz", preset=9) as archive:
            for file in files:
                archive.add(folder / file, file.as_posix(), filter=forget_owner)
        write_file(place, stream.getvalue())


def forget_owner(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    """An entry of an archive without the names of a machine."""
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = ""
    return entry


def unpack_runs(packed: Path, folder: Path) -> None:
    """Lay out the records of a comparison as they were packed."""
    for place in sorted(packed.glob("*.tar.xz")):
        with tarfile.open(place, mode="r:xz") as archive:
            archive.extractall(folder, filter="data")


def copy_results(name: str, folder: Path) -> None:
    """Copy the results of a comparison from its folder to this one."""
    (HERE / name).mkdir(exist_ok=True)
    for file in RECORDED:
        shutil.copyfile(folder / file, HERE / name / file)


GOAL_COST, GOAL_NETWORKS, GOAL_SHARE = 1.05, 2.0, 0.8


def list_cheap(results: dict[str, Any]) -> list[dict[str, Any]]:
    """The methods whose answer costs no more than the goal allows."""
    return [
        method
        for method in results["methods"]
        if method["name"] != "single" and method["cost"]["deployed_flops"] <= GOAL_COST and method["equivalents"]
    ]


def rank_worth(method: dict[str, Any]) -> tuple[float, float]:
    """What a method is worth in networks, and then the share of the gain that it keeps."""
    return method["equivalents"]["value"], (method["share"] or {"value": -1.0})["value"]


def describe_goal(results: dict[str, Any]) -> str:
    """How near the methods come to our goal: the FLOPs of one network, the worth of two, most of an ensemble's gain."""
    cheap = list_cheap(results)
    text = (
        f"The goal on CIFAR-10 is a method that answers at no more than {GOAL_COST:g} times the FLOPs of one network, is worth "
        f"at least {GOAL_NETWORKS:g} networks, and keeps {GOAL_SHARE:.0%} of a deep ensemble's gain."
    )
    if not cheap:
        return f"{text} No method here is so cheap."
    best = max(cheap, key=rank_worth)
    found, share = best["equivalents"], best["share"]
    worth = "less than 1" if found["below"] else f"{found['value']:.1f}"
    kept = "none of the gain" if share is None or share["value"] <= 0 else f"{share['value']:.0%} of the gain"
    met = not found["below"] and found["value"] >= GOAL_NETWORKS and share is not None and share["value"] >= GOAL_SHARE
    return (
        f"{text} It is {'met' if met else 'missed'}: of these, {best['name']} comes nearest, worth {worth} "
        f"({found['low']:.1f} to {found['high']:.1f}) networks, and keeps {kept}."
    )


TAUGHT, CONTROL, MOST = "cifar10-wide", "cifar10-alone", 2 / 3


def describe_control(taught: dict[str, Any], alone: dict[str, Any]) -> str:
    """How much of a student's gain over one network the same training without a teacher has.

    The rule: length and mixed inputs alone explain the gain in calibrated NLL if they have at least two thirds of it; they do
    not if they have at most a third; between them they explain a part.
    """

    def find(results: dict[str, Any], is_student: bool) -> list[float]:
        rows = [
            each for each in results["methods"] if each["name"].startswith("single") and ("←" in each["name"]) == is_student
        ]
        return list(map(float, rows[0]["scores"]["calibrated_nll"]["seeds"]))

    taught_by, control = find(taught, True), find(alone, False)
    single, student, without = map(statistics.mean, (find(taught, False), taught_by, control))
    share = (single - without) / (single - student)
    verdict = "explain it" if share >= MOST else "do not explain it" if share <= 1 - MOST else "explain a part of it"
    curve = torch.tensor([size["value"] for size in taught["reference_curve"]["nll"]])
    worth, below, _ = find_equivalents(curve, torch.tensor(without))
    low, high = t_interval([alone - own for alone, own in zip(control, taught_by, strict=True)])
    return (
        f"The student's length, inputs and decay without a teacher (results/cifar10-alone) give {without:.4f}, {share:.0%} of "
        f"its gain over one network: length and mixed inputs alone {verdict}. Such a network is worth "
        f"{'less than 1' if below else f'{worth:.1f}'} of the shorter ones. The student is {without - student:.3f} better than "
        f"it ({low:.3f} to {high:.3f} over {len(control)} seeds)."
    )


def read_control() -> str:
    """`describe_control` of what is recorded."""
    taught, alone = (json.loads((HERE / name / "results.json").read_text(encoding="utf-8")) for name in (TAUGHT, CONTROL))
    return describe_control(taught, alone)


def t_interval(values: list[float]) -> tuple[float, float]:
    """The 95 % interval of a mean, by Student's t."""
    reach = float(students_t.ppf(0.975, len(values) - 1)) * statistics.stdev(values) / len(values) ** 0.5
    return statistics.mean(values) - reach, statistics.mean(values) + reach


def format_section() -> str:
    """The recorded results as docs/results.md shows them."""
    parts = [BEGIN]
    for name in COMPARISONS:
        place = HERE / name / "results.json"
        if not place.is_file() or name == CONTROL:  # that one is a sentence under the comparison which it is for
            continue
        results = json.loads(place.read_text(encoding="utf-8"))
        epochs = results["settings"].get("epochs", results["methods"][0]["epochs"])  # students may have others
        length = "" if epochs == "auto" else f", {epochs:g} epochs"
        used = results["settings"].get("recipe")
        recipe = f", recipe {used}" if used else ""
        title = f"{results['title']}, {results['data']['train']:,} training rows{length}{recipe}"
        text = format_markdown(results).replace(f"# {results['title']}", f"### {title}", 1).strip()
        picture = f"![{title}: what methods are worth in networks, against latency](../results/{name}/picture.svg)"
        parts += ["", text, "", *([describe_goal(results), ""] if name.startswith("cifar10") else [])]
        if name == TAUGHT:
            parts += [read_control(), ""]
        parts.append(picture)
    return "\n".join([*parts, "", END])


def format_known() -> str:
    """For the README: what the best method at the FLOPs of one network is worth in each recorded comparison."""
    heads = ["comparison", "training rows", "method", "worth, networks", "share of gain, %", "latency"]
    lines = ["| " + " | ".join(heads) + " |", "| --- | ---: | --- | ---: | ---: | ---: |"]
    for name in COMPARISONS:
        place = HERE / name / "results.json"
        results = json.loads(place.read_text(encoding="utf-8")) if place.is_file() else {"methods": []}
        if cheap := list_cheap(results):
            best = max(cheap, key=rank_worth)
            cells = [f"[{name}](results/{name}/results.md)", f"{results['data']['train']:,}", best["name"]]
            cells += [format_cell(column, best) for column in (EQUIVALENTS, SHARE, COSTS[0])]
            lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(
        [BEGIN, "", *lines, "", f"In {TAUGHT} the student was trained longer than the others. {read_control()}", "", END]
    )


def format_cell(column: Column, method: dict[str, Any]) -> str:
    """A number with its interval."""
    value = column.read(method)
    if value is None:
        return ""
    beside = format_spread(value, column.kind)
    text = format_estimate(value, column.kind, unit=False) + (f" ({beside})" if beside else "")
    return text.replace("<", "\\<").replace(">", "\\>")


def update_pages() -> None:
    """Replace the recorded results in docs/results.md, and their table in README.md."""
    for place, section in ((ROOT / "docs" / "results.md", format_section()), (ROOT / "README.md", format_known())):
        before, rest = place.read_text(encoding="utf-8").split(BEGIN)
        write_file(place, before + section + rest.split(END)[1])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help=f"the comparisons to run: {', '.join(COMPARISONS)} [all]")
    parser.add_argument("--readme", action="store_true", help="only the pages, from what is recorded")
    parser.add_argument("--pack", action="store_true", help="only keep the finished runs of these")
    asked = parser.parse_args()
    if unknown := [name for name in asked.names if name not in COMPARISONS]:
        parser.error(f"there is no comparison {unknown[0]!r}: it is one of {', '.join(COMPARISONS)}")
    if asked.pack and (missing := [name for name in asked.names if not (ROOT / "runs" / name / "compare.yaml").is_file()]):
        parser.error(f"there is nothing to keep in runs/{missing[0]}: it holds no comparison")
    for name in [] if asked.readme else asked.names or COMPARISONS:
        if asked.pack:
            pack_runs(ROOT / "runs" / name, HERE / name / PACKED)
        else:
            record_comparison(name, COMPARISONS[name])
    update_pages()
