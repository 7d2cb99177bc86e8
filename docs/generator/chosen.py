"""The generated parts of docs/choose.md: what each recorded comparison recommends, and every method in one table."""

import re

from recorded import FLOPS, describe_data, format_cell, format_name, format_worth, read_comparisons
from repository import ROOT

from pluribus.bench.counted_costs import count_relative_costs
from pluribus.core.spec import Spec, list_methods
from pluribus.reports.values import format_value

CHEAP = 1.05
"""FLOPs of an answer, in those of one network, up to which a method counts as free."""
KEEPS = {"predictions": "its answers", "member 0": "in member 0", "weights": "its weights", "other layers": "other layers"}


def format_choices() -> str:
    """For each recorded comparison: what it recommends, and what methods at the cost of one network are worth."""
    parts = []
    for name, results in read_comparisons().items():
        said = [f"- {entry['limit']}: **{entry['method'] or 'one plain network'}**" for entry in results["recommendation"]]
        said = said or ["- No method is recommended: none is better than one network beyond the noise."]
        cheap = [m for m in results["methods"] if FLOPS.read(m) and FLOPS.read(m).value <= CHEAP and m["name"] != "single"]
        cheap.sort(key=lambda method: -method["equivalents"]["value"])
        rows = ["| " + " | ".join([format_name(m), format_cell(m, FLOPS), *format_worth(m)]) + " |" for m in cheap]
        head = [
            "| at the FLOPs of one network | FLOPs | worth, networks | share of gain, % | latency |",
            "| --- |" + " ---: |" * 4,
        ]
        parts.append(
            "\n".join(
                [f"### {name}", "", f"[{describe_data(results)}](../results/{name}/results.md)", "", *said, "", *head, *rows]
            )
        )
    return "\n\n".join(parts)


def format_every_method() -> str:
    """A row for each method: what it is, what it costs on LeNet-5, and what it keeps of a trained network."""
    lines = ["| method | what it does | parameters | FLOPs | keeps of a trained network |", "| --- | --- | ---: | ---: | --- |"]
    for name in list_methods():
        kind = Spec.registry[name]
        about = (kind.__doc__ or "").strip().splitlines()[0]
        costs = [format_value(cost, "ratio") for cost in count_relative_costs(kind())]
        lines.append(f"| [{kind.__name__}](methods/{name}.md) | {about} | {' | '.join(costs)} | {KEEPS[kind.keeps]} |")
    return "\n".join(lines)


def format_specs() -> str:
    """For the reference: the documentation of every spec."""
    return "\n\n".join(f"::: {kind.__module__}.{kind.__name__}" for kind in map(Spec.registry.get, list_methods()) if kind)


def read_known() -> str:
    """The table of README.md with what methods are worth."""
    section = re.search(
        r"<!-- recorded results.*?-->(.*?)<!-- end", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL
    )
    if section is None:
        raise ValueError("README.md has no recorded results between its marks: python results/record.py --readme writes them")
    return section[1].strip().replace("](results/", "](../results/")
