"""The sweeps for as long as one likes, with new examples in every round: `make fuzz`, or `make fuzz MINUTES=5`.

Every round is a run of pytest with a seed of its own. Findings do not stop it; at the end each class of them is printed with an
example, and with the seed that shows it again: `PLURIBUS_FUZZ=findings.jsonl pytest tests/sweeps --hypothesis-seed=SEED`.
"""

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from .findings import name_class

HERE = Path(__file__).parent


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--seed", type=int, default=None, help="the seed of the first round; the next ones follow it")
    parser.add_argument("--only", default="", help="an expression that chooses tests, as pytest's -k")
    options = parser.parse_args()
    seed = random.SystemRandom().randrange(2**31) if options.seed is None else options.seed
    end = time.monotonic() + 60 * options.minutes
    found: dict[str, list[dict[str, str]]] = {}
    broken = []
    rounds = 0
    while time.monotonic() < end:
        findings, code, tail = run_round(seed, end - time.monotonic(), options.only)
        for finding in findings:
            each = found.setdefault(name_class(finding["complaint"]), [])
            if not each:
                print(f"\nnew, seed {seed}: {finding['example']}\n{finding['complaint']}", flush=True)
            each.append(finding | {"seed": str(seed)})
        if code not in (0, None):
            broken.append(seed)
            print(f"\nthe round of seed {seed} failed:\n{tail}", flush=True)
        rounds, seed = rounds + 1, seed + 1
        left = max(0.0, (end - time.monotonic()) / 60)
        print(
            f"round {rounds} (seed {seed - 1}): {len(findings)} findings, {len(found)} classes; {left:.0f} min left", flush=True
        )
    print(f"\n{rounds} rounds, {sum(map(len, found.values()))} findings in {len(found)} classes")
    for name, each in sorted(found.items(), key=lambda item: -len(item[1])):
        print(f"{len(each):5} × {name}\n        {each[0]['example']} (seed {each[0]['seed']})")
    return 1 if found or broken else 0


def run_round(seed: int, seconds: float, only: str) -> tuple[list[dict[str, str]], int | None, str]:
    """The findings of one round, the exit code of pytest (None if time was up), and the end of what it printed."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "findings.jsonl")
        words = [sys.executable, "-m", "pytest", str(HERE), f"--hypothesis-seed={seed}", "-n", "0", "-p", "no:cacheprovider"]
        words += [f"--basetemp={folder}/work", *(["-k", only] if only else [])]
        environment = os.environ | {"PLURIBUS_FUZZ": str(path), "OMP_NUM_THREADS": "1"}
        try:
            done = subprocess.run(words, env=environment, capture_output=True, text=True, timeout=seconds + 5, check=False)
            code, tail = done.returncode, done.stdout[-3000:] + done.stderr[-1000:]
        except subprocess.TimeoutExpired:
            code, tail = None, ""
        lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    return [json.loads(line) for line in lines if line.endswith("}")], code, tail


if __name__ == "__main__":
    sys.exit(main())
