"""The queue: rows share runs, answers come back to their senders, and one bad request spoils no other."""

import asyncio
import threading

import pytest
import torch

from pluribus.serving.batching import Batcher
from pluribus.serving.errors import RequestError
from pluribus.serving.metrics import ServerMetrics

from .loops import run_apart


class Doubling:
    """A model that doubles a number, refuses 13, and waits until it is told to go on."""

    def __init__(self, may_run=True):
        self.runs, self.may_run, self.began = [], threading.Event(), threading.Event()
        if may_run:
            self.may_run.set()

    def __call__(self, rows):
        self.began.set()
        assert self.may_run.wait(20)
        self.runs.append(rows[0].tolist())
        if 13 in self.runs[-1]:
            raise IndexError("index out of range: 13")
        return [{"value": 2 * value} for value in self.runs[-1]]


def rows(*values):
    return [torch.tensor(values)]


def run(model, use, max_batch=4, max_wait=0.0, max_waiting=100):
    """What `use(batcher)` returns, with a batcher that runs meanwhile."""

    async def main():
        batcher = Batcher(model, ServerMetrics(), max_batch, max_wait, max_waiting)
        batcher.start()
        try:
            return await asyncio.wait_for(use(batcher), 20)
        finally:
            model.may_run.set()
            await batcher.stop()

    return run_apart(main())


async def wait_for_rows(batcher, count):
    while batcher.waiting_rows < count:
        await asyncio.sleep(0.001)


def values(answers):
    return [answer["value"] for answer in answers]


def test_requests_that_wait_share_a_run_in_their_order():
    model = Doubling(may_run=False)

    async def use(batcher):
        first = asyncio.create_task(batcher.answer_rows(rows(0)))
        await asyncio.to_thread(model.began.wait, 20)
        others = [asyncio.create_task(batcher.answer_rows(rows(*some))) for some in ((1,), (2, 3), (4,), (5,))]
        await wait_for_rows(batcher, 5)
        model.may_run.set()
        return await asyncio.gather(first, *others)

    found = run(model, use)
    assert model.runs == [[0], [1, 2, 3, 4], [5]]
    assert [values(answers) for answers in found] == [[0], [2], [4, 6], [8], [10]]


def test_a_run_waits_for_others_and_begins_at_once_when_it_is_full():
    model = Doubling()

    async def use(batcher):
        return await asyncio.gather(*(batcher.answer_rows(rows(value)) for value in range(4)))

    run(model, use, max_wait=15.0)  # longer than the test may take with one more wait
    assert model.runs == [[0, 1, 2, 3]]


def test_a_lone_request_waits_no_longer_than_it_may():
    model = Doubling()
    assert values(run(model, lambda batcher: batcher.answer_rows(rows(1)), max_wait=0.01)) == [2]


def test_a_large_request_is_answered_in_several_runs():
    model = Doubling()
    assert values(run(model, lambda batcher: batcher.answer_rows(rows(*range(10))))) == [2 * value for value in range(10)]
    assert [len(some) for some in model.runs] == [4, 4, 2]


def test_rows_that_the_model_refuses_are_refused_alone():
    model = Doubling(may_run=False)

    async def use(batcher):
        first = asyncio.create_task(batcher.answer_rows(rows(0)))
        await asyncio.to_thread(model.began.wait, 20)
        others = [asyncio.create_task(batcher.answer_rows(rows(value))) for value in (1, 13, 2)]
        await wait_for_rows(batcher, 3)
        model.may_run.set()
        return await asyncio.gather(first, *others, return_exceptions=True)

    _, one, bad, two = run(model, use)
    assert (values(one), values(two)) == ([2], [4])
    assert isinstance(bad, RequestError)
    assert (bad.status, bad.message) == (422, "the model cannot answer these rows: index out of range: 13")


def test_a_full_queue_refuses_at_once_and_takes_rows_again_later():
    model = Doubling(may_run=False)

    async def use(batcher):
        first = asyncio.create_task(batcher.answer_rows(rows(0)))
        await asyncio.to_thread(model.began.wait, 20)
        second = asyncio.create_task(batcher.answer_rows(rows(1, 2)))
        await wait_for_rows(batcher, 2)
        with pytest.raises(RequestError) as refused:
            await batcher.answer_rows(rows(3, 4))
        model.may_run.set()
        await asyncio.gather(first, second)
        return refused.value, values(await batcher.answer_rows(rows(3, 4)))

    refused, later = run(model, use, max_waiting=3)
    assert (refused.status, refused.retry_after) == (503, 1)
    assert later == [6, 8]


def test_stopping_answers_what_waits():
    model = Doubling(may_run=False)

    async def main():
        batcher = Batcher(model, ServerMetrics(), 4, 0.0, 100)
        batcher.start()
        tasks = [asyncio.create_task(batcher.answer_rows(rows(value))) for value in range(9)]
        await asyncio.to_thread(model.began.wait, 20)
        stopping = asyncio.create_task(batcher.stop())
        model.may_run.set()
        await asyncio.wait_for(stopping, 20)
        assert not batcher.is_running
        return await asyncio.gather(*tasks)

    assert [values(answers) for answers in run_apart(main())] == [[2 * value] for value in range(9)]


def test_a_sender_that_has_gone_stops_nothing():
    model = Doubling(may_run=False)

    async def use(batcher):
        gone = asyncio.create_task(batcher.answer_rows(rows(0)))
        await asyncio.to_thread(model.began.wait, 20)
        gone.cancel()
        model.may_run.set()
        return values(await batcher.answer_rows(rows(7)))

    assert run(model, use) == [14]
