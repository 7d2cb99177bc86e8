"""The schemas fit what was recorded, and what the code writes."""

from pathlib import Path

import pytest

from pluribus.core.errors import FileError
from pluribus.file_formats.bench_files import BenchFile
from pluribus.file_formats.comparison_files import Results
from pluribus.file_formats.paper_files import PaperResult
from pluribus.file_formats.reading import read_json, write_json
from pluribus.file_formats.run_files import DataRecord

ROOT = Path(__file__).parents[2]
RECORDED = [
    *((path, Results) for path in sorted(ROOT.glob("results/*/results.json"))),
    *((path, PaperResult) for path in sorted(ROOT.glob("papers/*/results/*.json"))),
    (ROOT / "benchmarks/results/bench.json", BenchFile),
]


@pytest.mark.parametrize(("path", "schema"), RECORDED, ids=lambda value: getattr(value, "name", ""))
def test_every_recorded_result_of_the_repository_fits_its_schema(path, schema):
    assert read_json(path, schema)


def test_the_page_of_a_comparison_loads_no_picture_from_elsewhere(tmp_path):
    content = read_json(ROOT / "results/mnist-lenet5/results.json", Results)
    content["methods"][0]["unsure"] = [{"image": "http://example.org/x.png", "truth": "a", "answer": "b", "confidence": 0.5}]
    write_json(tmp_path / "results.json", content)
    with pytest.raises(FileError, match=r"does not hold the results of a comparison .*methods\.0\.unsure\.0\.image"):
        read_json(tmp_path / "results.json", Results)


def test_names_of_files_that_are_not_utf8_are_texts(tmp_path):
    """A class may be named after such a folder."""
    pixels = {"kind": "pixels", "target": [0.0, 1.0], "mean": [0.3], "std": [0.4]}
    about = {"name": "a\udcff", "task": "classification", "shape": [1, 2, 2], "classes": ["\udcfe", "b"], "preparation": pixels}
    content = about | {"train": 1, "test": 1, "facts": {}}
    write_json(tmp_path / "data.json", content)
    assert read_json(tmp_path / "data.json", DataRecord) == content
