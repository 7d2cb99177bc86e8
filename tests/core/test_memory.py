import platform
import subprocess
import sys

import pytest

FAULTS = """
import resource, torch
from pluribus.core.memory import keep_freed
assert keep_freed()
def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(3):
    before = faults()
    torch.empty(2**24).fill_(1.0)
print(faults() - before)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc can be told so")
def test_a_tensor_in_kept_memory_asks_the_system_for_no_page():
    """64 MB are 16,384 pages of 4 kB; by itself glibc would get and return all of them each time."""
    done = subprocess.run([sys.executable, "-c", FAULTS], capture_output=True, text=True, check=True)
    assert int(done.stdout) < 1000
