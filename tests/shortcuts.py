"""What tests do not wait for: measurements and intervals whose precision does not matter to them."""

import contextlib
from collections.abc import Iterator

import pytest

from pluribus.metrics import intervals

DRAWS = 30


@contextlib.contextmanager
def shorten_measurements() -> Iterator[None]:
    """Latency is measured with one call a repeat, and the intervals of an evaluation are bootstrapped with few draws."""

    def bootstrap_briefly(*rows_and_statistic, **options):
        return intervals.bootstrap(*rows_and_statistic, **options | {"draws": DRAWS})

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("pluribus.analysis.timing.MIN_SECONDS", 0.0)
        patch.setattr("pluribus.analysis.scores.bootstrap", bootstrap_briefly)
        yield
