"""How far members are apart, and whether that tells what they have never seen."""

from typing import Any

from ..columns import DOUBTS, is_regression
from ..palette import style
from ..reading import Value, counted, read, sentence
from .model import Figure, Numbers, Panel, Trace, View, bars, extremes, guide, layout, marker, named, plain, points


def diversity(results: dict[str, Any]) -> Figure | None:
    return _of_regression(results) if is_regression(results) else _of_classification(results)


def _of_classification(results: dict[str, Any]) -> Figure | None:
    found = _pairs(results, ("diversity", "disagreement"), ("member_scores", "accuracy"))
    if not found:
        return None
    methods = results["methods"]
    data = []
    for i, x, y in found:
        whole = read(methods[i], "scores", "accuracy")
        together = f"<br>together {sentence(whole, 'percent')}" if whole else ""
        hover = f"members disagree on {sentence(x, 'percent')}<br>one member alone {sentence(y, 'percent')}{together}"
        data.append(points(i, methods[i]["name"], x, y, hover, (True, True)))
    alt = (
        f"Scatter plot of {counted(len(found), 'method')}: two members disagree on "
        f"{extremes([(methods[i]['name'], x) for i, x, _ in found], 'percent')} of the rows; one member alone is right in "
        f"{extremes([(methods[i]['name'], y) for i, _, y in found], 'percent')}."
    )
    scores = [
        ("disagreement", ("diversity", "disagreement"), "percent"),
        ("disagreement by error", ("diversity", "normalised_disagreement"), "small"),
        ("pairwise KL", ("diversity", "pairwise_kl"), "small"),
        ("correlation of errors", ("diversity", "error_correlation"), "small"),
        ("one member's accuracy", ("member_scores", "accuracy"), "percent"),
        ("accuracy together", ("scores", "accuracy"), "percent"),
    ]
    return Figure(
        "diversity",
        "Diversity against the skill of a member",
        "Right: members disagree more often. Up: one member alone is more often right. Averaging gains from disagreement among "
        "good members, not from bad ones. " + bars([v for _, x, y in found for v in (x, y)]),
        [
            Panel(
                [
                    View(
                        alt, data, layout("one member's accuracy, %", {"title": named("rows on which two members disagree, %")})
                    )
                ],
                labels=True,
            )
        ],
        [_numbers(methods, scores)],
        key=[i for i, _, _ in found],
    )


def _of_regression(results: dict[str, Any]) -> Figure | None:
    found = _pairs(results, ("member_scores", "rmse"), ("scores", "rmse"))
    if not found:
        return None
    methods = results["methods"]
    data: list[Trace] = []
    for i, x, y in found:
        hover = f"one member alone {sentence(x, 'small')}<br>together {sentence(y, 'small')}"
        data.append(points(i, methods[i]["name"], x, y, hover, (False, False)))
    ends = [v.value for _, x, y in found for v in (x, y)]
    reach = [min(ends), max(ends)]
    alt = (
        f"Scatter plot of {counted(len(found), 'method')}: RMSE of one member alone, "
        f"{extremes([(methods[i]['name'], x) for i, x, _ in found], 'small')}, against RMSE together, "
        f"{extremes([(methods[i]['name'], y) for i, _, y in found], 'small')}."
    )
    scores = [
        ("one member's RMSE", ("member_scores", "rmse"), "small"),
        ("RMSE together", ("scores", "rmse"), "small"),
        ("squared error together", ("diversity", "bias"), "small"),
        ("variance among members", ("diversity", "variance"), "small"),
    ]
    return Figure(
        "diversity",
        "What members gain together",
        "Below the dashed diagonal the average answers better than one of its members alone; the distance to it is what their "
        "variance brings. " + bars([v for _, x, y in found for v in (x, y)]),
        [
            Panel(
                [View(alt, [guide(reach, reach), *data], layout("RMSE together", {"title": named("one member's RMSE")}))],
                labels=True,
            )
        ],
        [_numbers(methods, scores)],
        key=[i for i, _, _ in found],
    )


def _pairs(results: dict[str, Any], x: tuple[str, ...], y: tuple[str, ...]) -> list[tuple[int, Value, Value]]:
    """A single network has no diversity: it is left out rather than drawn at zero."""
    read_both = ((i, read(m, *x), read(m, *y)) for i, m in enumerate(results["methods"]) if m.get("members") != 1)
    return [(i, a, b) for i, a, b in read_both if a is not None and b is not None]


def _numbers(methods: list[dict[str, Any]], scores: list[Any]) -> Numbers:
    scores = [entry for entry in scores if any(read(method, *entry[1]) for method in methods)]
    rows = [[m["name"], *(sentence(v, kind) if (v := read(m, *path)) else "–" for _, path, kind in scores)] for m in methods]
    return Numbers(["method", *(title for title, _, _ in scores)], rows)


def detection(results: dict[str, Any]) -> Figure | None:
    methods = results["methods"]
    sets = list(dict.fromkeys(name for method in methods for name in method.get("ood") or {}))
    doubts = [d for d in DOUBTS if any(read(m, "ood", name, "auroc", d) for m in methods for name in sets)]
    if not doubts:
        return None
    present = [i for i, method in enumerate(methods) if method.get("ood")]
    rows = [
        [
            m["name"],
            name,
            d.replace("-", " "),
            *(sentence(v, "percent") if (v := read(m, "ood", name, s, d)) else "–" for s in ("auroc", "fpr95")),
        ]
        for m in methods
        for name in sets
        for d in doubts
        if read(m, "ood", name, "auroc", d)
    ]
    values = [read(m, "ood", name, "auroc", d) for m in methods for name in sets for d in doubts]
    return Figure(
        "ood",
        "Telling foreign rows from known ones",
        "For each foreign set, the chance that one of its rows looks less sure than a test row (AUROC): 50 % is guessing, "
        "100 % tells all apart. " + bars(values),
        [Panel([_lollipops(methods, present, sets, d) for d in doubts], height=90 + len(sets) * (30 + 16 * len(present)))],
        [Numbers(["method", "set", "sure by", "AUROC", "FPR at 95 % TPR"], rows)],
        question="sure by",
        choices=[d.replace("-", " ") for d in doubts],
        key=present,
    )


def _lollipops(methods: list[dict[str, Any]], present: list[int], sets: list[str], doubt: str) -> View:
    """One thin bar from chance for each method and set, with the method's own symbol at its end."""
    band = len(present) + 2
    data, best = [], []
    for place, index in enumerate(present):
        at = [(len(sets) - 1 - s) * band + len(present) - place for s in range(len(sets))]
        found = [read(methods[index], "ood", name, "auroc", doubt) for name in sets]
        known = [(y, v, name) for y, v, name in zip(at, found, sets, strict=True) if v is not None]
        if not known:
            continue
        token = style(index).token
        stems: Trace = {"type": "scatter", "mode": "lines", "hoverinfo": "skip", "meta": {"method": index}}
        stems |= {
            "x": [x for _, v, _ in known for x in (50, 100 * v.value, None)],
            "y": [e for y, _, _ in known for e in (y, y, None)],
        }
        stems |= {"line": {"color": token, "width": 2}, "opacity": 0.5}
        dots: Trace = {"type": "scatter", "mode": "markers", "name": plain(methods[index]["name"]), "meta": {"method": index}}
        dots |= {"x": [100 * v.value for _, v, _ in known], "y": [y for y, _, _ in known], "marker": marker(index, 10)}
        dots["text"] = [f"{plain(name)}: AUROC {sentence(v, 'percent')}" for _, v, name in known]
        dots["hovertemplate"] = "<b>%{fullData.name}</b><br>%{text}<extra></extra>"
        if all(v.reach for _, v, _ in known):
            ends = [v.reach or (v.value, v.value) for _, v, _ in known]
            dots["error_x"] = {"type": "data", "symmetric": False, "thickness": 1.4, "width": 3, "color": token}
            dots["error_x"]["array"] = [
                100 * max(0.0, high - v.value) for (_, high), (_, v, _) in zip(ends, known, strict=True)
            ]
            dots["error_x"]["arrayminus"] = [
                100 * max(0.0, v.value - low) for (low, _), (_, v, _) in zip(ends, known, strict=True)
            ]
        data += [stems, dots]
        best += [(f"{methods[index]['name']} on {name}", v) for _, v, name in known]
    names = [
        {"x": 0, "xref": "paper", "xanchor": "left", "y": (len(sets) - s) * band - 0.6, "yanchor": "middle", "showarrow": False}
        | {"text": f"<b>{plain(name)}</b>", "font": {"size": 12, "color": "@ink"}, "bgcolor": "@paper"}
        for s, name in enumerate(sets)
    ]
    y = {"range": [0, len(sets) * band], "showticklabels": False, "showgrid": False}
    alt = f"AUROC by {doubt.replace('-', ' ')} on {counted(len(sets), 'foreign set')}: {extremes(best, 'percent')}."
    shown = layout("AUROC, %", {"nticks": 7}, y, annotations=names, margin={"l": 10, "r": 14, "t": 34, "b": 30})
    line = {"color": "@muted", "width": 1, "dash": "dot"}
    shown["shapes"] = [{"type": "line", "yref": "paper", "x0": 50, "x1": 50, "y0": 0, "y1": 1, "line": line, "layer": "below"}]
    return View(alt, data, shown)
