"""mimo/figure-7: accuracy along a path of L1 penalties, for M = 1, 2 and 3."""

from .regularization import build_recipe

RECIPE = build_recipe(7, "Accuracy along a path of L1 penalties", kind="l1", by="strength")
