"""Results as text: tables of a run, a grid, an evaluation and a comparison, for a terminal or a `repr`."""

import io
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from ..analysis.score_names import AMOUNTS, SCORE_NAMES, SHARES, format_score
from ..core.files import NOT_FINITE, restore_number
from ..core.terminal import assemble_text, create_console
from ..core.texts import format_amount
from ..runs.run_folder import FEW_STEPS
from .equivalents import format_equivalents

ENDED = ("done", "stopped early")
"""The states of runs that came to their end; a trial of a tuning may be stopped early."""


def make_score_table(values: dict[str, float]) -> Table:
    table = Table(show_header=False)
    for name, value in values.items():
        table.add_row(SCORE_NAMES.get(name, name), format_score(name, value))
    return table


def render_text(show: Callable[[Console], None], width: int = 100) -> str:
    """Return the text that `show` prints, without colours."""
    file = io.StringIO()
    show(create_console(file=file, width=width, force_terminal=False, force_jupyter=False, no_color=True))
    return "\n".join(line.rstrip() for line in file.getvalue().splitlines())


def print_run(result: dict[str, Any], path: Path, consent: str = "") -> None:
    """Print the scores of a trained run, where it is, and the next commands; `consent` are the options that these need."""
    console = create_console()
    if result["scores"]:
        console.print(assemble_text((result["title"], "bold"), f", {result['split']} rows"))
        console.print(make_score_table(result["scores"]))
        if result.get("not_finite"):
            print_not_finite(result["not_finite"], None, console)
    epochs = f"{result['epochs']} epoch{'s' if result['epochs'] != 1 else ''}"
    console.print(f"{epochs}, {result['seconds']:.0f} s. The run is in {path}", soft_wrap=True)
    if result.get("steps", FEW_STEPS) < FEW_STEPS:
        console.print(f"the run took only {result['steps']} steps: more --epochs may help", style="yellow")
    if result.get("still_improving"):
        text = "the validation score was still improving when the learning rate fell: more epochs (--max-epochs) may help"
        console.print(text, style="yellow")
    following = f"next: pluribus evaluate {path}{consent}  ·  pluribus predict {path} FILES{consent}"
    console.print(following, style="dim", soft_wrap=True)


def print_not_finite(count: int, rows: int | None, console: Console) -> None:
    """Print that so many rows have no finite answer, so that the scores are no numbers."""
    whole = "" if rows is None else f" of {rows:,}"
    text = f"{count:,}{whole} rows have no finite answer (NaN or infinite): scores over them are no numbers"
    console.print(text, style="yellow", highlight=False)


def print_evaluation(result: dict[str, Any], console: Console | None = None) -> None:
    """Print the scores of a run, and what else was measured of it."""
    console = console or create_console()
    rows = f" on {result['data']}, {result['split']}, {result['rows']:,} rows"
    console.print(assemble_text((result["title"], "bold"), rows))
    tempered, members = result["tempered"], result["member_scores"]
    several = result["members"] > 1
    table = Table("score", "value", "95 % interval")
    if several:
        table.add_column("a member")
    if tempered:
        table.add_column(f"T = {tempered['temperature']:.2f}")
    for name, value in result["scores"].items():
        low, high = result["intervals"].get(name, (None, None))
        interval = "" if low is None else f"{format_score(name, low)} – {format_score(name, high)}"
        row = [SCORE_NAMES.get(name, name), format_score(name, value), interval]
        if several:
            row.append(format_score(name, members[name]) if name in members else "")
        if tempered:
            row.append(format_score(name, tempered[name]) if name in tempered else "")
        table.add_row(*row)
    console.print(table)
    if result.get("not_finite"):
        print_not_finite(result["not_finite"], result["rows"], console)
    facts: dict[str, str] = {}
    if "noise" in result:
        noise = result["noise"]
        if noise is None:
            facts["noise in the targets"] = "not known: no validation rows"
        else:
            how = "as the members predict it" if result.get("is_noise_predicted") else "by validation rows"
            facts["noise in the targets"] = f"{format_amount(noise)} ({how})" if math.isfinite(noise) else NOT_FINITE
    if several:
        facts |= {SCORE_NAMES.get(name, name): format_score(name, value) for name, value in result["diversity"].items()}
    if result.get("shift"):
        shift = result["shift"]
        facts |= {
            SCORE_NAMES[n]: format_score(n, shift[n]) for n in ("cacc", "cnll", "cece", "mce") if shift.get(n) is not None
        }
    for name, found in result.get("ood", {}).items():
        for by, value in found["auroc"].items():
            facts[f"AUROC, {name}, by {by}"] = f"{format_score('auroc', value)}, FPR95 {format_share(found['fpr95'][by])}"
    if result.get("attack"):
        attack, one = result["attack"], result["attack"]["one_sample"]
        facts[attack["title"]] = f"succeeds on {format_share(attack['final'])}" + (
            f" (through one draw {format_share(one['final'])})" if one else ""
        )
    if result.get("cost"):
        cost = result["cost"]
        latency = cost["latency"]
        facts["latency"] = f"{latency['value']:.2f} × one network ({latency['low']:.2f} – {latency['high']:.2f})"
        facts["memory of an answer"] = f"{cost['memory']:.2f} ×"
        facts["parameters"] = f"{cost['parameters']:.2f} × trained, {cost['deployed_parameters']:.2f} × deployed"
        if cost["deployed_flops"] is not None and cost["training_flops"] is not None:
            facts["FLOPs"] = f"{cost['training_flops']:.2f} × in training, {cost['deployed_flops']:.2f} × deployed"
    if facts:
        more = Table(show_header=False)
        for name, text in facts.items():
            more.add_row(name, text)
        console.print(more)


def make_grid_table(states: list[dict[str, Any]]) -> Table:
    """Return a table with a row for each run: method, seed, state and last scores."""
    names = list(dict.fromkeys(name for state in states for name in state["scores"]))
    table = Table()
    for column in ("method", "seed", "state"):
        table.add_column(column)
    for name in names:
        table.add_column(SCORE_NAMES.get(name, name), justify="right")
    table.add_column("s", justify="right")
    for state in states:
        cells = [format_score(name, state["scores"][name]) if name in state["scores"] else "" for name in names]
        seconds = f"{state['seconds']:.0f}" if "seconds" in state else ""
        table.add_row(state["method"], str(state["seed"]), state["state"], *cells, seconds)
    return table


def print_grid(grid: Any, states: list[dict[str, Any]]) -> None:
    """Print the table of a finished grid and where it is."""
    console = create_console()
    console.print(make_grid_table(states))
    console.print(f"The grid is in {grid.path}: grid.csv is this table", soft_wrap=True)


def make_progress_table(states: list[dict[str, Any]], now: str = "") -> Table:
    """Return a table with a row for each method: how many of its runs are done, and their mean scores so far."""
    names = list(dict.fromkeys(name for state in states for name in state["scores"]))
    done = sum(state["state"] in ENDED for state in states)
    noun = "trials" if any("run" in state for state in states) else "runs"
    table = Table(caption=now or f"{done} of {len(states)} {noun} done", caption_justify="left")
    table.add_column("method", overflow="fold")
    table.add_column(noun, no_wrap=True)
    for name in names:
        table.add_column(SCORE_NAMES.get(name, name), justify="right", no_wrap=True)
    table.add_column("s", justify="right")
    for method in dict.fromkeys(state["method"] for state in states):
        own = [state for state in states if state["method"] == method]
        scores = {name: [state["scores"][name] for state in own if name in state["scores"]] for name in names}
        busy = [state["state"] for state in own if state["state"] not in (*ENDED, "waiting")]
        ended = sum(state["state"] in ENDED for state in own)
        cells = [
            format_score(name, sum(map(restore_number, values)) / len(values)) if values else ""
            for name, values in scores.items()
        ]
        seconds = [state["seconds"] for state in own if "seconds" in state]
        table.add_row(
            method,
            f"{ended}/{len(own)}" + (f"  {busy[0]}" if busy else ""),
            *cells,
            f"{sum(seconds) / len(seconds):.0f}" if seconds else "",
        )
    return table


def print_comparison(results: dict[str, Any], path: Path | None = None, console: Console | None = None) -> None:
    """Print the table, the recommendation, and, of a comparison with a folder, where the page is."""
    console = console or create_console()
    main = "accuracy" if results["data"]["task"] == "classification" else "rmse"
    has_calibrated = all("calibrated_nll" in method["scores"] for method in results["methods"])
    third = "calibrated_nll" if has_calibrated else "ece" if main == "accuracy" else "crps"
    names, short = [main, "nll", third], ("ece", "nll") if has_calibrated else ("ece",)
    has_equivalents = any(method.get("equivalents") for method in results["methods"])
    seeds = f"{len(results['seeds'])} seed{'s' * (len(results['seeds']) != 1)}"
    console.print(assemble_text((results["title"], "bold"), f", equal {results['budget']['text']}, {seeds}"))
    table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)  # narrow: it must fit 80 columns
    table.add_column("method", overflow="fold")
    for name in names:
        title = {"accuracy": "acc %", "ece": "ECE %", "calibrated_nll": "cal. NLL"}.get(name, SCORE_NAMES.get(name, name))
        table.add_column(title, justify="right", no_wrap=True)
    for title in ("worth" if has_equivalents else "kept %", "latency", "weights"):
        table.add_column(title, justify="right", no_wrap=True)
    for method in results["methods"]:
        scores = [format_mean(name, method["scores"][name], short=name in short) for name in names]
        table.add_row(method["name"], *scores, *format_gain_and_cost(method, has_equivalents))
    console.print(table)
    text = "± is the standard deviation over seeds. "
    if has_calibrated:
        text += "Calibrated NLL is at the best temperature (of a regression, noise), fitted on other rows. "
    if has_equivalents:
        text += "Worth is how many independent networks have as low a calibrated NLL, with its 95 % interval. "
    else:
        text += "Kept is the part of the deep ensemble's NLL gain over one network, with its 95 % interval. "
    text += "Latency and deployed weights are ratios to one network."
    console.print(text + (" Before a slash: stored weights." if has_equivalents else ""), style="dim")
    print_tuning(results, console)
    for each in results["recommendation"]:
        limit, choice = each["limit"].capitalize(), each["method"] or "one plain network"
        console.print(assemble_text(f"• {limit}: ", (choice, "bold"), f". {each['text']}"))
    for note in results["notes"]:
        console.print(note, style="yellow")
    if path is not None:
        console.print(f"The page: {path / 'report.html'}", soft_wrap=True)


def print_tuning(results: dict[str, Any], console: Console) -> None:
    """Print what tuning chose for each method and what it brought, if the comparison is tuned."""
    from ..reports.tuning_table import explain_tuning, make_tuning_table

    found = make_tuning_table(results)
    if found is None:
        return
    table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
    for place, title in enumerate(("method", "trials", "chosen", "before", "after")):
        table.add_column(title, overflow="fold", justify="right" if place > 2 else "left")
    for row in found["rows"]:
        table.add_row(*row)
    console.print(table)
    console.print(explain_tuning(results), style="dim")


def format_share(value: float) -> str:
    """Return a share as a percentage with one decimal."""
    return f"{100 * value:.1f} %" if math.isfinite(value) else NOT_FINITE


def format_mean(name: str, number: dict[str, Any], short: bool = False) -> str:
    """Return the mean and, unless `short`, its standard deviation over seeds."""
    if not math.isfinite(restore_number(number["mean"])):
        return NOT_FINITE
    scale, digits = (100, 1) if name in SHARES else (1, 3)
    if name in ("nll", "calibrated_nll") and abs(number["mean"]) < 0.1:
        digits = 4
    if name in AMOUNTS and abs(number["mean"]) >= 999.5:
        digits = 0
    more = f" ±{scale * number['std']:.{digits}f}" if len(number["seeds"]) > 1 and not short else ""
    return f"{scale * number['mean']:.{digits}f}{more}"


def format_gain_and_cost(method: dict[str, Any], as_equivalents: bool = False) -> list[str]:
    """Return the equivalents, or the share of the deep ensemble's gain, the latency and the parameters of a method."""
    share, cost, equivalents = method["share"], method["cost"], method.get("equivalents")
    kept = ""
    if as_equivalents:
        kept = format_equivalents(equivalents) if equivalents else ""
    elif share is not None:
        value, low, high = (f"{100 * share[key]:.0f}" for key in ("value", "low", "high"))
        kept = "100" if share["low"] == share["high"] == 1 else f"{value} ({low} to {high})" if share["value"] > -1 else "worse"
    if not cost:
        return [kept, "", ""]
    stored, deployed = f"{cost['parameters']:.2f}", f"{cost['deployed_parameters']:.2f}"
    weights = f"{stored}/{deployed}" if as_equivalents and stored != deployed else deployed
    return [kept, f"{cost['latency']['value']:.2f}", weights]
