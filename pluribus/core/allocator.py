"""Freed memory, kept for the next tensor.

Above some size glibc takes every block from the system and returns it as soon as it is freed, so that the next tensor pays for
each of its pages anew: with batches of 640 images that is a third of the time of a ResNet-20's forward pass
(benchmarks/results/parts.md).
"""

import ctypes
import sys

MMAP_THRESHOLD, TRIM_THRESHOLD = -3, -1  # the names are malloc.h's


def keep_freed_memory() -> bool:
    """Let this process keep memory that it frees; whether the C library does so. For programs of one's own: what a process
    keeps, no other can have, and so the library never does this by itself. The command line does."""
    if sys.platform != "linux":
        return False
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):  # another C library
        return False
    return bool(mallopt(MMAP_THRESHOLD, 2**30)) and bool(mallopt(TRIM_THRESHOLD, 2**31 - 1))
