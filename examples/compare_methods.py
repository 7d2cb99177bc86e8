"""Compare methods on your network and your data: every method trained several times, one page to decide by.

python examples/compare_methods.py --out comparison
"""

import argparse

from sklearn.datasets import load_digits
from torch import nn

import pluribus


def main() -> None:
    parser = argparse.ArgumentParser(description="Compare methods on the digits, and write report.html.")
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--out", default="comparison", help="the folder of the page")
    arguments = parser.parse_args()

    x, y = load_digits(return_X_y=True)
    x = (x / 16).astype("float32")
    net = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
    found = pluribus.compare(
        net,
        (x[:1200], y[:1200]),
        test=(x[1200:], y[1200:]),
        methods=[pluribus.MIMO(members=2), pluribus.BatchEnsemble(members=4), pluribus.DeepEnsemble(members=4)],
        epochs=arguments.epochs,
        seeds=arguments.seeds,
        lr=3e-3,
        progress=False,
    )
    print(found.recommendation)
    print(found.to_frame().to_string())
    found.save(arguments.out)
    print(f"{arguments.out}/report.html")


if __name__ == "__main__":
    main()
