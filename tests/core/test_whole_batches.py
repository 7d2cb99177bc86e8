"""Networks over one graph: the nodes are the rows, and cannot be taken apart."""

import pytest
import torch
from torch import nn

import pluribus
from pluribus import (
    MIMO,
    BatchEnsemble,
    ConversionError,
    DeepEnsemble,
    Inner,
    MCDropout,
    Mixture,
    Multihead,
    Single,
    TreeNet,
    Unsupported,
    Variance,
)
from pluribus.exporting.formats import ExportError


class GraphNet(nn.Module):
    """Nodes `[N, F]` and edges `[2, E]` → classes of the nodes, `[N, C]`."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second, self.dropout = nn.Linear(4, 8), nn.Linear(8, 3), nn.Dropout(0.2)

    def spread(self, h, edges):
        return h.index_add(0, edges[1], h[edges[0]])

    def forward(self, x, edges):
        return self.second(self.spread(self.dropout(torch.relu(self.spread(self.first(x), edges))), edges))


def draw_graph() -> tuple[torch.Tensor, torch.Tensor]:
    return torch.randn(9, 4, dtype=torch.double), torch.randint(0, 9, (2, 20))


SPECS = [
    *(Single(), Inner(2, include="*"), BatchEnsemble(3), Mixture(2), TreeNet(2, split="second"), Multihead(2)),
    *(MCDropout(samples=3), Variance(samples=3), DeepEnsemble(2), DeepEnsemble(2, of=BatchEnsemble(2))),
]


@pytest.mark.parametrize("spec", SPECS, ids=str)
def test_one_graph_is_answered_trained_saved_and_folded(spec, tmp_path):
    graph, ensemble = draw_graph(), pluribus.ensemble(GraphNet().double(), spec, batch_axis=None)
    targets = torch.randint(0, 3, (9,))
    targets[4:] = -100  # of these the class is not known
    ensemble.train().loss(graph, targets).backward()
    ensemble.eval()
    p = ensemble.predict(graph)
    assert p.outputs.shape == (ensemble.members, 9, 3)
    assert p.labels.shape == (9,)
    assert ensemble.predict(graph, members=False).probs.shape == (9, 3)
    assert pluribus.load(pluribus.save(ensemble, tmp_path / "e"), GraphNet().double()).predict(graph).probs.shape == (9, 3)
    assert ensemble.describe().base_flops
    fixed = ensemble.freeze() if ensemble.sampled else ensemble
    answers = fixed(graph)
    for index in range(fixed.members):
        torch.testing.assert_close(fixed.member(index)(*graph), answers[index], rtol=0, atol=1e-10)


def test_targets_of_nodes_that_are_not_known_do_not_count():
    graph, ensemble = draw_graph(), pluribus.ensemble(GraphNet().double(), Single(), batch_axis=None).eval()
    targets = torch.randint(0, 3, (9,))
    targets[4:] = -100
    expected = nn.functional.cross_entropy(ensemble(graph)[0, :4], targets[:4])
    torch.testing.assert_close(ensemble.loss(graph, targets), expected)


def test_what_needs_rows_is_refused(tmp_path):
    for spec in (MIMO(2), BatchEnsemble(2, batches="split")):
        with pytest.raises(ConversionError, match=r"with batch_axis=None the network takes its input as a whole"):
            pluribus.ensemble(GraphNet(), spec, batch_axis=None)
    ensemble = pluribus.ensemble(GraphNet().double(), BatchEnsemble(2), batch_axis=None)
    with pytest.raises(Unsupported, match="one whole"):
        ensemble.predict(draw_graph(), until=0.9)
    with pytest.raises(ExportError, match="takes its input as a whole"):
        pluribus.export(ensemble, tmp_path / "graph.onnx", example=draw_graph())
    with pytest.raises(ValueError, match="batch_axis must be one of 0, None"):
        pluribus.ensemble(GraphNet(), Single(), batch_axis=1)


class Dense(nn.Module):
    """Nodes `[N, F]` and the adjacency matrix `[N, N]`."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(4, 8), nn.Linear(8, 3)

    def forward(self, x, adjacency):
        return adjacency @ self.second(torch.relu(adjacency @ self.first(x)))


def test_a_network_over_one_graph_is_told_what_it_needs():
    with pytest.raises(ConversionError, match=r"answers these 9 rows together and fails on two of them(.|\n)*batch_axis=None"):
        pluribus.ensemble(Dense(), BatchEnsemble(2), example=(torch.randn(9, 4), torch.eye(9)))
    with pytest.raises(ValueError, match=r"got sizes .*for an input that is one whole, as a graph is, pass batch_axis=None"):
        pluribus.ensemble(GraphNet().double(), BatchEnsemble(2), example=draw_graph())
