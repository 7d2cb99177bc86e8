"""Calls for the tests of the engine; a worker imports them from here."""

import os
import time
from pathlib import Path

import numpy as np
import torch

KEPT = []


class Stopped(Exception):
    """Stands for a person who stops a job."""


def write_result(folder: str) -> None:
    """Leave a result, and a line for every time that it ran."""
    Path(folder).mkdir(parents=True, exist_ok=True)
    with (Path(folder) / "count.txt").open("a") as file:
        file.write("x")
    (Path(folder) / "result.txt").write_text("done")


def write_result_slowly(folder: str) -> None:
    time.sleep(0.2)
    write_result(folder)


def write_threads(folder: str) -> None:
    write_result(folder)
    (Path(folder) / "threads.txt").write_text(f"{torch.get_num_threads()} {os.getpid()}")


def fail(folder: str) -> None:
    raise ValueError("the value must not be negative")


def stop(folder: str) -> None:
    raise Stopped("stopped")


def die_once(folder: str) -> None:
    """End the process at the first attempt, and leave a result at the next."""
    Path(folder).mkdir(parents=True, exist_ok=True)
    mark = Path(folder) / "died.txt"
    if not mark.exists():
        mark.touch()
        os._exit(9)
    write_result(folder)


def wait_forever(folder: str) -> None:
    Path(folder).mkdir(parents=True, exist_ok=True)
    (Path(folder) / "pid.txt").write_text(str(os.getpid()))
    time.sleep(600)


def draw_numbers(folder: str, seed: int) -> None:
    """Seed the generator of the process and draw from it, with a pause in which another thread could draw."""
    Path(folder).mkdir(parents=True, exist_ok=True)
    torch.manual_seed(seed)
    numbers = []
    for _ in range(20):
        numbers.append(torch.rand(()).item())
        time.sleep(0.002)
    (Path(folder) / "result.txt").write_text(repr(numbers))


def keep_memory(megabytes: int, threads: int = 1) -> None:
    """Hold memory until the process ends, for long enough that joblib looks at it."""
    KEPT.append(np.ones(megabytes << 17))
    time.sleep(1.2)
