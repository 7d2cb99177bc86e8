"""Graph networks: graphs in a batch, and one graph whose nodes are the rows."""

import torch
from torch import Tensor, nn


class GraphLayer(nn.Module):
    """Nodes `[…, N, F]` and the adjacency matrix `[…, N, N]`."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.linear = nn.Linear(inputs, outputs)

    def forward(self, x: Tensor, adjacency: Tensor) -> Tensor:
        return adjacency @ self.linear(x) / adjacency.sum(-1, keepdim=True).clamp(min=1)


class NodeClassifier(nn.Module):
    """One graph, the nodes of which are classified: x `[N, F]`, adjacency `[N, N]` → `[N, C]`."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1, self.conv2 = GraphLayer(4, 12), GraphLayer(12, 3)
        self.dropout = nn.Dropout(0.2)

    def forward(self, x: Tensor, adjacency: Tensor) -> Tensor:
        return self.conv2(self.dropout(torch.relu(self.conv1(x, adjacency))), adjacency)


class GraphClassifier(nn.Module):
    """Graphs of one size in a batch: x `[B, N, F]`, adjacency `[B, N, N]` → `[B, C]`."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1, self.conv2 = GraphLayer(4, 12), GraphLayer(12, 12)
        self.head = nn.Linear(12, 3)

    def forward(self, x: Tensor, adjacency: Tensor) -> Tensor:
        h = torch.relu(self.conv1(x, adjacency))
        return self.head(torch.relu(self.conv2(h, adjacency)).mean(1))


def draw_graph(rows: int) -> tuple[Tensor, Tensor]:
    return torch.randn(rows, 4), draw_adjacency(rows)


def draw_graphs(rows: int) -> tuple[Tensor, Tensor]:
    return torch.randn(rows, 5, 4), draw_adjacency(5).expand(rows, -1, -1).clone()


def draw_adjacency(nodes: int) -> Tensor:
    edges = (torch.rand(nodes, nodes) < 0.5).float()
    return ((edges + edges.T + torch.eye(nodes)) > 0).float()
