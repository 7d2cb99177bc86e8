import pytest
import torch

torch.set_num_threads(1)  # the networks are tiny


@pytest.fixture(autouse=True)
def _seed():
    torch.manual_seed(0)
