"""Tests of unexpected errors, which a command shows with a traceback instead of a short message."""

from __future__ import annotations

import pytest

from hmb.cli.shared.errors import report
from hmb.defaults import BUG


def test_an_internal_error_gets_a_note_that_asks_for_a_report(capsys: pytest.CaptureFixture[str]) -> None:
    error = ZeroDivisionError("planted")
    assert report(error) is None
    assert [BUG in note for note in error.__notes__] == [True]
    assert capsys.readouterr().err == ""


def test_an_error_of_the_operating_system_is_not_called_a_bug() -> None:
    error = OSError("planted")
    assert report(error) is None
    assert not hasattr(error, "__notes__")
