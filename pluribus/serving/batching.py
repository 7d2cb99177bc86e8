"""Dynamic batching: requests that arrive within a short time share one run of the model.

The answer of a row does not depend on the rows beside it, but for rounding: a matrix product of other sizes may add in another
order. Rows that the model refuses are refused alone.
"""

import asyncio
import contextlib
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from .errors import RequestError
from .metrics import ServerMetrics

Answers = list[dict[str, Any]]


@dataclass(eq=False)
class Waiting:
    """The rows of a request, and where their answers go."""

    rows: Sequence[Tensor]
    answers: "asyncio.Future[Answers]"
    arrived: float = field(default_factory=time.perf_counter)

    def __len__(self) -> int:
        return len(self.rows[0])


class Batcher:
    """A bounded queue of requests, and one thread that answers them.

    A run of the model takes requests in their order, as long as they have at most `max_batch` rows together; it begins
    `max_wait` seconds after the first of them has arrived, or when they are that many. A request with more rows is answered
    in several runs.
    """

    def __init__(
        self,
        answer: Callable[[Sequence[Tensor]], Answers],
        metrics: ServerMetrics,
        max_batch: int,
        max_wait: float,
        max_waiting: int,
    ) -> None:
        self.answer, self.metrics = answer, metrics
        self.max_batch, self.max_wait, self.max_waiting = max_batch, max_wait, max_waiting
        self.queue: deque[Waiting] = deque()
        self.waiting_rows, self.is_busy = 0, False
        self.arrived, self.is_full_batch = asyncio.Event(), asyncio.Event()
        self.pool = ThreadPoolExecutor(1, "pluribus-model")
        self.task: asyncio.Task[None] | None = None

    @property
    def is_running(self) -> bool:
        """Whether requests will be answered."""
        return self.task is not None and not self.task.done()

    def start(self) -> None:
        """Begin to answer; an event loop must run."""
        self.task = asyncio.get_running_loop().create_task(self._work())

    async def stop(self) -> None:
        """Answer what waits, and end."""
        while self.is_running and (self.queue or self.is_busy):
            await asyncio.sleep(0.005)
        if self.task is not None:
            self.task.cancel()
            await asyncio.wait([self.task])
        self.pool.shutdown()

    async def answer_rows(self, rows: Sequence[Tensor]) -> Answers:
        """The answers to the rows of one request. Raises RequestError if the queue is full, or the model refuses the rows."""
        count = len(rows[0])
        if self.waiting_rows + count > self.max_waiting:
            raise RequestError(503, f"{self.waiting_rows:,} rows wait already: come again", retry_after=1)
        waiting = Waiting(rows, asyncio.get_running_loop().create_future())
        self.queue.append(waiting)
        self._count(count)
        self.arrived.set()
        return await waiting.answers

    async def _work(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            await self.arrived.wait()
            await self._wait_for_more()
            batch = self._take()
            self.is_busy = True
            found = await loop.run_in_executor(self.pool, self._answer_batch, batch)
            self.is_busy = False
            for waiting, answers in zip(batch, found, strict=True):
                if waiting.answers.done():  # its sender has gone
                    continue
                if isinstance(answers, Exception):
                    waiting.answers.set_exception(answers)
                else:
                    waiting.answers.set_result(answers)

    async def _wait_for_more(self) -> None:
        left = self.queue[0].arrived + self.max_wait - time.perf_counter()
        if left > 0 and self.waiting_rows < self.max_batch:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self.is_full_batch.wait(), left)

    def _take(self) -> list[Waiting]:
        batch = [self.queue.popleft()]
        rows = len(batch[0])
        while self.queue and rows + len(self.queue[0]) <= self.max_batch:
            batch.append(self.queue.popleft())
            rows += len(batch[-1])
        self._count(-rows)
        if not self.queue:
            self.arrived.clear()
        return batch

    def _count(self, rows: int) -> None:
        self.waiting_rows += rows
        self.metrics.waiting_rows.set(self.waiting_rows)
        if self.waiting_rows >= self.max_batch:
            self.is_full_batch.set()
        else:
            self.is_full_batch.clear()

    def _answer_batch(self, batch: Sequence[Waiting]) -> list[Answers | Exception]:
        """The answers of each request, or why there are none; this runs in the thread of the model."""
        try:
            together = [torch.cat(parts) for parts in zip(*(waiting.rows for waiting in batch), strict=True)]
            answers = self._run(together)
        except Exception as error:  # the operations of a model raise what they like, as on a token that is not in its table
            if len(batch) > 1:
                return [found for waiting in batch for found in self._answer_batch([waiting])]
            reason = (str(error).strip() or type(error).__name__).splitlines()[0]
            return [RequestError(422, f"the model cannot answer these rows: {reason}")]
        found: list[Answers | Exception] = []
        for waiting in batch:
            found.append(answers[: len(waiting)])
            answers = answers[len(waiting) :]
        return found

    def _run(self, rows: Sequence[Tensor]) -> Answers:
        answers: Answers = []
        for part in zip(*(each.split(self.max_batch) for each in rows), strict=True):
            began = time.perf_counter()
            answers += self.answer(part)
            self.metrics.count_run(len(part[0]), time.perf_counter() - began)
        return answers
