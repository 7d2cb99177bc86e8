"""What the pages of methods take from the code: drawing, equation, options, costs, citation, and what was recorded."""

import dataclasses
import inspect
import json
import re
from collections.abc import Callable

from drawings import draw_method
from recorded import list_findings
from repository import ROOT

from pluribus.bench.counted_costs import count_relative_costs
from pluribus.bench.networks import NETWORKS
from pluribus.core.spec import Spec, list_methods
from pluribus.reports.values import format_value

KEEPS = {
    "predictions": "A converted trained network goes on predicting exactly what it did.",
    "member 0": "Of a trained network member 0 predicts exactly what it did; the other members are drawn anew.",
    "weights": "The weights of a trained network are kept, and members or draws scatter about its answers.",
    "other layers": "Of a trained network only the layers are kept that the method does not replace.",
}
BENCHED = ("mlp", "lenet5", "resnet20")
BENCH = ROOT / "benchmarks" / "results" / "bench.json"


def find_method(path: str) -> type[Spec] | None:
    """The spec that a page of the site is about, or None."""
    match = re.fullmatch(r"methods/([\w-]+)\.md", path)
    return Spec.registry.get(match[1]) if match else None


def read_docstring(kind: type[Spec]) -> str:
    """The docstring of a method's module."""
    return inspect.getdoc(inspect.getmodule(kind)) or ""


def format_equation(kind: type[Spec]) -> str:
    """The equations in the docstring of the module, as they stand there."""
    blocks = re.findall(r"(?:^    .*\n?|^\n(?=    ))+", read_docstring(kind), re.MULTILINE)
    said = [inspect.cleandoc(re.sub(r" {4,}\((eq\. \d+)\)", r"   (\1)", block)) for block in blocks if re.search("[=~]", block)]
    return "\n\n".join(f"```{{ .text .wrap }}\n{text}\n```" for text in said)


def format_options(kind: type[Spec]) -> str:
    """A table of the options and their defaults, and what the docstring of the spec says of them."""
    about = inspect.cleandoc(kind.__doc__ or "").partition("\n>>>")[0].strip()
    rows = [f"| `{field.name}` | `{field.default!r}` |" for field in dataclasses.fields(kind)]
    table = ["| option | default |", "| --- | --- |", *rows] if rows else ["There are no options."]
    called = f"`pluribus.{kind.__name__}(…)` in Python, `--method {kind.name}` in a shell."
    return "\n\n".join([about, called, "\n".join(table), KEEPS[kind.keeps]])


def format_costs(kind: type[Spec]) -> str:
    """Parameters and FLOPs, counted now, and time and memory as `make bench` recorded them."""
    parameters, flops = count_relative_costs(kind())
    lines = [
        f"At its defaults on LeNet-5: {format_value(parameters, 'ratio')} the parameters and {format_value(flops, 'ratio')} "
        "the FLOPs of one network for an answer, as deployed. Recorded by `make bench`, as ratios to the base network:",
        "",
        "| network | work | time | memory | FLOPs |",
        "| --- | --- | ---: | ---: | ---: |",
    ]
    rows = json.loads(BENCH.read_text(encoding="utf-8"))["table"]
    for row in rows:
        if row["method"] == kind.name and row["network"] in BENCHED:
            cells = [format_value(value, "ratio") for value in (row["time"]["median"], row["memory"], row["flops"])]
            lines.append(f"| {NETWORKS[row['network']].title} | {row['work']} | {' | '.join(cells)} |")
    if len(lines) == 4:
        return f"{lines[0].partition(' Recorded')[0]} Its time is not recorded yet."
    return "\n".join([*lines, "", "How this is measured, with more networks: [Performance](../performance.md)."])


def format_findings(kind: type[Spec]) -> str:
    """A table of what the method was worth in every recorded comparison that has it."""
    rows = list_findings(kind.name)
    if not rows:
        return "No comparison is recorded yet."
    heads = ["comparison", "training rows", "method", "worth, networks", "share of gain, %", "latency"]
    head = ["| " + " | ".join(heads) + " |", "| --- | ---: | --- | ---: | ---: | ---: |"]
    return "\n".join([*head, *rows, "", "What the columns mean, and all scores: [Recorded results](../results.md)."])


def format_citation(kind: type[Spec]) -> str:
    """The last paragraph of the module's docstring, which cites the papers, and where the code is."""
    paper = " ".join(read_docstring(kind).strip().split("\n\n")[-1].split())
    file = inspect.getsourcefile(kind) or ""
    return f"{paper}\n\nThe code, with departures from the papers: `{file[file.rindex('pluribus/methods') :]}`."


FACTS: dict[str, Callable[[type[Spec]], str]] = {
    "Equation": format_equation,
    "Cost": format_costs,
    "Options": format_options,
    "What was measured": format_findings,
    "Papers": format_citation,
}


def add_facts(text: str, kind: type[Spec]) -> str:
    """The page of a method: its title, the drawing, what was written about it, and then the facts."""
    title, _, prose = text.strip().partition("\n")
    facts = [f"## {heading}\n\n{found}" for heading, write in FACTS.items() if (found := write(kind))]
    return "\n\n".join(part for part in (title, draw_method(kind.name), prose.strip(), *facts) if part) + "\n"


def list_missing_pages(pages: set[str]) -> dict[str, str]:
    """A page with the docstring in place of prose, by its path in the site, for each method that nobody has written one for."""
    missing = [name for name in list_methods() if f"methods/{name}.md" not in pages]
    kinds = {name: Spec.registry[name] for name in missing}
    return {f"methods/{name}.md": f"# {kind.__name__}\n\n{read_docstring(kind)}\n" for name, kind in kinds.items()}
