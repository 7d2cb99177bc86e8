import pytest

from ..shortcuts import shorten_measurements


@pytest.fixture(scope="package", autouse=True)
def _short_measurements():
    with shorten_measurements():
        yield
