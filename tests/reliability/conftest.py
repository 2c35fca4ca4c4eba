"""Fixtures of the storage tests that some of these tests use, too."""

from tests.storage.conftest import directory, open_log

__all__ = ["directory", "open_log"]
