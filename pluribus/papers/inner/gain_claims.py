"""The claims of the paper about variance gains, and the rules by which figure 2 judges them."""

import math

from ..recipe import Found
from ..verdicts import Verdict, is_decreasing, judge_claim

DEEP_COPIES, DEEP_KEEP = 4, 0.5
"""The sizes of the networks of several layers."""


def take_one_layer(found: Found, method: str) -> dict[float, float]:
    """The gains of drawn networks of one layer, by size."""
    return {point["size"]: point["drawn"] for point in found[method]["points"] if point["layers"] == 1}


def take_depths(found: Found, method: str) -> dict[int, float]:
    """The gains of drawn networks at the sizes of deep networks, by the number of layers."""
    size = DEEP_KEEP if "dropout" in method else DEEP_COPIES
    return {point["layers"]: point["drawn"] for point in found[method]["points"] if point["size"] == size}


def is_near(value: float, expected: float, tolerance: float) -> bool:
    return abs(value / expected - 1) <= tolerance


def judge(found: Found) -> list[Verdict]:
    return [*judge_inner(found), *judge_dropout(found), *judge_maxout(found), judge_exact_values(found)]


def judge_inner(found: Found) -> list[Verdict]:
    one, deep, started = take_one_layer(found, "inner"), take_depths(found, "inner"), take_depths(found, "eq. 10")
    last = max(started)
    return [
        judge_claim(
            "An IEN layer has 1/m of the variance of an ordinary layer (eqs. 6 and 19).",
            "within 3 % of 1/m at every m; direction: it falls with m",
            list_numbers(one, "m"),
            all(is_near(value, 1 / m, 0.03) for m, value in one.items()),
            is_decreasing(list(one.values())),
        ),
        judge_claim(
            "With equal variances of weights, L layers have 1/m^(L−1) (eqs. 1 and 8).",
            "within 10 % at every depth, m = 4, ReLU; direction: it falls with depth",
            list_numbers(deep, "L − 1"),
            all(is_near(value, DEEP_COPIES**-layers, 0.1) for layers, value in deep.items()),
            is_decreasing(list(deep.values())),
        ),
        judge_claim(
            "With the initialisation of eq. 10 responses neither grow nor shrink.",
            "within 10 % of 1 at every depth, m = 4, ReLU; direction: from 0.5 to 2",
            list_numbers(started, "L − 1"),
            all(is_near(value, 1, 0.1) for value in started.values()),
            all(0.5 <= value <= 2 for value in started.values()),
        ),
        judge_claim(
            "IENs reduce the variance of an ordinary deep model by a factor of 1/m^(L−1) (abstract).",
            "as IENs are initialised (eq. 10), against an ordinary network as Kaiming He et al. initialise it: within 10 % of "
            "1/m^(L−1) at every depth, m = 4; direction: at the greatest depth at most 0.9",
            list_numbers(started, "L − 1"),
            all(is_near(value, DEEP_COPIES**-layers, 0.1) for layers, value in started.items()),
            started[last] <= 0.9,
        ),
    ]


def judge_dropout(found: Found) -> list[Verdict]:
    inner = {m: value for m, value in take_one_layer(found, "inner").items() if m > 2}
    masked, inverted = take_one_layer(found, "dropout"), take_one_layer(found, "inverted dropout")
    half = masked[DEEP_KEEP]
    return [
        judge_claim(
            "Dropout has at most ½ of the variance (eqs. 13 and 14).",
            "at most 0.515 at every p; direction: within 3 % of ½ at p = ½",
            list_numbers(masked, "p"),
            all(value <= 0.515 for value in masked.values()),
            is_near(half, 0.5, 0.03),
        ),
        judge_claim(
            "An IEN of more than two copies has less variance than dropout (section 3.3).",
            "less at every m above 2 than dropout at every p; direction: than dropout at p = ½",
            f"IEN: {list_numbers(inner, 'm')}; dropout: {list_numbers(masked, 'p')}",
            max(inner.values()) < min(masked.values()),
            max(inner.values()) < half,
        ),
        judge_claim(
            "Not in the paper: inverted dropout, which is PyTorch's, multiplies the variance by 1/p.",
            "within 3 % of 1/p at every p; direction: more than 1 at every p",
            list_numbers(inverted, "p"),
            all(is_near(value, 1 / p, 0.03) for p, value in inverted.items()),
            all(value > 1 for value in inverted.values()),
        ),
    ]


def judge_maxout(found: Found) -> list[Verdict]:
    inner, one, deep = take_one_layer(found, "inner"), take_one_layer(found, "maxout"), take_depths(found, "maxout")
    products = {m: value * math.log(m) for m, value in one.items()}
    ratios = {m: math.pi**2 / (12 * math.log(m)) / value for m, value in one.items()}
    layers = take_depths(found, "inner")
    bounded = all(value <= m for m, value in one.items())
    return [
        judge_claim(
            "Maxout has at most m times the variance, m^(L−1) in L layers (eqs. 16 and 17).",
            "at most m at every m, and at most 4^(L−1) at every depth; direction: in one layer",
            f"{list_numbers(one, 'm')}; {list_numbers(deep, 'L − 1')}",
            bounded and all(value <= DEEP_COPIES**depth for depth, value in deep.items()),
            bounded,
        ),
        judge_claim(
            "The variance of maxout might explode with depth (section 3.4).",
            "it grows with every layer, m = 4, ReLU, and is above 1 in the deepest network; direction: above that of IEN at "
            "every depth",
            list_numbers(deep, "L − 1"),
            is_decreasing([-value for value in deep.values()]) and deep[max(deep)] > 1,
            all(value > layers[depth] for depth, value in deep.items()),
        ),
        judge_claim(
            "One layer of maxout has at least c / ln m, with some c > 0 (eq. 18).",
            "variance · ln m is at least 0.45 at every m (0.4725 is the largest c that holds for all m); direction: at least "
            "0.3",
            list_numbers(products, "m"),
            min(products.values()) >= 0.45,
            min(products.values()) >= 0.3,
        ),
        judge_claim(
            "One layer of maxout has about π² / (12 ln m) (eqs. 20 and 21).",
            "π² / (12 ln m) is within 10 % of the variance at every m of the figure; direction: at the largest m",
            f"divided by the variance: {list_numbers(ratios, 'm')}",
            all(is_near(ratio, 1, 0.1) for ratio in ratios.values()),
            is_near(ratios[max(ratios)], 1, 0.1),
        ),
        judge_claim(
            "An IEN layer has less variance than a maxout layer (section 3.5).",
            "at every m; direction: at the largest m",
            f"IEN ÷ maxout: {list_numbers({m: inner[m] / one[m] for m in one}, 'm')}",
            all(inner[m] < one[m] for m in one),
            inner[max(one)] < one[max(one)],
        ),
    ]


def judge_exact_values(found: Found) -> Verdict:
    points = [point for cell in found.values() for point in cell["points"]]
    off = max(abs(point["drawn"] - point["exact"]) / point["error"] for point in points)
    return judge_claim(
        "Not in the paper: the exact values of pluribus.analysis are those of drawn networks.",
        "within 4 standard errors at every point; direction: within 10 %",
        f"{len(points)} points, at most {off:.1f} standard errors off",
        off <= 4,
        all(is_near(point["drawn"], point["exact"], 0.1) for point in points),
    )


def list_numbers(values: dict[float, float] | dict[int, float], name: str) -> str:
    """A text of values by a size.

    >>> list_numbers({2: 0.5, 4: 0.25}, "m")
    '0.5 at m = 2, 0.25 at m = 4'
    """
    return ", ".join(f"{value:.3g} at {name} = {size:g}" for size, value in values.items())


def list_findings(found: Found) -> list[str]:
    """Return sentences about what the figure says beyond the paper."""
    started, deep = take_depths(found, "eq. 10"), take_depths(found, "inner")
    last = max(started)
    return [
        "Eq. 10 gives every copy m times the variance, so the mean of the copies is an ordinary layer as Kaiming He et al. "
        f"start it: {last} layers of IENs have {started[last]:.2f} times the variance of an ordinary network, and not the "
        f"{deep[last]:.3g} times of copies with ordinary variance. The variance reduction of the abstract is that of an "
        "initialisation which the paper does not use.",
        "½ is the gain of dropout at p = ½. The gain is p, or 1/p where what is kept is divided by p, as PyTorch does it.",
    ]
