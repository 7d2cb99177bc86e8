import os
import platform
import subprocess
import sys

import pytest

FAULTS = """
import resource, sys, torch
from pluribus.core.allocator import keep_freed_memory
if sys.argv[1] == "keep":
    assert keep_freed_memory()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(20):
    torch.empty(2**24).fill_(1.0)
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""
VARIABLES = {"MALLOC_MMAP_THRESHOLD_": str(2**30), "MALLOC_TRIM_THRESHOLD_": str(2**31)}


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc can be told so")
def test_tensors_in_kept_memory_ask_the_system_for_few_pages():
    """64 MB are 16,384 pages of 4 kB; by itself glibc gets and returns all of them, twenty times."""
    asked = {
        way: int(subprocess.run([sys.executable, "-c", FAULTS, way], env=env, stdout=subprocess.PIPE, check=True).stdout)
        for way, env in (("keep", None), ("return", None), ("variables", os.environ | VARIABLES))
    }
    assert asked["keep"] < asked["return"] / 2
    assert asked["variables"] < asked["return"] / 2
