"""The rules of the IEN paper's table of cells, and its searches, which go on after a kill."""

import pytest

from pluribus.papers import load_recipes
from pluribus.papers.inner import cell_trainings
from pluribus.papers.inner.table_3 import ALGORITHMS, KINDS, RANDOM, name_group
from pluribus.papers.recipe import Workspace
from pluribus.search import NAS_BENCH_201, Cell

REPRODUCED, DIRECTION, NOT = "reproduced", "direction reproduced", "not reproduced"
UNDECIDED = "not decided at this scale"
MIX, SKIPS, PREFERENCE, DARTS, GDAS, THAN_RANDOM = range(6)
NAMES = {"i": "inner_conv_3x3", "m": "maxout_conv_3x3", "c": "nor_conv_3x3", "s": "skip_connect", "n": "none"}


def cell(letters, error=0.1, noise=0.0, sure=0.5):
    """A cell with an operation for each letter, and the scores of its network."""
    text = str(Cell(NAS_BENCH_201, tuple(NAMES[letter] for letter in letters)))
    blocks = [error - noise, error + noise] * 10
    return {"cell": text, "accuracy": 1 - error, "error_blocks": blocks, "confidences": [sure] * 6, "parameters": 1000}


def build(darts=None, gdas=None, plain=None, drawn=None):
    groups = {
        name_group("darts", "all"): darts or cell("imsssm", 0.1),
        name_group("gdas", "all"): gdas or cell("iiicsn", 0.1),
        name_group("darts", "plain"): plain or cell("cccccc", 0.12),
        name_group("gdas", "plain"): plain or cell("cccccc", 0.12),
        RANDOM: drawn or cell("icmsnc", 0.15, sure=0.0) | {"confidences": []},
    }
    return {f"{group}, seed {seed}": each for group, each in groups.items() for seed in range(2)}


@pytest.mark.parametrize(
    ("claim", "changes", "outcome"),
    [
        (MIX, {"darts": cell("imsssc")}, REPRODUCED),  # one of six is more than one of seven
        (MIX, {"darts": cell("iissss")}, NOT),
        (MIX, {"darts": cell("imsssc", sure=0.299)}, UNDECIDED),
        (MIX, {"darts": cell("imsssc", sure=0.301)}, REPRODUCED),
        (SKIPS, {"darts": cell("imsssc")}, REPRODUCED),
        (SKIPS, {"darts": cell("imsscc")}, DIRECTION),
        (SKIPS, {"darts": cell("imcccc")}, NOT),
        (SKIPS, {"darts": cell("imsssc", sure=0.299)}, UNDECIDED),
        (PREFERENCE, {"gdas": cell("iiiccc")}, REPRODUCED),
        (PREFERENCE, {"gdas": cell("iicccc")}, DIRECTION),
        (PREFERENCE, {"gdas": cell("cccccc")}, NOT),
        (PREFERENCE, {"gdas": cell("iiiccc", sure=0.299)}, UNDECIDED),
        (DARTS, {}, REPRODUCED),
        (DARTS, {"darts": cell("imsssc", 0.119, 0.01)}, DIRECTION),
        (DARTS, {"darts": cell("imsssc", 0.121)}, NOT),
        (DARTS, {"darts": cell("imsssc", 0.151), "plain": cell("cccccc", 0.15)}, NOT),
        (DARTS, {"darts": cell("imsssc", 0.152), "plain": cell("cccccc", 0.151)}, UNDECIDED),
        (GDAS, {}, REPRODUCED),
        (GDAS, {"gdas": cell("iiiccc", 0.119, 0.01)}, DIRECTION),
        (GDAS, {"gdas": cell("iiiccc", 0.121)}, NOT),
        (THAN_RANDOM, {}, REPRODUCED),
        (THAN_RANDOM, {"drawn": cell("icmsnc", 0.101, 0.01)}, DIRECTION),
        (THAN_RANDOM, {"drawn": cell("icmsnc", 0.099)}, NOT),
        (THAN_RANDOM, {"gdas": cell("iiiccc", 0.151)}, NOT),
    ],
)
def test_table_3(claim, changes, outcome):
    assert load_recipes()["inner/table-3"].judge(build(**changes))[claim].outcome == outcome


def test_one_maxout_among_two_cells_is_the_direction_of_a_mix():
    found = build(darts=cell("imsssc"))
    found[f"{name_group('darts', 'all')}, seed 1"] = cell("isssss")
    assert load_recipes()["inner/table-3"].judge(found)[MIX].outcome == DIRECTION


def test_shares_of_edges_stand_in_the_table():
    rows = {row["group"]: row for row in load_recipes()["inner/table-3"].tabulate(build())}
    assert rows[name_group("darts", "all")]["maxout"] == pytest.approx(100 * 2 / 6)
    assert rows[name_group("gdas", "all")]["plain"] == pytest.approx(100 / 6)
    assert set(rows) == {RANDOM, *(name_group(algorithm, kind) for algorithm in ALGORITHMS for kind in KINDS)}


@pytest.mark.slow
@pytest.mark.parametrize("when", ["search", "training"])
def test_a_cell_that_was_killed_ends_as_one_that_was_not(when, tmp_path, monkeypatch):
    cells = load_recipes()["inner/table-3"].scales["smoke"].cells
    options = dict(cells[f"{name_group('gdas', 'all')}, seed 0"])
    options |= {"search": options["search"] | {"epochs": 2}, "training": options["training"] | {"epochs": 2}}
    whole, killed = (Workspace(tmp_path / name / "cell", tmp_path / name / "shared") for name in ("whole", "killed"))
    for each in (whole, killed):
        each.folder.mkdir(parents=True)
    expected = cell_trainings.measure(options, whole)

    class Kill(Exception):
        pass

    def report(self, text):
        if text == {"search": "search, epoch 1/2", "training": "epoch 2/2"}[when]:
            raise Kill

    with monkeypatch.context() as patch:
        patch.setattr(Workspace, "report", report)
        with pytest.raises(Kill):
            cell_trainings.measure(options, killed)
    assert cell_trainings.measure(options, killed) == expected
