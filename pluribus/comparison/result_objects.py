"""What `pluribus.compare` and `pluribus.evaluate` return: results that show themselves as text, in a notebook and as tables."""

import io
import os
from dataclasses import dataclass
from functools import partial
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..file_formats.comparison_files import Results
from ..file_formats.reading import read_json
from .terminal_tables import print_comparison, print_evaluation, render_text

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, repr=False, eq=False)
class Comparison:
    """The result of a comparison of methods.

    `results` is the content of results.json; `pluribus.reports` describes it. `folder` holds the runs, or is None if they were
    not kept.
    """

    results: dict[str, Any]
    folder: Path | None = None

    @staticmethod
    def load(path: str | os.PathLike[str]) -> "Comparison":
        """Load a comparison from its folder or from results.json. Raises FileError if there is none."""
        place = Path(path)
        file = place / "results.json" if place.is_dir() else place
        return Comparison(read_json(file, Results), file.parent)

    @property
    def recommendation(self) -> list[dict[str, Any]]:
        """One entry for each limit on latency: `limit`, `method` (None: no method is better than one network) and `text`."""
        return self.results["recommendation"]

    @property
    def methods(self) -> dict[str, dict[str, Any]]:
        """What results.json holds of each method, by its name."""
        return {method["name"]: method for method in self.results["methods"]}

    def to_frame(self) -> "pd.DataFrame":
        """A DataFrame with one row for each method, and columns for scores, gain, share and costs, as in results.csv."""
        import pandas as pd

        from ..reports import format_csv

        return pd.read_csv(io.StringIO(format_csv(self.results))).set_index("name")

    def page(self) -> str:
        """The report as one HTML page that needs no other file."""
        from ..reports import render_page

        return render_page(self.results)

    def save(self, folder: str | os.PathLike[str]) -> Path:
        """Write results.json, results.csv, results.md, picture.svg and report.html; returns the path of report.html."""
        from ..reports import write_report

        return write_report(self.results, Path(folder))

    def __repr__(self) -> str:
        return render_text(partial(print_comparison, self.results, self.folder))

    def _repr_html_(self) -> str:
        from ..reports import render_fragment

        return render_fragment(self.results)


@dataclass(frozen=True, repr=False, eq=False)
class Evaluation:
    """The result of an evaluation; `results` is what `pluribus evaluate` writes to evaluation.json."""

    results: dict[str, Any]

    @property
    def scores(self) -> dict[str, float]:
        """The scores by name, such as accuracy, nll and ece."""
        return self.results["scores"]

    @property
    def intervals(self) -> dict[str, list[float]]:
        """The 95 % interval of the scores that have one: [low, high]."""
        return self.results["intervals"]

    def to_frame(self) -> "pd.DataFrame":
        """A DataFrame with one row for each score: value, 95 % interval, mean over members, and after temperature scaling."""
        import pandas as pd

        tempered = self.results["tempered"] or {}
        rows = {}
        for name, value in self.scores.items():
            low, high = self.intervals.get(name, (None, None))
            member = self.results["member_scores"].get(name)
            rows[name] = {"value": value, "low": low, "high": high, "member": member, "tempered": tempered.get(name)}
        return pd.DataFrame.from_dict(rows, orient="index", dtype=float).dropna(axis="columns", how="all")

    def __repr__(self) -> str:
        return render_text(partial(print_evaluation, self.results))

    def _repr_html_(self) -> str:
        about = f"{self.results['title']} on {self.results['data']}, {self.results['rows']:,} rows"
        return f"<p><b>{escape(about)}</b></p>{self.to_frame().to_html(float_format='{:.4g}'.format)}"
