"""Fixtures of the storage tests, which some of the tests here use."""

from tests.storage.conftest import directory, open_log

__all__ = ["directory", "open_log"]
