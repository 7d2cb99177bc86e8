import os
import platform
import subprocess
import sys

import pytest

FAULTS = """
import resource, torch
from pluribus.core.allocator import keep_freed_memory

def count_faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(6):
        torch.empty(2**24).fill_(1.0)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

before = count_faults()
assert keep_freed_memory()
print(before, count_faults())
"""
VARIABLES = {"MALLOC_MMAP_THRESHOLD_": str(2**30), "MALLOC_TRIM_THRESHOLD_": str(2**31)}


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc can be told so")
def test_tensors_in_kept_memory_ask_the_system_for_few_pages():
    """64 MB are 16,384 pages of 4 kB; by itself glibc gets and returns all of them, six times."""
    printed = [
        subprocess.run([sys.executable, "-c", FAULTS], env=env, stdout=subprocess.PIPE, check=True).stdout.split()
        for env in (os.environ, os.environ | VARIABLES)
    ]
    (returned, kept), (with_variables, _) = (map(int, counts) for counts in printed)
    assert kept < returned / 2
    assert with_variables < returned / 2
