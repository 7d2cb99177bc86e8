"""Every statement of the documents has a test: the table of CONTRIBUTING.md says which.

A row of the table quotes a few words of each statement and names the tests that fail if it is false. A statement is a sentence,
a row of a table or the comment of an example. Recorded results are left out: tests compare them with the files they come from.
"""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
LESSONS = {"index.md", "tutorial.md", "choose.md", "glossary.md"}
"""Pages that teach, as those in the folders of docs/ do: their code runs, and their numbers are generated."""
DOCUMENTS = ["README.md", *sorted(f"docs/{path.name}" for path in (ROOT / "docs").glob("*.md") if path.name not in LESSONS)]
NO_PROMISES = [  # they say whom or what something is for, how to read on, or what was done once
    "For engineers who have a model",
    "Equal epochs favour methods that cost more",
    "The tables that stood here before",
    "M is the number of members, K of draws, m of copies",
    "| method | trains at |",
    "Mohamed et al., *Inner Ensemble Networks*",
    "| page | what it is for |",
    "| [Tutorial](docs/tutorial.md) |",
    "| [Choose a method](docs/choose.md)",
    "| [How to](docs/how-to/your-model.md)",
    "| [From data to a trained run](docs/training.md)",
    "| [Your network](docs/your-network.md)",
    "| [Networks by others](docs/networks.md)",
    "| [Recorded results](docs/results.md)",
    "Apache-2.0.",
    "How to add a method: [CONTRIBUTING.md]",
    "What changed: [CHANGELOG.md]",
    "Whose files may do what: [SECURITY.md]",
    "A probability or a spread says how unsure",
    "What to do with it is another question",
    "In Python, with any network and any loop",
    "With scikit-learn, on arrays or DataFrames",
    "| option | what it promises for rows like",
    "The promises are for rows that come from",
    "On corrupted images, next year's customers",
    "A class that is rare, or a group that is hard",
    "make this better, and do not make it exact",
    "are used up a little",
    "For a promise to others",
    "A machine that is never quiet",
    "Profiles showed what else took time",
]


def read_document(name: str) -> str:
    return (ROOT / name).read_text()


def list_statements(text: str) -> list[str]:
    """The sentences, rows of tables and comments of examples in a Markdown text."""
    text = re.sub(r"<!-- (recorded results|cost table).*?<!-- end", "<!--", text, flags=re.DOTALL)
    text = re.sub(r"<!-- setup:.*?-->", "", text, flags=re.DOTALL)  # code that readers do not see
    found: list[str] = []
    paragraph: list[str] = []

    def end_paragraph() -> None:
        sentences = re.split(r"(?<=[.!?])(?:\*\*)?\s+(?=\W*[A-Z`])", " ".join(paragraph))
        found.extend(sentence for sentence in sentences if sentence.strip())
        paragraph.clear()

    in_code = False
    for line in map(str.strip, text.splitlines()):
        is_text = not (in_code or not line or line.startswith(("#", "<!--", "|", "```")))
        if not is_text or line.startswith("- "):
            end_paragraph()
        if is_text:
            paragraph.append(line.removeprefix("- "))
        elif line.startswith("```"):
            in_code = not in_code
        elif in_code and "# " in line:
            found.append(line.partition("# ")[2])
        elif line.startswith("|") and not set(line) <= set("|:- "):
            found.append(line)
    end_paragraph()
    return found


def read_table() -> list[tuple[list[str], list[str]]]:
    """The words and the tests of each row of the table of promises."""
    section = read_document("CONTRIBUTING.md").partition("\n## Promises\n")[2].partition("\n## ")[0]
    rows = [line.strip("|").split("|") for line in section.splitlines() if line.startswith("|")][2:]
    return [([piece.strip() for piece in words.split(" · ")], re.findall(r"`([^`]+)`", tests)) for words, tests in rows]


def list_tests(file: Path) -> set[str]:
    """The names of the test functions in a file."""
    return {node.name for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, ast.FunctionDef)}


def plain(text: str) -> str:
    """The text without marks and line breaks, to look for words in."""
    return re.sub(r"\s+", " ", re.sub(r"[`*|]", "", text)).strip()


def test_statements_are_sentences_rows_and_comments():
    prose = "# Title\n\nOne thing holds. `Two`\nhold, too: 1.5 times.\n\n- A point.\n\n"
    text = prose + "```\nrun(x)  # what it does\n```\n\n| a |\n|---|\n"
    assert list_statements(text) == ["One thing holds.", "`Two` hold, too: 1.5 times.", "A point.", "what it does", "| a |"]


@pytest.mark.parametrize("document", DOCUMENTS)
def test_every_statement_has_a_row_in_the_table_of_promises(document):
    words = [plain(piece) for pieces, _ in read_table() for piece in pieces] + [plain(piece) for piece in NO_PROMISES]
    missing = [text for text in list_statements(read_document(document)) if not any(piece in plain(text) for piece in words)]
    assert not missing, "name a test for each in the table of CONTRIBUTING.md:\n" + "\n".join(missing)


def test_the_words_of_the_table_still_stand_in_one_statement_each():
    """A promise whose words have changed is looked at again."""
    said = [plain(text) for name in DOCUMENTS for text in list_statements(read_document(name))]
    for piece in [piece for pieces, _ in read_table() for piece in pieces] + NO_PROMISES:
        assert len([text for text in said if plain(piece) in text]) == 1, piece


def test_the_tests_of_the_table_are_there():
    for pieces, tests in read_table():
        assert tests, pieces
        for test in tests:
            file, _, name = test.partition("::")
            assert name in list_tests(ROOT / "tests" / file), test


def test_the_table_is_short():
    assert 20 < len(read_table()) <= 38  # with its head, forty lines
