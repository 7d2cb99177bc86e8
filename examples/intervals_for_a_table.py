"""Prediction intervals for a table with scikit-learn's interface: a DataFrame goes in, and low and high come out.

python examples/intervals_for_a_table.py
"""

import argparse

import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.model_selection import train_test_split

from pluribus.sklearn import EnsembleRegressor


def main() -> None:
    parser = argparse.ArgumentParser(description="Prediction intervals on the diabetes table of scikit-learn.")
    parser.add_argument("--epochs", type=int, default=100)
    parser.add_argument("--coverage", type=float, default=0.9)
    arguments = parser.parse_args()

    frame = load_diabetes(as_frame=True, scaled=False)
    X, X_test, y, y_test = train_test_split(frame.data, frame.target, test_size=0.25, random_state=0)
    model = EnsembleRegressor(
        "deep-ensemble:members=4", hidden=(64,), epochs=arguments.epochs, noise="beta-nll", validation=0.25, random_state=0
    ).fit(X, y)

    mean, spread = model.predict(X_test, return_std=True)
    low, high = model.predict_interval(X_test, coverage=arguments.coverage)
    for row in range(5):
        print(f"predicted {mean[row]:.0f} ± {spread[row]:.0f}, from {low[row]:.0f} to {high[row]:.0f}, true {y_test.iloc[row]}")
    held = np.mean((low <= y_test) & (y_test <= high))
    print(
        f"intervals of {arguments.coverage:.0%} hold {held:.1%} of the test rows; their mean width is {np.mean(high - low):.0f}"
    )


if __name__ == "__main__":
    main()
