"""mimo/figure-8: accuracy along a path of weight decay, for M = 1, 2 and 3."""

from .regularization import build_recipe

RECIPE = build_recipe(8, "Accuracy along a path of weight decay", kind="l2", by="strength")
