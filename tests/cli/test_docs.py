"""The code blocks of docs/decisions.md run as they stand."""

import re
from pathlib import Path

import numpy as np
import pytest

PAGE = (Path(__file__).parent.parent.parent / "docs" / "decisions.md").read_text()


def list_blocks(language):
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)


@pytest.mark.parametrize("block", list_blocks("sh"), ids=lambda block: block.split()[3])
def test_commands_of_the_page_run(block, pluribus, work):
    generator = np.random.RandomState(0)
    x = generator.rand(300, 2)
    price = 2e5 * x[:, 0] + 3e4 * generator.rand(300)
    rows = [f"{a},{b},{y}" for (a, b), y in zip(x.tolist(), price.tolist(), strict=True)]
    (work / "houses.csv").write_text("\n".join(["area,age,price", *rows]) + "\n")
    for line in block.splitlines():
        command = line.split("#")[0].removeprefix("pluribus ")
        answer = pluribus(command)
        assert answer.code == 0, (line, answer.err)
    if "houses" in block:
        assert '"low"' in answer.out


@pytest.mark.parametrize("block", list_blocks("python"))
def test_python_of_the_page_runs(block, capfd):
    exec(compile(block, "docs/decisions.md", "exec"), {})
    assert "(" in capfd.readouterr().out
