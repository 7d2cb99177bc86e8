"""An invented clock, for tests of timing."""

import time

import pytest


class Clock:
    """A machine on which work takes as long as we say, times how busy it is."""

    def __init__(self):
        self.now, self.busy, self.log = 0.0, 1.0, []

    def work(self, name, seconds):
        def run():
            self.now += seconds * self.busy
            self.log.append(name)

        return run


@pytest.fixture
def clock(monkeypatch):
    made = Clock()
    monkeypatch.setattr(time, "perf_counter", lambda: made.now)
    return made
