import pytest
import torch
from torch import nn

from pluribus.models.registry import MODELS, ModelError, build, choose_default_model


@pytest.mark.parametrize("name", [name for name in MODELS if name != "wrn-28-10"])
def test_every_network_answers_for_its_classes(name):
    options = {"wrn": {"depth": 10, "width": 1}, "densenet": {"depth": 10}, "vgg": {"width": 0.1}}.get(name, {})
    net = build(name, (1, 32, 32), 7, **options)
    assert net.eval()(torch.randn(2, 1, 32, 32)).shape == (2, 7)


def test_options_reach_the_network():
    assert build("mlp", (4,), 3, hidden=(5,))[1].out_features == 5
    blocks = [build("wrn", (3, 32, 32), 10, depth=10, width=1, shortcut=kind)[1][0] for kind in ("raw", "preactivated")]
    assert [block.preactivated for block in blocks] == [False, True]


@pytest.mark.parametrize(
    ("shape", "name"),
    [((13,), "tabular"), ((5000,), "mlp"), ((1, 8, 8), "small-cnn"), ((1, 28, 28), "lenet5"), ((3, 32, 32), "resnet20")],
)
def test_each_kind_of_data_has_a_network_to_begin_with(shape, name):
    assert choose_default_model(shape) == name
    assert build(name, shape, 10)(torch.randn(2, *shape)).shape == (2, 10)


def test_ones_own_factory_takes_what_it_needs_of_the_data(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own_nets.py").write_text(
        "from torch import nn\n"
        "def build(inputs, outputs, width=8):\n"
        "    return nn.Sequential(nn.Flatten(), nn.Linear(inputs, width), nn.Linear(width, outputs))\n"
        "def fixed():\n"
        "    return nn.Linear(4, 2)\n"
    )
    assert build("own_nets:build", (1, 8, 8), 10, width=3)[1].out_features == 3
    assert isinstance(build("own_nets:fixed", (4,), 2), nn.Linear)
    with pytest.raises(ModelError, match="has no option 'depth'; it has: width"):
        build("own_nets:build", (4,), 2, depth=3)


@pytest.mark.parametrize(
    ("name", "shape", "options", "message"),
    [
        ("lenet", (1, 28, 28), {}, "did you mean 'lenet5'"),
        ("lenet5", (4,), {}, "takes images.*choose tabular, mlp"),
        ("lenet5", (1, 8, 8), {}, "at least 16×16"),
        ("resnet", (3, 32, 32), {"depth": 21}, "depth must be 6n"),
        ("resnet20", (3, 32, 32), {"depth": 8}, "resnet20 has no option 'depth'"),
        ("nowhere:build", (4,), {}, "cannot import 'nowhere'"),
    ],
)  # fmt: skip
def test_what_cannot_be_built_is_said(name, shape, options, message):
    with pytest.raises(ModelError, match=message):
        build(name, shape, 10, **options)


def test_a_list_of_sizes_may_be_a_list_or_a_tuple():
    sizes = [[layer.out_features for layer in build("mlp", (4,), 2, hidden=hidden) if isinstance(layer, nn.Linear)]
             for hidden in ([8, 6], (8, 6))]  # fmt: skip
    assert sizes == [[8, 6, 2], [8, 6, 2]]
