"""How long the sweeps take: a fixed set of examples in the tests, new ones in every round of `make fuzz`."""

import os

from hypothesis import HealthCheck, Phase, settings

IS_FUZZ = "PLURIBUS_FUZZ" in os.environ
CHECKS = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much, HealthCheck.large_base_example]


def sweep(examples: int) -> settings:
    """Settings of one sweep: so many examples, always the same or, when fuzzing, five times as many new ones.

    Examples are not shrunk: each takes a command or two, and is small as it is drawn.
    """
    common = {"deadline": None, "database": None, "suppress_health_check": CHECKS, "phases": [Phase.generate]}
    return settings(max_examples=(5 if IS_FUZZ else 1) * examples, derandomize=not IS_FUZZ, **common)
