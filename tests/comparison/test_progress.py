"""What a terminal shows while a comparison runs."""

import io
from types import SimpleNamespace

from rich.console import Console

from pluribus.comparison import progress


def test_a_table_shows_the_runs_and_their_scores_while_they_train(monkeypatch):
    screen = io.StringIO()
    monkeypatch.setattr(progress, "create_console", lambda **_: Console(file=screen, force_terminal=True, width=80))
    run = {"method": "mimo", "seed": 0, "state": "waiting", "scores": {}}
    grid = SimpleNamespace(read_states=lambda: [run, run | {"seed": 1}])
    with progress.comparison_progress(grid) as (report, announce):
        assert "0/2" in screen.getvalue()
        report([run | {"state": "done", "scores": {"accuracy": 0.75}}, run | {"seed": 1, "state": "training"}])
        assert "1/2  training" in screen.getvalue()
        assert "75.00" in screen.getvalue()
        announce("measuring costs")
        assert "measuring costs" in screen.getvalue()
