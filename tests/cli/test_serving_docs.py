"""The commands of docs/serving.md run as they stand, on a free port."""

import json
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from pluribus.data import load

from ..serving.files import encode_png
from .test_serve import start_server, stop

PAGE = (Path(__file__).parent.parent.parent / "docs" / "serving.md").read_text()
MAKE, ASK = re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL)


@pytest.mark.skipif(shutil.which("curl") is None, reason="the page asks with curl, which is not here")
def test_commands_of_the_page_run(pluribus, work):
    *before, last = MAKE.splitlines()
    assert before.pop(0) == "pip install 'pluribus[serve]'"
    for line in before:
        answer = pluribus(line.removeprefix("pluribus "))
        assert answer.code == 0, (line, answer.err)
    images = load("digits").test.x[:2]
    for name, image in zip(("digit.png", "other.png"), images, strict=True):
        (work / name).write_bytes(encode_png(image))
    (work / "rows.json").write_text(json.dumps({"rows": images.tolist()}))
    with start_server(last.removeprefix("pluribus serve ").replace(" --port 8000", ""), work) as (process, client):
        found = []
        for line in ASK.splitlines():
            words = shlex.split(line.replace("http://127.0.0.1:8000", str(client.base_url).rstrip("/")))
            done = subprocess.run(
                [*words, "-sS", "-f", "--noproxy", "*"], capture_output=True, text=True, timeout=120, check=False
            )
            assert done.returncode == 0, (line, done.stderr)
            found.append(done.stdout)
        one, form, rows, about = map(json.loads, found[:4])
        assert form["answers"][0]["label"] == one["answers"][0]["label"]
        assert form == rows
        assert {"label", "answer", "set", "answered"} < set(rows["answers"][0])
        assert about["classes"] == [str(digit) for digit in range(10)]
        assert "pluribus_rows_total" in found[5]
        assert stop(process) == 0
