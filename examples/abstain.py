"""Answer, name several classes, decline, or raise an alarm: rules that are fitted on held-out rows, and judged on others.

python examples/abstain.py
"""

import argparse

import torch
from torch import nn

import pluribus


def main() -> None:
    parser = argparse.ArgumentParser(description="Fit rules for the answers of a deep ensemble on the digits.")
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--risk", type=float, default=0.05, help="the share of answers that may be wrong")
    arguments = parser.parse_args()

    torch.manual_seed(0)
    data = pluribus.data.load("digits")
    x, y = data.preparation(data.train.x), data.train.y
    x_test, y_test = data.preparation(data.test.x), data.test.y
    net = nn.Sequential(nn.Flatten(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))

    ensemble = pluribus.ensemble(net, pluribus.DeepEnsemble(members=4), example=x[:2])
    pluribus.fit(ensemble, (x[:800], y[:800]), epochs=arguments.epochs, lr=3e-3, progress=False)
    calibrated = pluribus.calibrate(ensemble, x[800:], y[800:], coverage=0.95, risk=arguments.risk, false_alarms=0.05)
    print(calibrated)

    decisions = calibrated.predict(x_test)
    for number, said in enumerate(decisions.describe(data.classes)[:10]):
        print(f"row {number}, which is a {data.classes[y_test[number]]}: {said}")

    answered = decisions.is_answered
    print(f"answered {answered.float().mean():.1%} of the test rows")
    if answered.any():
        print(f"wrong among the answers: {(decisions.labels != y_test)[answered].float().mean():.1%}")
    noise = calibrated.predict(torch.randn_like(x_test))
    print(f"alarms: {decisions.is_foreign.float().mean():.1%} of test rows, {noise.is_foreign.float().mean():.1%} of noise")


if __name__ == "__main__":
    main()
