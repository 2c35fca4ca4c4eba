"""Tests of the line breaks that a page allows in a long name such as `group.consumer.heartbeat.interval.ms`."""

from __future__ import annotations

import re

import pytest

from tests.docs.conftest import BuildPages

CASES = [
    ("--from-beginning", ["--from-beginning"]),
    ("group.consumer.heartbeat.interval.ms", ["group.", "consumer.", "heartbeat.", "interval.ms"]),
    ("testing/test_cluster.py::test_a_node", ["testing/", "test_", "cluster.py::", "test_", "a_", "node"]),
    ("hmb groups --bootstrap-server localhost:9092", ["hmb groups --bootstrap-server localhost:9092"]),
    ("__consumer_offsets-0/00000000000000000000.log", ["__consumer_", "offsets-0/", "00000000000000000000.log"]),
]


@pytest.mark.parametrize(("text", "parts"), CASES)
@pytest.mark.parametrize("builder", ["html", "epub"])
def test_a_page_divides_a_word_only_at_certain_places(
    build_pages: BuildPages, builder: str, text: str, parts: list[str]
) -> None:
    app = build_pages({"index": f"# Page\n\nThe `{text}`.\n"}, "code_words", builder=builder)
    (page,) = [path for path in app.outdir.iterdir() if path.stem == "index" and path.suffix in (".html", ".xhtml")]
    (code,) = re.findall(r"<code[^>]*>(.*?)</code>", page.read_text())
    assert [re.sub("<[^>]*>", "", part) for part in code.split("<wbr/>")] == parts
