import pytest


@pytest.fixture(scope="package", autouse=True)
def _short_timings():
    """A measurement of latency calls a network once a repeat: here its precision does not matter."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("pluribus.analysis.timing.MIN_SECONDS", 0.0)
        yield
