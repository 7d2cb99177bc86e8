"""Exports of networks with several inputs, with masks that are other ones while they are traced, and with odd names."""

import pytest
import torch
from torch import nn

import pluribus
from pluribus import BatchEnsemble, DeepEnsemble, MCDropout
from pluribus.exporting.formats import ExportError


class MaskedTokens(nn.Module):
    """Leaves the mask out where it says nothing, and has it where the network is traced, as transformers does."""

    def __init__(self) -> None:
        super().__init__()
        self.embed, self.drop, self.head = nn.Embedding(9, 4), nn.Dropout(0.5), nn.Linear(4, 3)

    def forward(self, tokens, mask):
        h = self.drop(self.embed(tokens))
        if torch.compiler.is_exporting() or not mask.all():
            h = h * mask.unsqueeze(-1)
        return self.head(h.sum(1))


def test_members_part_at_the_input_where_the_traced_network_needs_it(tmp_path):
    x = (torch.randint(0, 9, (4, 5)), torch.ones(4, 5))
    ensemble = pluribus.ensemble(MaskedTokens(), MCDropout(samples=3), example=x).eval()
    assert ensemble.executor.plan.branch.kind == "layer"
    written = pluribus.export(ensemble, tmp_path / "model.pt2", example=x, samples=3)
    assert ensemble.executor.plan.branch.kind == "layer"
    answers = dict(zip(written.outputs, torch.export.load(written.path).module()(*x), strict=True))
    assert answers["members"].shape == (3, 4, 3)


class TwoInputs(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.a, self.b, self.drop = nn.Linear(3, 3), nn.Linear(2, 3), nn.Dropout(0.2)

    def forward(self, x, y):
        return self.drop(self.a(x)) + self.b(y)


def test_an_ensemble_with_several_inputs_and_draws_is_exported(tmp_path):
    x = (torch.randn(4, 3), torch.randn(4, 2))
    ensemble = pluribus.ensemble(TwoInputs(), MCDropout(samples=3), example=x).eval()
    assert pluribus.export(ensemble, tmp_path / "model.pt2", example=x).inputs == ("input_0", "input_1")


@pytest.mark.parametrize("spec", [BatchEnsemble(2), DeepEnsemble(2)], ids=str)
def test_a_module_with_the_name_of_a_word_of_python_is_refused_by_its_name(spec, tmp_path):
    class Named(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.heads = nn.ModuleDict({"class": nn.Linear(4, 3)})

        def forward(self, x):
            return self.heads["class"](x)

    ensemble = pluribus.ensemble(Named(), spec, example=torch.randn(2, 4))
    with pytest.raises(ExportError, match=r"'class' is no name: rename the module heads\.class$"):
        pluribus.export(ensemble, tmp_path / "model.pt2")
