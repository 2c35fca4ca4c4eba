"""The fixtures `directory` and `open_log` of the storage tests, which some reliability tests use."""

from tests.storage.conftest import directory, open_log

__all__ = ["directory", "open_log"]
