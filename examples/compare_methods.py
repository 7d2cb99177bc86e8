"""Compare methods on your network and your data: every method trained several times, one page to decide by.

python examples/compare_methods.py --out comparison
"""

import argparse

from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import nn

import pluribus


def main() -> None:
    parser = argparse.ArgumentParser(description="Compare methods on the digits, and write report.html.")
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--out", default="comparison", help="the folder of the page")
    arguments = parser.parse_args()

    images, labels = load_digits(return_X_y=True)
    x, x_test, y, y_test = train_test_split((images / 16).astype("float32"), labels, test_size=600, random_state=0)
    net = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
    found = pluribus.compare(
        net,
        (x, y),
        test=(x_test, y_test),
        methods=[pluribus.MIMO(members=2), pluribus.BatchEnsemble(members=4), pluribus.DeepEnsemble(members=4)],
        epochs=arguments.epochs,
        seeds=arguments.seeds,
        lr=3e-3,
        progress=False,
    )
    for each in found.recommendation:
        print(f"{each['limit']}: {each['method'] or 'one plain network'}. {each['text']}")
    print(found.to_frame().to_string())
    found.save(arguments.out)
    print(f"{arguments.out}/report.html")


if __name__ == "__main__":
    main()
