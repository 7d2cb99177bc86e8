"""The page of benchmarks/serving.py: its recorded results as Markdown."""

from typing import Any

TARGET = 1.05
"""A folded network should answer in at most so many times the time of the exported base network."""
GROWTH = 0.05
"""Memory is flat if it grows by at most this share of what it was once the server was warm."""


def write_page(results: dict[str, Any]) -> str:
    """What was measured, part by part."""
    busy = ", ".join(f"{part} {value:.1f}" for part, value in results["machine"]["load"].items())
    lines = [
        "# Serving",
        "",
        "`python benchmarks/serving.py` leaves this page and the numbers in `serving.json`. "
        f"{results['machine']['processors']} processors; how many processes wanted them before each part began (the system's "
        f"load average): {busy}.",
        "",
    ]
    if "latency" in results:
        lines += write_latency(results["latency"])
    if "load" in results:
        lines += write_load(results["load"])
    if "soak" in results:
        lines += write_soak(results["soak"])
    return "\n".join(lines)


def write_latency(found: list[dict[str, Any]]) -> list[str]:
    lines = [
        "## ONNX Runtime: folded methods against the base network",
        "",
        "Processor time of a run on one thread, measured in turns; a ratio is the median over turns, in brackets the middle "
        f"half of them. Inner has four copies, MIMO three members. Target: at most {TARGET:.2f}.",
        "",
        "| network | rows | method | ms | ratio | target |",
        "|---|---:|---|---:|---:|---|",
    ]
    for row in found:
        ratio = f"{row['ratio']:.3f} ({row['low']:.3f} to {row['high']:.3f})"
        verdict = "" if row["method"] == "single" else "met" if row["ratio"] <= TARGET else "missed"
        lines.append(f"| {row['network']} | {row['rows']} | {row['method']} | {row['ms']:.2f} | {ratio} | {verdict} |")
    return [*lines, ""]


def write_load(found: list[dict[str, Any]]) -> list[str]:
    lines = [
        "## The server against ONNX Runtime alone",
        "",
        "MIMO with three members. Each connection sends one row of JSON and waits for the answer; server, clients and whatever "
        "else runs share the processors, so rows a second say what was left to them, and processor time what a row takes. "
        "Ratios are to ONNX Runtime alone, one row a run, in the same round; in brackets the lowest and the highest round.",
        "",
        "| network | connections | rows/s | ratio | processor ms a row | ratio | p50 ms | p95 ms | p99 ms |",
        "|---|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for row in found:
        rate, spent = (format_ratio(row["ratios"][key]) for key in ("rows_per_second", "cpu_ms"))
        times = " | ".join(f"{row[name]:.1f}" for name in ("p50", "p95", "p99"))
        own = f"{row['rows_per_second']:.0f} | {rate} | {row['cpu_ms']:.2f} | {spent}"
        lines.append(f"| {row['network']} | {row['connections']} | {own} | {times} |")
    for network, alone in {row["network"]: row["alone"] for row in found}.items():
        for rows, each in alone.items():
            cells = f"{each['rows_per_second']:.0f} | | {each['cpu_ms']:.2f} | | | | |"
            lines.append(f"| {network} | ONNX Runtime alone, {rows} a run | {cells}")
    return [*lines, ""]


def format_ratio(ratio: dict[str, float]) -> str:
    return f"{ratio['median']:.2f} ({ratio['lowest']:.2f} to {ratio['highest']:.2f})"


def write_soak(found: dict[str, Any]) -> list[str]:
    growth = found["end"] / found["start"] - 1
    verdict = "flat" if growth <= GROWTH else "not flat"
    return [
        f"## {found['minutes']:.0f} minutes",
        "",
        f"{found['network']}, {found['connections']} connections of one client process, {100 * found['share']:.0f} % of the "
        f"most rows a second that were measured above ({found['rate']:.0f} asked for, {found['rows_per_second']:.0f} "
        f"answered): {found['rows']:,} rows, {found['wrong']} wrong answers, every other one as ONNX Runtime alone to 1e-5. "
        f"Latency p50 {found['p50']:.1f} ms, p99 {found['p99']:.1f} ms.",
        "",
        f"Resident memory {found['start']:.1f} MiB once warm, {found['end']:.1f} MiB at the end, {found['highest']:.1f} MiB at "
        f"most: {100 * growth:+.1f} %, {verdict} (at most {100 * GROWTH:.0f} %).",
        "",
    ]
