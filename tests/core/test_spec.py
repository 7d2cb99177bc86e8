"""Specs: hashing, JSON, and what is said about wrong arguments."""

import pytest
from torch import nn

import pluribus
from pluribus import (
    ConversionError,
    DeepEnsemble,
    Inner,
    Multihead,
    Variance,
)
from tests.networks import NestedMLP


def test_specs_can_be_hashed_and_survive_json():
    for spec in (
        Inner(include=["a", nn.Linear]),
        Inner(include=nn.Linear),
        DeepEnsemble(2, of=Variance(exclude=("b", nn.Conv2d))),
    ):
        assert pluribus.Spec.from_json(spec.to_json()) == spec
        assert hash(spec) == hash(pluribus.Spec.from_json(spec.to_json()))
    for wrong in (3, [3], 0):
        with pytest.raises(TypeError, match="names, patterns or types, got"):
            pluribus.ensemble(NestedMLP(), Inner(include=wrong))
    with pytest.raises(ConversionError, match="include= names no layer"):
        pluribus.ensemble(NestedMLP(), Inner(include=[]))
    with pytest.raises(ConversionError, match="last='9' matched no layer"):
        pluribus.ensemble(NestedMLP(), Multihead(last="9"))


def test_wrong_arguments_are_answered_with_a_cure():
    with pytest.raises(TypeError, match=r"write Inner\(\)"):
        pluribus.ensemble(NestedMLP(), Inner)
    with pytest.raises(TypeError, match=r"net must be an nn\.Module, got dict"):
        pluribus.ensemble({}, Inner())
    with pytest.raises(TypeError, match=r"DeepEnsemble\(members, of=spec\)"):
        pluribus.ensemble(pluribus.ensemble(NestedMLP(), Inner()), Inner())
    with pytest.raises(ValueError, match="task must be one of"):
        pluribus.ensemble(NestedMLP(), Inner(), task="ranking")
