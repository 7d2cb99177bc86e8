import gc

import pytest

gc.disable()  # nothing that is imported or collected is garbage, and the tests run with the collector on


def pytest_configure(config):
    """Use one thread, because the networks are tiny. The process that only hands out tests needs no torch."""
    if hasattr(config, "workerinput") or not getattr(config.option, "numprocesses", None):
        import torch

        torch.set_num_threads(1)


def pytest_collection_finish():
    """Keep the collector away from modules and test items, which are hundreds of thousands of objects that stay."""
    gc.collect()
    gc.freeze()
    gc.enable()


@pytest.fixture(autouse=True)
def _seed():
    from pluribus.core.seeds import set_seed

    set_seed(0)  # torch.manual_seed would keep a stack trace, for a GPU that is not there
