"""Train an ensemble in a loop of your own, save it, and load it again.

python examples/own_loop.py
python examples/own_loop.py --epochs 50 --members 3
"""

import argparse

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import pluribus


def main() -> None:
    parser = argparse.ArgumentParser(description="Train MIMO on the digits in a plain loop.")
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--members", type=int, default=2)
    arguments = parser.parse_args()

    torch.manual_seed(0)
    images, labels = load_digits(return_X_y=True)
    order = torch.randperm(len(images))
    x, y = torch.tensor(images, dtype=torch.float32)[order] / 16, torch.tensor(labels)[order]
    loader = DataLoader(TensorDataset(x[:1400], y[:1400]), batch_size=64, shuffle=True)

    net = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 10))
    ensemble = pluribus.ensemble(net, pluribus.MIMO(members=arguments.members), example=x[:2])
    print(ensemble.describe())

    optimizer = torch.optim.AdamW(ensemble.param_groups(), lr=2e-3)
    for epoch in range(arguments.epochs):
        ensemble.train()
        for rows, targets in loader:
            loss = ensemble.loss(rows, targets)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        p = ensemble.predict(x[1400:])
        accuracy, nll = pluribus.metrics.accuracy(p, y[1400:]), pluribus.metrics.nll(p, y[1400:])
        print(f"epoch {epoch + 1}: loss {loss.item():.3f}, accuracy {accuracy:.3f}, negative log-likelihood {nll:.3f}")

    pluribus.save(ensemble, "digits-ensemble")  # digits-ensemble.safetensors and digits-ensemble.json
    again = pluribus.load("digits-ensemble", net)
    print("loaded, it answers the same:", torch.equal(again.predict(x[1400:]).probs, p.probs))


if __name__ == "__main__":
    main()
