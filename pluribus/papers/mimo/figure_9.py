"""mimo/figure-9: accuracy against sparsity, for M = 1, 2 and 3."""

from .regularization import build_recipe

RECIPE = build_recipe(9, "Accuracy against sparsity", kind="l1", by="left")
