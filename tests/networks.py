"""Small networks that between them have what real ones have: nesting, skips, normalisation, attention, a mask."""

import torch
from torch import Tensor, nn

CLASSES = 3


class NestedMLP(nn.Module):
    """Blocks in blocks, a module list, two layers of the same shape."""

    def __init__(self, outputs: int = CLASSES) -> None:
        super().__init__()
        self.stem = nn.Sequential(nn.Flatten(), nn.Linear(12, 16), nn.ReLU())
        self.body = nn.ModuleList([nn.Sequential(nn.Linear(16, 16), nn.ReLU()) for _ in range(3)])
        self.head = nn.Linear(16, outputs)

    def forward(self, x: Tensor) -> Tensor:
        x = self.stem(x)
        for block in self.body:
            x = block(x)
        return self.head(x)


class Residual(nn.Module):
    def __init__(self, inputs: int, outputs: int, stride: int = 1) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(outputs)
        self.shortcut = nn.Conv2d(inputs, outputs, 1, stride) if stride > 1 or inputs != outputs else nn.Identity()

    def forward(self, x: Tensor) -> Tensor:
        y = self.bn2(self.conv2(torch.relu(self.bn1(self.conv1(x)))))
        return torch.relu(y + self.shortcut(x))


class ResidualCNN(nn.Module):
    def __init__(self, blocks: int = 3) -> None:
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8), nn.ReLU())
        self.blocks = nn.Sequential(Residual(8, 8), Residual(8, 12, stride=2), Residual(12, 12))[:blocks]
        self.head = nn.Linear(12, CLASSES)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.blocks(self.stem(x)).mean((2, 3)))


class DenseCNN(nn.Module):
    """Every layer sees all that came before it."""

    def __init__(self, layers: int = 3) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 8, 3, padding=1)
        self.layers = nn.ModuleList([self._layer(8 + 4 * i) for i in range(layers)])
        self.head = nn.Linear(8 + 4 * layers, CLASSES)

    @staticmethod
    def _layer(inputs: int) -> nn.Module:
        return nn.Sequential(
            nn.BatchNorm2d(inputs),
            nn.ReLU(),
            nn.Conv2d(inputs, 8, 1, bias=False),
            nn.BatchNorm2d(8),
            nn.ReLU(),
            nn.Conv2d(8, 4, 3, padding=1, bias=False),
        )

    def forward(self, x: Tensor) -> Tensor:
        x = self.stem(x)
        for layer in self.layers:
            x = torch.cat([x, layer(x)], dim=1)
        return self.head(x.mean((2, 3)))


class Transformer(nn.Module):
    """Tokens → class, with PyTorch's own encoder layers and an embedding for a first layer."""

    def __init__(self, dropout: float = 0.1) -> None:
        super().__init__()
        self.embed = nn.Embedding(11, 16)
        self.position = nn.Parameter(torch.randn(5, 16) * 0.1)
        layer = nn.TransformerEncoderLayer(16, 2, 32, dropout=dropout, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2)
        self.norm = nn.LayerNorm(16)
        self.head = nn.Linear(16, CLASSES)

    def forward(self, tokens: Tensor) -> Tensor:
        return self.head(self.norm(self.encoder(self.embed(tokens) + self.position)).mean(1))


class Backwards(nn.Module):
    """Registered in another order than it runs."""

    def __init__(self) -> None:
        super().__init__()
        self.head, self.stem, self.body = nn.Linear(8, 3), nn.Linear(4, 8), nn.Linear(8, 8)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(torch.relu(self.body(self.stem(x))))


def images(size: int = 6, dtype: torch.dtype = torch.float) -> Tensor:
    return torch.randn(size, 3, 6, 6, dtype=dtype)


def vectors(size: int = 6, dtype: torch.dtype = torch.float) -> Tensor:
    return torch.randn(size, 3, 2, 2, dtype=dtype)


def tokens(size: int = 6, dtype: torch.dtype = torch.float) -> Tensor:
    return torch.randint(0, 11, (size, 5))


class ShortResidualCNN(ResidualCNN):
    """A block whose skip is the identity, and one whose skip is a convolution."""

    def __init__(self) -> None:
        super().__init__(blocks=2)


class ShortDenseCNN(DenseCNN):
    def __init__(self) -> None:
        super().__init__(layers=2)


NETWORKS = {
    "mlp": (NestedMLP, vectors),
    "residual": (ShortResidualCNN, images),
    "dense": (ShortDenseCNN, images),
    "transformer": (Transformer, tokens),
}


def words(description: object) -> str:
    """Without the line breaks of an 80-column terminal."""
    return " ".join(str(description).split())


class Masked(nn.Module):
    """A network that keeps −∞ in a buffer, as attention does."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Linear(4, 3)
        self.register_buffer("mask", torch.tensor([0.0, 0.0, -torch.inf]))

    def forward(self, x):
        return self.body(x) + self.mask
