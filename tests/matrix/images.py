"""Image networks in the ways they are usually written."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class ScaledLinear(nn.Linear):
    """A Linear with a forward of its own, as libraries have them for mixed precision."""

    def forward(self, x: Tensor) -> Tensor:
        return F.linear(x.to(self.weight.dtype), self.weight, self.bias)


class SqueezeExcitation(nn.Module):
    def __init__(self, channels: int, squeezed: int) -> None:
        super().__init__()
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.fc1, self.fc2 = nn.Conv2d(channels, squeezed, 1), nn.Conv2d(squeezed, channels, 1)
        self.activation, self.scale_activation = nn.ReLU(), nn.Hardsigmoid()

    def forward(self, x: Tensor) -> Tensor:
        return self.scale_activation(self.fc2(self.activation(self.fc1(self.avgpool(x))))) * x


class InvertedResidual(nn.Module):
    def __init__(self, channels: int, expanded: int) -> None:
        super().__init__()
        self.block = nn.Sequential(
            *(nn.Conv2d(channels, expanded, 1, bias=False), nn.BatchNorm2d(expanded), nn.Hardswish(inplace=True)),
            nn.Conv2d(expanded, expanded, 3, padding=1, groups=expanded, bias=False),
            *(nn.BatchNorm2d(expanded), nn.Hardswish(inplace=True), SqueezeExcitation(expanded, 4)),
            *(nn.Conv2d(expanded, channels, 1, bias=False), nn.BatchNorm2d(channels)),
        )

    def forward(self, x: Tensor) -> Tensor:
        return x + self.block(x)


class MobileNetV3(nn.Module):
    """Inverted residuals with squeeze and excitation; the classifier is a Linear with a forward of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 8, 3, 2, 1, bias=False), nn.BatchNorm2d(8), nn.Hardswish(inplace=True))
        self.features = nn.Sequential(InvertedResidual(8, 16), InvertedResidual(8, 24))
        self.head = nn.Sequential(nn.Linear(8, 16), nn.Hardswish(inplace=True), nn.Dropout(0.2, inplace=True))
        self.classifier = ScaledLinear(16, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.classifier(self.head(self.features(self.stem(x)).mean((2, 3))))


class BasicBlock(nn.Module):
    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False), nn.BatchNorm2d(outputs)
        self.conv2, self.bn2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False), nn.BatchNorm2d(outputs)
        self.relu = nn.ReLU(inplace=True)
        self.downsample = None
        if stride > 1 or inputs != outputs:
            self.downsample = nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))

    def forward(self, x: Tensor) -> Tensor:
        identity = x if self.downsample is None else self.downsample(x)
        return self.relu(self.bn2(self.conv2(self.relu(self.bn1(self.conv1(x))))) + identity)


class ResNetWithHeads(nn.Module):
    """Several answers about one image, in a dictionary: the one that is meant is not computed last."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(3, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8)
        self.layer1, self.layer2 = BasicBlock(8, 8, 1), BasicBlock(8, 12, 2)
        self.heads = nn.ModuleDict({"class": nn.Linear(12, 3), "box": nn.Linear(12, 4)})
        self.auxiliary = nn.Linear(8, 3)

    def forward(self, x: Tensor) -> dict[str, Tensor]:
        h = self.layer1(F.relu(self.bn1(self.conv1(x))))
        early, pooled = h.mean((2, 3)), self.layer2(h).mean((2, 3))
        return {"logits": self.heads["class"](pooled), "box": self.heads["box"](pooled), "auxiliary": self.auxiliary(early)}


class UNet(nn.Module):
    """Classes of every pixel, `[B, C, H, W]`."""

    def __init__(self) -> None:
        super().__init__()
        self.down1, self.down2, self.bottom = self.convolve(3, 8), self.convolve(8, 12), self.convolve(12, 16)
        self.pool = nn.MaxPool2d(2)
        self.up2, self.up1 = nn.ConvTranspose2d(16, 12, 2, 2), nn.ConvTranspose2d(12, 8, 2, 2)
        self.join2, self.join1 = self.convolve(24, 12), self.convolve(16, 8)
        self.out = nn.Conv2d(8, 3, 1)

    @staticmethod
    def convolve(inputs: int, outputs: int) -> nn.Module:
        layers = [nn.Conv2d(inputs, outputs, 3, padding=1), nn.BatchNorm2d(outputs), nn.ReLU(inplace=True)]
        return nn.Sequential(*layers, nn.Conv2d(outputs, outputs, 3, padding=1), nn.BatchNorm2d(outputs), nn.ReLU(inplace=True))

    def forward(self, x: Tensor) -> Tensor:
        one = self.down1(x)
        two = self.down2(self.pool(one))
        h = self.bottom(self.pool(two))
        h = self.join2(torch.cat([self.up2(h), two], dim=1))
        return self.out(self.join1(torch.cat([self.up1(h), one], dim=1)))


class ImageAndTable(nn.Module):
    """Two inputs: an image and a row of numbers."""

    def __init__(self) -> None:
        super().__init__()
        self.image = nn.Sequential(nn.Conv2d(3, 8, 3, 2, 1), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten())
        self.table = nn.Sequential(nn.Linear(5, 8), nn.ReLU())
        self.head = nn.Sequential(nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 3))

    def forward(self, image: Tensor, table: Tensor) -> Tensor:
        return self.head(torch.cat([self.image(image), self.table(table)], dim=1))
