"""The rules of tables and texts: numbers just inside and just outside each threshold give the outcome that the rule states."""

import pytest

from pluribus.papers.variance.discrepancy import mmd, mmd_bound, prediction_bound
from pluribus.papers.variance.theorem_1 import LAYERS, REACHED

from .rules import DIRECTION, NOT, NOT_RUN, REPRODUCED, judge

# --- absolute ---------------------------------------------------------------------------------------------------------


def absolute(one=0.99, many=0.99, relu=0.98, deep=None):
    found = {
        "LeNet-5, MNIST, |·|": {"one": one, "many": many, "rows": 10_000},
        "LeNet-5, MNIST, ReLU": {"one": relu, "many": 0.99, "rows": 10_000},
    }
    return found | ({} if deep is None else {"VGG-like, CIFAR-10, |·|": {"one": 0.9, "many": deep, "rows": 10_000}})


@pytest.mark.parametrize(("many", "outcome"), [(0.99, REPRODUCED), (0.9899, DIRECTION), (0.98, DIRECTION), (0.9799, NOT)])
def test_the_absolute_value_reaches_99_percent(many, outcome):
    assert judge("absolute", absolute(many=many), 0) == outcome


@pytest.mark.parametrize(
    ("one", "relu", "outcome"),
    [
        (0.9852, 0.98, REPRODUCED),  # half widths 0.00238 and 0.00275, together 0.00513
        (0.9851, 0.98, DIRECTION),
        (0.9801, 0.98, DIRECTION),
        (0.98, 0.98, NOT),
        (0.9751, 0.98, NOT),
    ],
)
def test_the_absolute_value_is_better_than_a_relu_beyond_both_intervals(one, relu, outcome):
    assert judge("absolute", absolute(one=one, relu=relu), 1) == outcome


@pytest.mark.parametrize(
    ("deep", "outcome"),
    [
        (None, NOT_RUN),
        (0.9391, DIRECTION),
        (0.9389, REPRODUCED),
        (0.9191, REPRODUCED),
        (0.9189, DIRECTION),
        (0.9, DIRECTION),
        (0.8999, NOT),
    ],
)
def test_the_absolute_value_in_a_vgg_is_within_a_point_of_the_papers(deep, outcome):
    assert judge("absolute", absolute(deep=deep), 2) == outcome


# --- noises -----------------------------------------------------------------------------------------------------------


def noises(gaussian=0.993, bernoulli=0.987, uniform=0.987):
    values = {"gaussian": gaussian, "bernoulli": bernoulli, "uniform": uniform}
    return {noise: {"one": 0.9, "many": many, "by_batch": 0.9} for noise, many in values.items()}


@pytest.mark.parametrize(("gaussian", "outcome"), [(0.99, REPRODUCED), (0.9899, DIRECTION), (0.97, DIRECTION), (0.9699, NOT)])
def test_gaussian_noise_reaches_99_percent(gaussian, outcome):
    assert judge("noises", noises(gaussian), 0) == outcome


@pytest.mark.parametrize("other", ["bernoulli", "uniform"])
@pytest.mark.parametrize(
    ("many", "gaussian", "outcome"),
    [
        (0.9821, 0.993, REPRODUCED),
        (0.9819, 0.993, DIRECTION),
        (0.9919, 0.993, REPRODUCED),
        (0.9921, 0.993, DIRECTION),
        (0.9871, 0.9872, REPRODUCED),
        (0.9872, 0.9872, NOT),
        (0.9873, 0.9872, NOT),
    ],
)
def test_both_other_noises_are_near_the_papers_and_below_gaussian(other, many, gaussian, outcome):
    assert judge("noises", noises(gaussian, **{other: many}), 1) == outcome


# --- table 1 ----------------------------------------------------------------------------------------------------------

KINDS = ("zero-mean", "layer", "neuron", "additive", "weight")


def table_1(elbo=(-1, -2, -3, -4, -5), means=None, averages=None, chance=0.11):
    means = {"zero-mean": 0.1, "layer": 0.1, "neuron": 0.1, "weight": 0.96, "additive": 0.99} | (means or {})
    averages = dict.fromkeys(KINDS, 0.993) | (averages or {})
    return {
        kind: {"elbo": bound, "mean": means[kind], "average": averages[kind], "most_frequent": chance}
        for kind, bound in zip(KINDS, elbo, strict=True)
    }


@pytest.mark.parametrize(
    ("elbo", "outcome"),
    [
        ((-1, -2, -3, -4, -5), REPRODUCED),
        ((-1, -2, -3, -5, -4.9), DIRECTION),
        ((-2, -1.9, -3, -4, -5), DIRECTION),
        ((-1, -3.9, -3, -4, -5), DIRECTION),
        ((-1, -2, -4.1, -4, -5), NOT),
        ((-1, -2, -4, -5, -4), NOT),
        ((-4.1, -2, -3, -4, -5), NOT),
    ],
)
def test_the_simpler_posterior_has_the_better_elbo(elbo, outcome):
    assert judge("table-1", table_1(elbo), 0) == outcome


@pytest.mark.parametrize("kind", ["zero-mean", "layer", "neuron"])
@pytest.mark.parametrize(("mean", "outcome"), [(0.11, REPRODUCED), (0.1101, DIRECTION), (0.4964, DIRECTION), (0.4966, NOT)])
def test_mean_propagation_is_at_chance_for_three_kinds(kind, mean, outcome):
    assert judge("table-1", table_1(means={kind: mean}), 1) == outcome


@pytest.mark.parametrize("kind", ["weight", "additive"])
@pytest.mark.parametrize(("mean", "outcome"), [(0.95, REPRODUCED), (0.9499, DIRECTION), (0.4966, DIRECTION), (0.4964, NOT)])
def test_mean_propagation_works_for_two_kinds(kind, mean, outcome):
    assert judge("table-1", table_1(means={kind: mean}), 2) == outcome


@pytest.mark.parametrize(
    ("averages", "outcome"),
    [
        ({"weight": 0.99}, REPRODUCED),
        ({"weight": 0.9899}, DIRECTION),
        ({"layer": 0.9979}, REPRODUCED),
        ({"layer": 0.9981}, DIRECTION),
        ({"neuron": 0.9831}, DIRECTION),
        ({"neuron": 0.9829}, NOT),
        ({"additive": 1.0, "zero-mean": 0.9901}, DIRECTION),
        ({"additive": 1.0, "zero-mean": 0.9899}, NOT),
    ],
)
def test_averaged_accuracy_is_the_same_for_all_kinds(averages, outcome):
    assert judge("table-1", table_1(averages=averages), 3) == outcome


# --- table 2 ----------------------------------------------------------------------------------------------------------

NETS = ["LeNet-5, MNIST", "VGG-like, CIFAR-10"]


def table_2(net, dropout=0.99, one=0.97, det=0.1, many=0.99, chance=0.11, rows=10_000):
    good = {"one": 0.9, "det": 0.1, "many": 0.95, "most_frequent": 0.11, "rows": 10_000}
    found = {f"{each}, {kind}": dict(good) for each in NETS for kind in ("dropout", "variance")}
    found[f"{net}, dropout"]["many"] = dropout
    found[f"{net}, variance"] = {"one": one, "det": det, "many": many, "most_frequent": chance, "rows": rows}
    return found


@pytest.mark.parametrize("net", NETS)
@pytest.mark.parametrize(("many", "outcome"), [(0.9851, REPRODUCED), (0.9849, DIRECTION), (0.9601, DIRECTION), (0.9599, NOT)])
def test_variance_is_as_accurate_as_dropout(net, many, outcome):
    assert judge("table-2", table_2(net, many=many), 3 * NETS.index(net)) == outcome


@pytest.mark.parametrize("net", NETS)
@pytest.mark.parametrize(("det", "outcome"), [(0.1199, REPRODUCED), (0.1201, DIRECTION), (0.4949, DIRECTION), (0.4951, NOT)])
def test_the_mean_weights_answer_at_chance(net, det, outcome):
    assert judge("table-2", table_2(net, det=det), 3 * NETS.index(net) + 1) == outcome


@pytest.mark.parametrize(
    ("net", "one", "rows", "outcome"),
    [
        # A million rows have narrow intervals: half of the paper's gain, 0.0055 and 0.0105, decides.
        ("LeNet-5, MNIST", 0.98449, 10**6, REPRODUCED),
        ("LeNet-5, MNIST", 0.98451, 10**6, DIRECTION),
        ("VGG-like, CIFAR-10", 0.97949, 10**6, REPRODUCED),
        ("VGG-like, CIFAR-10", 0.97951, 10**6, DIRECTION),
        # With 1,000 rows the two intervals together are 0.0165 wide at 0.9735 and 0.99: a smaller gain is none.
        ("LeNet-5, MNIST", 0.9734, 1000, REPRODUCED),
        ("LeNet-5, MNIST", 0.9736, 1000, NOT),
        ("VGG-like, CIFAR-10", 0.9734, 1000, REPRODUCED),
        ("VGG-like, CIFAR-10", 0.9736, 1000, NOT),
        ("LeNet-5, MNIST", 0.995, 10**6, NOT),
    ],
)
def test_averaging_gains_beyond_its_interval_and_half_of_the_papers_gain(net, one, rows, outcome):
    assert judge("table-2", table_2(net, one=one, rows=rows), 3 * NETS.index(net) + 2) == outcome


def test_cifar_100_is_not_run_without_its_cells():
    assert judge("table-2", table_2(NETS[0]), 6) == NOT_RUN


# --- table 3 ----------------------------------------------------------------------------------------------------------


def table_3(**changes):
    names = {
        "none": "none",
        "conv2": "conv2",
        "bare": "dense1",
        "dense1": "dense1, with BatchNorm",
        "both": "both, with BatchNorm",
    }
    one = {"none": 0.99, "conv2": 0.98, "bare": 0.1, "dense1": 0.98, "both": 0.93}
    many = {"none": 0.994, "conv2": 0.994, "bare": 0.1, "dense1": 0.992, "both": 0.975}
    for key, value in changes.items():
        which, _, name = key.partition("_")
        (one if which == "one" else many)[name] = value
    return {names[name]: {"one": one[name], "many": many[name]} for name in names}


@pytest.mark.parametrize(("one", "outcome"), [(0.9781, REPRODUCED), (0.9779, NOT), (0.9979, REPRODUCED), (0.9981, NOT)])
def test_one_draw_without_biases_is_within_a_point_of_the_papers(one, outcome):
    assert judge("table-3", table_3(one_bare=one), 0) == outcome


@pytest.mark.parametrize(
    ("changes", "outcome"),
    [
        ({}, REPRODUCED),
        ({"many_conv2": 0.9891}, REPRODUCED),
        ({"many_conv2": 0.9889}, DIRECTION),
        ({"many_conv2": 0.9989}, REPRODUCED),
        ({"many_conv2": 0.9991}, DIRECTION),
        ({"many_dense1": 0.9871}, REPRODUCED),
        ({"many_dense1": 0.9869}, DIRECTION),
        ({"many_dense1": 0.9969}, REPRODUCED),
        ({"many_dense1": 0.9971}, DIRECTION),
        ({"many_conv2": 0.9641}, DIRECTION),
        ({"many_conv2": 0.9639}, NOT),
        ({"many_dense1": 0.9641}, DIRECTION),
        ({"many_dense1": 0.9639}, NOT),
    ],
)
def test_one_variance_layer_is_near_the_papers(changes, outcome):
    assert judge("table-3", table_3(**changes), 1) == outcome


@pytest.mark.parametrize(
    ("changes", "outcome"),
    [
        ({}, REPRODUCED),
        ({"many_both": 0.9501}, REPRODUCED),
        ({"many_both": 0.9499, "one_both": 0.92}, DIRECTION),
        ({"many_both": 0.9899}, REPRODUCED),
        ({"many_both": 0.9901}, DIRECTION),
        ({"one_both": 0.9549}, REPRODUCED),
        ({"one_both": 0.9551}, DIRECTION),
        ({"one_both": 0.9749}, DIRECTION),
        ({"one_both": 0.975}, NOT),
        ({"many_both": 0.9921}, NOT),
        ({"many_both": 0.9921, "many_dense1": 0.993}, DIRECTION),
        ({"many_both": 0.992, "many_dense1": 0.993, "many_conv2": 0.992}, NOT),
    ],
)
def test_two_variance_layers_cost_accuracy(changes, outcome):
    assert judge("table-3", table_3(**changes), 2) == outcome


# --- theorem 1 --------------------------------------------------------------------------------------------------------


def theorem_1(reached=(), seen=0.0, ratio=1.0, vacuous=None):
    """`reached` are predictions of the layers at the α of the paper; `ratio` is the smallest bound over the exact value."""
    table = []
    for name, (weights, points) in LAYERS.items():
        for log_alpha in points:
            row = {"layer": name, "log_alpha": log_alpha, "exact": mmd(log_alpha, weights)}
            row |= {"bound": mmd_bound(log_alpha, weights), "prediction": prediction_bound(log_alpha, weights)}
            table.append(row | {"vacuous": row["bound"] >= 2})
    table[0]["bound"] = ratio * table[0]["exact"]
    for row in table:
        place = (row["layer"], row["log_alpha"])
        if reached and place in REACHED:
            row["prediction"] = reached[REACHED.index(place)]
            row["vacuous"] = vacuous is not None and vacuous > REACHED.index(place)
    drawn = [{"seen": 0.5, "exact": 0.5, "error": 0.1}, {"seen": 0.5 + seen, "exact": 0.5, "error": 0.1}]
    return {"theory": {"table": table, "drawn": drawn}}


@pytest.mark.parametrize(("ratio", "outcome"), [(1.0, REPRODUCED), (1.0001, REPRODUCED), (0.9999, NOT)])
def test_the_bound_is_above_the_exact_supremum(ratio, outcome):
    assert judge("theorem-1", theorem_1(ratio=ratio), 0) == outcome


@pytest.mark.parametrize(("seen", "outcome"), [(0.399, REPRODUCED), (-0.399, REPRODUCED), (0.401, NOT), (-0.401, NOT)])
def test_the_supremum_is_attained_within_four_standard_errors(seen, outcome):
    assert judge("theorem-1", theorem_1(seen=seen), 1) == outcome


@pytest.mark.parametrize(
    ("reached", "vacuous", "outcome"),
    [
        ((0.01, 0.001, 0.001), None, REPRODUCED),
        ((0.001, 0.0101, 0.001), None, DIRECTION),
        ((0.001, 0.001, 0.001), 1, DIRECTION),
        ((0.5, 0.5, 0.5), 2, DIRECTION),
        ((0.5, 0.5, 0.5), 3, NOT),
    ],
)
def test_the_means_can_be_dropped_where_probabilities_change_by_at_most_one_point(reached, vacuous, outcome):
    assert judge("theorem-1", theorem_1(reached, vacuous=vacuous), 2) == outcome
