r"""Tests that the broker reads properties files as Java does."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hmb.storage.state import checkpoints
from hmb.storage.state.manifest import DamagedStateFile
from hmb.storage.state.properties import PropertiesError, read_properties


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "x.properties"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a=1\nb: 2\nc 3\nd\t=\t4\n", {"a": "1", "b": "2", "c": "3", "d": "4"}),
        ("# no\n  ! no\n\n \t\na=#1\n", {"a": "#1"}),
        ("a=b=c\nd=e:f g", {"a": "b=c", "d": "e:f g"}),
        ("alone\nempty=\n=nameless", {"alone": "", "empty": "", "": "nameless"}),
        ("a=1,\\\n   2,\\\r\n\t3\nb=4", {"a": "1,2,3", "b": "4"}),
        ("a=1\\\n# goes on\n# does not", {"a": "1# goes on"}),
        ("a=1\\\\\nb=2\\", {"a": "1\\", "b": "2"}),
        ("a\\=b\\:c\\ d = e\\=f", {"a=b:c d": "e=f"}),
        ("a=\\t\\n\\r\\f\\q\\u00e9\\u20AC\\\\u0041", {"a": "\t\n\r\fq\u00e9\u20ac\\u0041"}),
        ("a=1\na=2", {"a": "2"}),
        ("a = in the middle \t\n", {"a": "in the middle"}),
        ("a=\u00fc\u2028\x0b\x85b", {"a": "\u00fc\u2028\x0b\x85b"}),
        ("", {}),
        ("\\", {"": ""}),
    ],
)
def test_properties_as_java_reads_them(path: Path, text: str, expected: dict[str, str]) -> None:
    path.write_bytes(text.encode())
    assert read_properties(path) == expected


@given(st.text(st.sampled_from("ab=: \\#!\n\r\tu0"), max_size=30))
def test_whatever_is_written_is_read_or_refused(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    path = tmp_path_factory.getbasetemp() / "any.properties"
    path.write_bytes(text.encode())
    try:
        read_properties(path)
    except PropertiesError as error:
        assert str(error).startswith(f"{path}, line ")


@pytest.mark.parametrize(
    ("data", "message"),
    [(b"a=b\nc=\\\n\\u12", r", line 2: \u without four hexadecimal digits"), (b"a=\xff", ": the file is not text")],
)
def test_a_file_that_is_not_a_properties_file(path: Path, data: bytes, message: str) -> None:
    path.write_bytes(data)
    with pytest.raises(PropertiesError) as caught:
        read_properties(path)
    assert str(caught.value) == f"{path}{message}"


def test_the_identity_is_read_by_the_same_rules(path: Path) -> None:
    path.write_text("version: 1\ncluster.id = a\\=b\n")
    assert checkpoints.read_cluster_id(path) == "a=b"
    path.write_bytes(b"version=1\ncluster.id=\xff\n")
    with pytest.raises(DamagedStateFile, match="the file is not text"):
        checkpoints.read_cluster_id(path)
