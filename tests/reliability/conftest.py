"""Imports the fixtures `directory` and `open_log` of the storage tests, because some reliability tests use them."""

from tests.storage.conftest import directory, open_log

__all__ = ["directory", "open_log"]
