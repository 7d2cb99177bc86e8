import os
from pathlib import Path

import pytest


@pytest.fixture
def real():
    """The folder of real data sets."""
    folder = os.environ.get("PLURIBUS_DATA")
    if not folder:
        pytest.skip("needs real data: set PLURIBUS_DATA")
    return Path(folder).expanduser()
