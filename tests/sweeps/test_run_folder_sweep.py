"""Every file of a finished run and of a comparison is mutated, and every command is run on the folder.

A command answers as it did before, or it refuses with exit code 2 and one sentence. It never ends with a traceback, runs code
from a file, writes outside the folder, or changes a file that it only reads. After damage the answer is never another one; a
hostile file, whose digest is right, may give another answer.
"""

import os
from pathlib import Path

import pytest
from hypothesis import given, note
from hypothesis import strategies as st

from ..shortcuts import shorten_measurements
from . import findings
from .commands import check_manners
from .folders import Command, Subject, build_subjects, take_stock
from .mutations import Mutation, draw_mutations
from .profiles import sweep


@pytest.fixture(scope="module")
def subjects(tmp_path_factory):
    before = os.getcwd()
    with shorten_measurements():
        yield build_subjects(tmp_path_factory.mktemp("sweep") / "home")
    os.chdir(before)


@pytest.fixture(scope="module")
def cases(subjects):
    """Strategy of the cases: a folder, one of its files, a mutation of this file, and a command."""

    def draw_case(name):
        files = st.sampled_from(subjects[name].list_files())
        commands = st.sampled_from(subjects[name].commands)
        mutated = files.flatmap(lambda file: st.tuples(st.just(file), draw_mutations(file)))
        return st.tuples(st.just(name), mutated, commands)

    return st.sampled_from(["digits", "houses", "flowers", "stopped", "comparison", "comparison"]).flatmap(draw_case)


def test_a_mutated_folder_answers_as_before_or_is_refused(subjects, cases, tmp_path_factory):
    room = tmp_path_factory.mktemp("room")

    @sweep(examples=30)
    @given(cases)
    def check(case):
        name, (file, mutation), command = case
        example = f"{name}/{file}: {mutation}; {command.name}"
        note(example)
        findings.report(try_mutation(subjects[name], file, mutation, command, room), example)

    check()


def try_mutation(subject: Subject, file: str, mutation: Mutation, command: Command, room: Path) -> str:
    """Mutate one file of a copy of the folder, run the command, and return what is wrong; "" if nothing is."""
    work = room / "a" / "b"
    subject.copy(work)
    os.chdir(work)
    done = mutation.apply(work / "it" / file)
    before = take_stock(room)
    try:
        answer, value = command.run()
    except ValueError as error:
        return f"{done}: exit code 0 with an answer that cannot be read: {error}"
    complaint = check_manners(answer, command.may_report)
    if complaint:
        return f"{done}: {complaint}"
    is_same = answer.code != 0 or value == subject.answers[command.name] or command.admits(value)
    if not is_same and not mutation.is_hostile:
        return f"{done}: another answer without a word:\n{answer.out[:600]}\n{answer.err[:600]}"
    after = take_stock(room)
    changed = sorted(name for name in before.keys() | after.keys() if before.get(name) != after.get(name))
    wrong = [name for name in changed if not (name.startswith("a/b/it/") and command.may_write(name.removeprefix("a/b/it/")))]
    if wrong:
        return f"{done}: exit code {answer.code}, and it wrote {', '.join(wrong)}\n{answer.err[:600]}"
    return ""
