"""Seeds from seeds: what is drawn at a step is a function of the run's seed and the step, and of nothing before it.

So a run that was killed goes on exactly: there is no generator's state to lose.
"""

import torch

MASK = 2**64 - 1


def set_seed(seed: int) -> None:
    """`torch.manual_seed` without what it does for accelerators that do not run: it keeps a stack trace for each of them."""
    torch.default_generator.manual_seed(seed)
    if torch.cuda.is_initialized():
        torch.cuda.manual_seed_all(seed)
    if torch.backends.mps.is_available():
        torch.mps.manual_seed(seed)


def derive_seed(seed: int, *place: int) -> int:
    """A seed for one place (an epoch, a step, a process …) of the run with `seed`; different places, unrelated seeds.

    The finaliser of SplitMix64 (Steele, Lea & Flood, 2014) over the numbers in turn.

    >>> derive_seed(0, 1, 2) == derive_seed(0, 1, 2), derive_seed(0, 1, 2) == derive_seed(0, 2, 1)
    (True, False)
    """
    state = 0
    for number in (seed, *place):
        state = (state + number + 0x9E3779B97F4A7C15) & MASK
        state = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        state = ((state ^ (state >> 27)) * 0x94D049BB133111EB) & MASK
        state ^= state >> 31
    return state >> 1  # torch takes seeds of 63 bits
