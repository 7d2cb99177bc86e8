"""What a server of an exported file holds, against the file in ONNX Runtime alone; and what folded methods cost there.

    python benchmarks/serving.py [--only latency,load,soak] [--repeats 9] [--seconds 2] [--minutes 10] [--out FOLDER]

Everything runs on one machine, over 127.0.0.1: one process is the server, which computes on one thread, another one sends
requests over N connections, each of which waits for its answer before it sends the next row. `latency` measures the processor
time of runs of ONNX Runtime on one thread, in turns. `load` measures, in turns of `--seconds`, rows a second and processor time
a row, of ONNX Runtime alone with one row and with 64 rows a run, and of the server; ratios are taken within a round. `soak`
sends rows for `--minutes` at a share of the load that was measured before, checks every answer, and reads the server's memory
from its own metrics. What is not measured stays as it was recorded.
"""

import argparse
import asyncio
import json
import os
import random
import re
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from serving_page import write_page

import pluribus
from pluribus import MIMO, Inner, Single
from pluribus.analysis.timing import summarize_ratios
from pluribus.core.files import format_json, write_file
from pluribus.data import Pixels
from pluribus.exporting import load_file
from pluribus.models import lenet5, resnet

PARTS = ("latency", "load", "soak")
NETWORKS = {"ResNet-20": (resnet, (3, 32, 32)), "LeNet-5": (lenet5, (1, 28, 28))}
METHODS = {"single": Single(), "inner": Inner(copies=4), "mimo": MIMO(members=3)}
CONNECTIONS = (1, 8, 32)
TURN_SECONDS = 0.1
"""What one turn of a latency takes of the processor."""
SOAK_CONNECTIONS, SOAK_SHARE = 8, 0.25
WARM_UP = 30.0
"""Seconds of the soak before the memory counts: pools and caches fill up."""


def export(network: str, method: str, folder: Path) -> Path:
    """Write the file of a method on a network, with untrained weights."""
    build, shape = NETWORKS[network]
    file = folder / f"{network}-{method}.onnx"
    torch.manual_seed(0)
    ensemble = pluribus.ensemble(build(), METHODS[method], example=torch.randn(2, *shape)).eval()
    pluribus.export(ensemble, file, example=draw_rows(network, 8), preparation=Pixels((0.5,), (0.25,)))
    return file


def draw_rows(network: str, count: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(0)
    return torch.randint(0, 256, (count, *NETWORKS[network][1]), generator=generator, dtype=torch.uint8)


def prepare_run(file: Path, rows: torch.Tensor) -> Callable[[], dict[str, torch.Tensor]]:
    """One run of ONNX Runtime on one thread, with every answer but those of single members."""
    loaded = load_file(file, threads=1)
    wanted = [name for name in loaded.facts["outputs"] if name != "members"]
    return lambda: loaded.run([rows], wanted)


# --- latency -----------------------------------------------------------------------------------------------------------


def time_turns(runs: dict[str, Callable[[], Any]], repeats: int) -> Iterator[dict[str, float]]:
    """The seconds of the processor that one call of each takes, for each repeat, in which all have a turn in a random order.

    The runs compute on one thread, so on an idle machine this is how long they take; on a busy one the clock of the wall would
    measure who is scheduled when.
    """
    calls = {name: max(1, round(TURN_SECONDS / max(spend(run, 3), 1e-6))) for name, run in runs.items()}
    order = random.Random(0)
    for _ in range(repeats):
        yield {name: spend(runs[name], calls[name]) for name in order.sample(list(runs), len(runs))}


def spend(run: Callable[[], Any], calls: int) -> float:
    """Seconds of the processor for one call."""
    began = time.process_time()
    for _ in range(calls):
        run()
    return (time.process_time() - began) / calls


def measure_latency(folder: Path, repeats: int) -> list[dict[str, Any]]:
    """Milliseconds of the processor for a run of each method, and its ratio to the exported base network."""
    found = []
    for network in NETWORKS:
        files = {method: export(network, method, folder) for method in METHODS}
        for count in (1, 64):
            rows = draw_rows(network, count)
            turns = list(time_turns({name: prepare_run(file, rows) for name, file in files.items()}, repeats))
            base = [turn["single"] for turn in turns]
            for method in METHODS:
                own = [turn[method] for turn in turns]
                ratio = summarize_ratios(own, base)
                found.append(
                    {"network": network, "method": method, "rows": count, "ms": 1000 * statistics.median(own)}
                    | {"ratio": ratio.median, "low": ratio.low, "high": ratio.high}
                )
                print(found[-1], file=sys.stderr)
    return found


# --- the server and its clients ----------------------------------------------------------------------------------------


@contextmanager
def start_server(file: Path) -> Iterator[int]:
    """Run `pluribus serve` in a process of its own, and yield its port."""
    words = [sys.executable, "-m", "pluribus", "serve", str(file), "--port", "0", "--threads", "1"]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        found = re.search(r"http://127\.0\.0\.1:(\d+)", process.stdout.readline())
        if found is None:
            raise SystemExit("the server did not start")
        yield int(found[1])
    finally:
        process.terminate()
        process.wait(60)


def build_requests(rows: torch.Tensor) -> list[bytes]:
    """A request for each row."""
    bodies = [json.dumps({"rows": [row]}).encode() for row in rows.tolist()]
    head = "POST /predict HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n"
    return [head.format(len(body)).encode() + body for body in bodies]


async def send(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, request: bytes) -> tuple[int, bytes]:
    """Send one request over an open connection, and return the status and the body of its answer."""
    writer.write(request)
    head = await reader.readuntil(b"\r\n\r\n")
    length = re.search(rb"content-length: (\d+)", head.lower())
    assert length is not None
    return int(head.split()[1]), await reader.readexactly(int(length[1]))


async def send_many(
    port: int, requests: list[bytes], connections: int, seconds: float, rate: float | None = None, check: Any = None
) -> list[float]:
    """Send requests over so many connections for some seconds, at most `rate` a second; return the seconds that each took."""
    took: list[float] = []
    end = time.perf_counter() + seconds
    pause = 0.0 if rate is None else connections / rate

    async def use_connection(number: int) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        place, due = number, time.perf_counter() + pause * number / connections
        while (began := max(time.perf_counter(), due)) < end:
            await asyncio.sleep(max(0.0, due - time.perf_counter()))
            began = time.perf_counter()
            status, body = await send(reader, writer, requests[place % len(requests)])
            took.append(time.perf_counter() - began)
            if status != 200:
                raise SystemExit(f"the server answered {status}: {body.decode()}")
            if check is not None:
                check(place % len(requests), body)
            place, due = place + connections, max(due + pause, time.perf_counter() - pause)
        writer.close()

    await asyncio.gather(*(use_connection(number) for number in range(connections)))
    return took


def summarize(took: list[float], seconds: float) -> dict[str, float]:
    """Rows a second, and percentiles of the latency in milliseconds."""
    ordered = sorted(took)
    percentiles = {f"p{share}": 1000 * ordered[min(len(ordered) - 1, len(ordered) * share // 100)] for share in (50, 95, 99)}
    return {"rows_per_second": len(took) / seconds} | percentiles


def read_metric(port: int, name: str) -> float:
    """A number of the server's own metrics."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=60) as answer:
        found = re.search(rf"^{name} (\S+)", answer.read().decode(), re.MULTILINE)
    assert found is not None
    return float(found[1])


# --- load --------------------------------------------------------------------------------------------------------------


def count_runs(run: Callable[[], Any], rows: int, seconds: float) -> dict[str, float]:
    """Rows a second of ONNX Runtime alone, and its milliseconds of the processor for a row."""
    began, spent, runs = time.perf_counter(), time.process_time(), 0
    while time.perf_counter() - began < seconds:
        run()
        runs += 1
    answered = runs * rows
    passed, spent = time.perf_counter() - began, time.process_time() - spent
    return {"rows_per_second": answered / passed, "cpu_ms": 1000 * spent / answered}


def count_answers(port: int, requests: list[bytes], connections: int, seconds: float) -> dict[str, float]:
    """The same of the server, with the percentiles of its latency."""
    spent = read_metric(port, "process_cpu_seconds_total")
    took = asyncio.run(send_many(port, requests, connections, seconds))
    spent = read_metric(port, "process_cpu_seconds_total") - spent
    return summarize(took, seconds) | {"cpu_ms": 1000 * spent / len(took)}


def measure_load(folder: Path, rounds: int, seconds: float) -> list[dict[str, Any]]:
    """The server with each number of connections, and ONNX Runtime alone, in turns."""
    found = []
    for network in NETWORKS:
        file = export(network, "mimo", folder)
        rows = draw_rows(network, 64)
        one, many, requests = prepare_run(file, rows[:1]), prepare_run(file, rows), build_requests(rows)
        alone: dict[str, list[dict[str, float]]] = {"1": [], "64": []}
        served: dict[int, list[dict[str, float]]] = {count: [] for count in CONNECTIONS}
        with start_server(file) as port:
            asyncio.run(send_many(port, requests, 8, 1.0))  # warms it up
            for _ in range(rounds):
                alone["1"].append(count_runs(one, 1, seconds))
                alone["64"].append(count_runs(many, 64, seconds))
                for count in CONNECTIONS:
                    served[count].append(count_answers(port, requests, count, seconds))
        middle = {name: find_middle(turns) for name, turns in alone.items()}
        for count, turns in served.items():
            ratios: dict[str, Any] = {}
            for key in ("rows_per_second", "cpu_ms"):
                each = [turn[key] / base[key] for turn, base in zip(turns, alone["1"], strict=True)]
                ratios[key] = {"median": statistics.median(each), "lowest": min(each), "highest": max(each)}
            found.append({"network": network, "connections": count} | find_middle(turns) | {"ratios": ratios, "alone": middle})
            print(found[-1], file=sys.stderr)
    return found


def find_middle(turns: list[dict[str, float]]) -> dict[str, float]:
    """The median of each number over the rounds."""
    return {key: statistics.median(turn[key] for turn in turns) for key in turns[0]}


# --- soak --------------------------------------------------------------------------------------------------------------


def soak(folder: Path, minutes: float, load: list[dict[str, Any]]) -> dict[str, Any]:
    """Send rows for so long, check every answer, and read the memory every ten seconds."""
    network = "LeNet-5"
    file = export(network, "mimo", folder)
    rows = draw_rows(network, 64)
    expected, requests = prepare_run(file, rows)(), build_requests(rows)
    held = max(row["rows_per_second"] for row in load if row["network"] == network)
    wrong = 0

    def check(place: int, body: bytes) -> None:
        nonlocal wrong
        answer = json.loads(body)["answers"][0]
        apart = max(
            abs(p - q) for p, q in zip(answer["probabilities"].values(), expected["probs"][place].tolist(), strict=True)
        )
        wrong += answer["label"] != str(int(expected["label"][place])) or apart > 1e-5

    took, memory = [], []
    rate, slice_seconds = SOAK_SHARE * held, 10.0
    with start_server(file) as port:
        began = time.perf_counter()
        while (passed := time.perf_counter() - began) < 60 * minutes:
            took += asyncio.run(send_many(port, requests, SOAK_CONNECTIONS, slice_seconds, rate, check))
            memory.append(
                {"seconds": passed + slice_seconds, "mib": read_metric(port, "process_resident_memory_bytes") / 2**20}
            )
        seconds = time.perf_counter() - began
    warm = [each["mib"] for each in memory if each["seconds"] > WARM_UP]
    return {
        **{"network": network, "minutes": seconds / 60, "connections": SOAK_CONNECTIONS, "share": SOAK_SHARE, "rate": rate},
        **summarize(took, seconds),
        **{"rows": len(took), "wrong": wrong, "start": warm[0], "end": warm[-1], "highest": max(warm), "memory": memory},
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="latency,load", help="some of latency, load, soak")
    parser.add_argument("--repeats", type=int, default=9, help="turns of the latencies; a third of them for the load")
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results"))
    options = parser.parse_args()
    parts = options.only.split(",")
    if not set(parts) <= set(PARTS):
        parser.error(f"--only must name some of {', '.join(PARTS)}, got {options.only}")
    if options.repeats < 1:
        parser.error(f"--repeats must be at least 1, got {options.repeats}")
    if options.seconds <= 0 or options.minutes <= 0:
        parser.error("--seconds and --minutes must be above 0")
    torch.set_num_threads(1)
    place = options.out / "serving.json"
    results = json.loads(place.read_text()) if place.exists() else {}
    options.out.mkdir(parents=True, exist_ok=True)
    if "soak" in parts and "load" not in parts and "load" not in results:
        parser.error("the soak takes its rate from the load: measure that first, as in --only load,soak")
    with tempfile.TemporaryDirectory() as folder:
        measure: dict[str, Callable[[], Any]] = {
            "latency": lambda: measure_latency(Path(folder), options.repeats),
            "load": lambda: measure_load(Path(folder), max(1, options.repeats // 3), options.seconds),
            "soak": lambda: soak(Path(folder), options.minutes, results["load"]),
        }
        for part in [part for part in PARTS if part in parts]:
            busy = os.getloadavg()[0]
            results[part] = measure[part]()
            results["machine"] = {"processors": os.cpu_count(), "torch": torch.__version__} | {
                "load": results.get("machine", {}).get("load", {}) | {part: busy}
            }
            write_file(place, format_json(results))
            write_file(options.out / "serving.md", write_page(results))


if __name__ == "__main__":
    main()
