import gc

import pytest
import torch

torch.set_num_threads(1)  # the networks are tiny
gc.disable()  # nothing that is imported or collected is garbage, and the tests run with the collector on


def pytest_collection_finish():
    """Keep the collector away from modules and test items, which are hundreds of thousands of objects that stay."""
    gc.collect()
    gc.freeze()
    gc.enable()


@pytest.fixture(autouse=True)
def _seed():
    torch.manual_seed(0)
