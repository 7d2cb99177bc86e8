"""What holds a student of a deep ensemble back on few rows: its training length, its capacity, or the inputs it learns from.

    python results/student_limits.py

reads the runs of `python results/record.py cifar10-few` and writes results/ablations/student-limits.json. Every student learns
from the recorded deep ensemble of its seed. The scores are of 10,000 training images of CIFAR-10 that none of them has seen:

    single     the recorded network, by itself
    teacher    the recorded deep ensemble of four
    student    a network of the same width, taught for 120 epochs on the teacher's rows
    longer     the recorded student, taught for 360 epochs
    wider      twice the width, four times the FLOPs, 120 epochs
    inputs     as many steps as `student`, on 34,000 other images without their labels

The rule: a change that closes at least a third of the gap between `student` and `teacher`, in calibrated NLL averaged over
seeds, holds the student back; one that closes less than a tenth does not; between them it is not decided.
"""

import json
import statistics
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from pluribus.core.ensemble import Ensemble
from pluribus.core.files import write_file
from pluribus.core.saving import save
from pluribus.data.dataset import Data, Part
from pluribus.experiments import Job, run_jobs
from pluribus.metrics import accuracy, calibrated_nll, nll
from pluribus.runs.loading import load_run, load_set, split_rows
from pluribus.runs.run_folder import Run
from pluribus.runs.training import convert_network, load_data
from pluribus.training.fit import fit

HERE = Path(__file__).parent
RUNS = HERE.parent / "runs" / "cifar10-few"
WORK = HERE.parent / "runs" / "student-limits"
SEEDS = (0, 1, 2)
EPOCHS = 120
JUDGED = 10_000
RECORDED = {"single": "single", "teacher": "deep-ensemble", "longer": "single-from-deep-ensemble"}
WIDTHS = {"student": 0.5, "inputs": 0.5, "wider": 1.0}
ENOUGH, TOO_LITTLE = 1 / 3, 1 / 10
Json = dict[str, Any]


def take_unseen(data: Data, seen: Part) -> Part:
    """The training rows that are not among those seen, nor copies of them."""
    known = {image.numpy().tobytes() for image in seen.x}
    return data.train.take_rows(
        torch.tensor([n for n, image in enumerate(data.train.x) if image.numpy().tobytes() not in known])
    )


def split_unseen(seed: int) -> tuple[Data, Part, Part]:
    """The data of a seed's runs, the images that a student may learn from without labels, and those that judge."""
    config = load_run(Run(RUNS / f"single-seed{seed}"))[1]
    data = load_data(config)
    unseen = take_unseen(load_set(config.data, config.data_dir), data.train)
    order = torch.randperm(len(unseen), generator=torch.Generator().manual_seed(seed))
    return data, unseen.take_rows(order[JUDGED:]), unseen.take_rows(order[:JUDGED])


def train_student(folder: str, cell: str, seed: int, threads: int = 1) -> None:
    """Train one student and write its weights and scores; a killed training goes on from its last epoch."""
    torch.set_num_threads(threads)
    place = Path(folder)
    data, foreign, judged = split_unseen(seed)
    config = load_run(Run(RUNS / f"single-from-deep-ensemble-seed{seed}"))[1]
    rows = split_rows(config, data)[0]
    epochs = EPOCHS
    if cell == "inputs":  # fewer epochs of more images, in as many steps
        steps = EPOCHS * (len(rows) // config.batch_size)
        epochs, rows = round(steps / (len(foreign) // config.batch_size)), replace(foreign, y=torch.zeros_like(foreign.y))
    config = config.model_copy(update={"model": {"name": "fast-cnn", "width": WIDTHS[cell]}, "epochs": epochs})
    if cell == "inputs":
        config = config.model_copy(update={"warmup": config.warmup * epochs / EPOCHS})
    student = convert_network(config, data)
    teacher = load_run(Run(RUNS / f"deep-ensemble-seed{seed}"))[0]
    options: Json = {"preparation": data.preparation, "augmentation": config.augment, "progress": False}
    fit(student, rows, folder=place / "checkpoints", resume=True, settings=config, teacher=teacher, **options)
    save(student, place / "weights.safetensors")
    write_scores(place, student.eval(), data, judged)


def score_recorded(folder: str, cell: str, seed: int, threads: int = 1) -> None:
    """Write the scores of a recorded run."""
    data, _, judged = split_unseen(seed)
    write_scores(Path(folder), load_run(Run(RUNS / f"{RECORDED[cell]}-seed{seed}"))[0], data, judged)


def write_scores(place: Path, ensemble: Ensemble, data: Data, judged: Part) -> None:
    p = ensemble.predict(data.preparation(judged.x), batch_size=500)
    scores = {score.__name__: float(score(p, judged.y)) for score in (accuracy, nll, calibrated_nll)}
    place.mkdir(parents=True, exist_ok=True)
    write_file(place / "scores.json", json.dumps(scores).encode())


def judge(closed: float) -> str:
    """What the rule says of a change that closes this share of the gap."""
    return "holds it back" if closed >= ENOUGH else "does not" if closed < TOO_LITTLE else "not decided"


def main() -> None:
    cells = [*RECORDED, *WIDTHS]
    jobs = [
        Job(f"{cell}-{seed}", WORK / f"{cell}-{seed}", call, (str(WORK / f"{cell}-{seed}"), cell, seed))
        for seed in SEEDS
        for cell in cells
        for call in [score_recorded if cell in RECORDED else train_student]
    ]
    unfinished = run_jobs(jobs, "2", is_finished=lambda job: (job.folder / "scores.json").is_file())
    if unfinished:
        sys.exit(f"not finished: {unfinished}")
    found = {cell: [json.loads((WORK / f"{cell}-{seed}" / "scores.json").read_text()) for seed in SEEDS] for cell in cells}
    means = {cell: statistics.mean(scores["calibrated_nll"] for scores in each) for cell, each in found.items()}
    gap = means["student"] - means["teacher"]
    closed = {cell: (means["student"] - means[cell]) / gap for cell in ("longer", "wider", "inputs")}
    content: Json = {
        "command": "python results/student_limits.py",
        "seeds": SEEDS,
        "results": found,
        "calibrated_nll": means,
        "closed": closed,
        "verdicts": {cell: judge(share) for cell, share in closed.items()},
    }
    write_file(HERE / "ablations" / "student-limits.json", (json.dumps(content, indent=1) + "\n").encode())
    print(json.dumps(content["calibrated_nll"] | {"closed": closed} | {"verdicts": content["verdicts"]}, indent=1))


if __name__ == "__main__":
    main()
