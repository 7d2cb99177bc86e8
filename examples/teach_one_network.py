"""Train a deep ensemble, let one network learn from it, and write that network into a file that runs without pluribus.

python examples/teach_one_network.py --out student.pt2
"""

import argparse

import torch
from torch import nn

import pluribus


def main() -> None:
    parser = argparse.ArgumentParser(description="Distil a deep ensemble on the digits into one network, and export it.")
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--out", default="student.pt2", help="the file: .pt2 for torch, .onnx for ONNX Runtime")
    arguments = parser.parse_args()

    torch.manual_seed(0)
    data = pluribus.data.load("digits")
    x, y = data.preparation(data.train.x), data.train.y
    x_test, y_test = data.preparation(data.test.x), data.test.y
    net = nn.Sequential(nn.Flatten(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
    settings = {"epochs": arguments.epochs, "lr": 3e-3, "batch_size": 64, "progress": False}

    alone = pluribus.ensemble(net, pluribus.Single(), example=x[:2])
    teacher = pluribus.ensemble(net, pluribus.DeepEnsemble(members=4), example=x[:2])
    pluribus.fit(alone, (x, y), **settings)
    pluribus.fit(teacher, (x, y), **settings)
    student = pluribus.distil(teacher, pluribus.Single(), (x, y), **settings | {"epochs": 2 * arguments.epochs}, mixup=1.0)

    for name, each in {"one network": alone, "its teacher": teacher, "the student": student}.items():
        p = each.predict(x_test)
        accuracy, nll = pluribus.metrics.accuracy(p, y_test), pluribus.metrics.nll(p, y_test)
        print(f"{name}: accuracy {accuracy:.3f}, negative log-likelihood {nll:.3f}, {each.describe().members} member(s)")

    written = pluribus.export(
        student, arguments.out, example=data.train.x[:2], preparation=data.preparation, classes=data.classes
    )
    print(f"{written.path} answers as the student does to {written.difference:.0e}; how to call it stands in {written.card}")


if __name__ == "__main__":
    main()
