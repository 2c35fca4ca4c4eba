"""Tests of checksums: values from the specifications, and how the extension module is loaded."""

import subprocess
import sys
from importlib.machinery import PathFinder

import crc32c as package
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hmb.records import crc


def test_the_values_of_the_specifications() -> None:
    """RFC 3720 (B.4) contains the CRC-32C of 32 zero bytes.

    The other expected values are the checksums of the text "123456789".
    """
    assert crc.crc32c(bytes(32)) == 0x8A9136AA
    assert crc.crc32c(b"123456789") == 0xE3069283
    assert crc.crc32(b"123456789") == 0xCBF43926


@given(st.binary(max_size=300), st.binary(max_size=300))
def test_a_checksum_continues_from_an_earlier_one(first: bytes, second: bytes) -> None:
    assert crc.crc32c(second, crc.crc32c(first)) == crc.crc32c(first + second) == package.crc32c(first + second)


def test_a_package_without_this_extension_module_is_imported_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PathFinder, "find_spec", lambda *_: None)
    assert crc._extension() is package


def test_records_do_not_load_the_modules_that_search_the_installed_packages() -> None:
    code = "import sys, hmb.records; print(sorted({'importlib.metadata', 'email'} & set(sys.modules)))"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"
