"""docs/mimo.md says what the recorded map says, and its code runs."""

import itertools
import json
import re
from pathlib import Path
from statistics import mean

import pytest

from pluribus.papers.mimo import capacity

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "mimo.md").read_text()
WORDS = " ".join(PAGE.replace("**", "").split())


@pytest.fixture(scope="module")
def found():
    cells = json.loads((ROOT / "papers" / "mimo" / "results" / "capacity.cpu.json").read_text())["cells"]
    return {name: cell["found"] for name, cell in cells.items()}


def test_the_numbers_of_settings_that_the_rule_predicts_are_those_of_the_map(found):
    (right, count), (judged, total) = (capacity.count_predicted(found, names) for names in (("digits", "MNIST"), ("CIFAR-10",)))
    assert f"says for {right} of {count} settings" in WORDS
    assert f"for {judged} of {total}." in WORDS


def test_the_gains_are_those_of_the_map(found):
    for text in capacity.describe_maps(found):
        assert text in WORDS


def test_the_size_that_gained_on_cifar10_is_the_smallest_that_did(found):
    gains = {}
    for width, count, share, times in itertools.product(
        (0.25, 0.5, 1), *(capacity.MEMBERS, capacity.SHARES, capacity.REPETITIONS)
    ):
        ours = capacity.collect(found, "CIFAR-10", width, capacity.name_mimo(count, share, times))
        theirs = capacity.collect(found, "CIFAR-10", width, capacity.name_single(times))
        gain = 1 - capacity.average(ours, "calibrated_nll") / capacity.average(theirs, "calibrated_nll")
        gains[capacity.average(theirs, "weights") / count, share, times] = gain
    least = min(each for (each, _, _), gain in gains.items() if gain >= 0.01)
    (told,) = re.findall(r"no network with fewer than ([0-9,]+) weights a member gained 1 % on 5,000 rows of CIFAR-10", WORDS)
    assert 0 <= least - int(told.replace(",", "")) < 0.05 * least


def test_what_helps_is_in_the_order_of_the_map(found):
    """In percent of the calibrated NLL of one network, averaged over all settings."""
    gains = {}
    for name, widths in capacity.WIDTHS.items():
        for place, width in enumerate(widths):
            for count, share, times in itertools.product(capacity.MEMBERS, capacity.SHARES, capacity.REPETITIONS):
                ours = capacity.collect(found, name, width, capacity.name_mimo(count, share, times))
                theirs = capacity.collect(found, name, width, capacity.name_single(times))
                gain = 1 - capacity.average(ours, "calibrated_nll") / capacity.average(theirs, "calibrated_nll")
                gains[name, place, count, share, times] = 100 * gain

    def average(place=None, count=None, share=None):
        wanted = (place, count, share)
        return mean(g for key, g in gains.items() if all(w in (None, k) for w, k in zip(wanted, key[1:4], strict=True)))

    by_share, by_count = average(share=0.6) - average(share=0.0), average(count=2) - average(count=4)
    shared = average(count=2, share=0.6) - average(count=4, share=0.6)
    by_width = average(place=2) - average(place=0)
    assert by_share > by_count > by_width
    assert f"brings {by_share:.0f} % against ρ = 0" in WORDS
    assert f"that brings {by_count:.0f} %, and {shared:.0f} % where ρ is 0.6 already" in WORDS
    assert f"the widest instead of the narrowest brings {by_width:.0f} %" in WORDS


def test_the_code_of_the_page_runs(capfd):
    (block,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    exec(compile(block, "docs/mimo.md", "exec"), {})
    assert "Room(fitted=" in capfd.readouterr().out
