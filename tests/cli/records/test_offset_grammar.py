"""Tests of the option `-o`: each form of a start offset and an end offset, and each error."""

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hmb.cli.records.offset_grammar import Span, merge, parse_span
from hmb.client.offsets import AtTime, FromStart, check_offset, check_until

NOW = 1_800_000_000_000  # 2027-01-15T08:00:00Z


@pytest.fixture(autouse=True)
def _now(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("time.time_ns", lambda: NOW * 1_000_000)


DAY = 24 * 3_600_000
VALENTINE = 1_644_796_800_000  # 2022-02-14


@pytest.mark.parametrize(
    ("text", "span"),
    [
        ("start", Span("earliest")),
        ("beginning", Span("earliest")),
        ("oldest", Span("earliest")),
        ("end", Span("latest")),
        ("latest", Span("latest")),
        ("stored", Span(stored=True)),
        ("12", Span(12)),
        ("0", Span(0)),
        ("-12", Span(-12)),
        ("-0", Span("latest")),
        ("+12", Span(FromStart(12))),
        ("12:40", Span(12, 40)),
        ("12:", Span(12)),
        (":40", Span("earliest", 40)),
        (":end", Span("earliest", "end")),
        ("12:end", Span(12, "end")),
        ("-5:end", Span(-5, "end")),
        ("+5:40", Span(FromStart(5), 40)),
        ("start:end", Span("earliest", "end")),
        ("stored:end", Span(stored=True, until="end")),
        ("@1644796800000", Span(AtTime(VALENTINE))),
        ("@1644796800", Span(AtTime(VALENTINE))),
        ("@2022-02-14", Span(AtTime(VALENTINE))),
        ("@2022-02-14:", Span(AtTime(VALENTINE))),
        ("@2022-02-14T00:00:00Z", Span(AtTime(VALENTINE))),
        ("@2022-02-14T01:30:00.001+01:30", Span(AtTime(VALENTINE + 1))),
        ("@2022-02-14 00:01", Span(AtTime(VALENTINE + 60_000))),
        ("@2022-02-14:1h", Span(AtTime(VALENTINE), AtTime(VALENTINE + 3_600_000))),
        ("@2022-02-14T00:00:2022-02-15T00:00:00Z", Span(AtTime(VALENTINE), AtTime(VALENTINE + DAY))),
        ("@-48h:-24h", Span(AtTime(NOW - 2 * DAY), AtTime(NOW - DAY))),
        ("@-1m:end", Span(AtTime(NOW - 60_000), "end")),
        ("@:-1h", Span("earliest", AtTime(NOW - 3_600_000))),
        ("@:end", Span("earliest", "end")),
        ("@-1m3ms", Span(AtTime(NOW - 60_003))),
        ("@-1.5d", Span(AtTime(NOW - DAY * 3 // 2))),
        ("@-999999d", Span(AtTime(0))),
        ("s@5", Span(AtTime(5))),
        ("s@2022-02-14", Span(AtTime(VALENTINE))),
        ("e@1644796800000", Span(until=AtTime(VALENTINE))),
        ("e@-1h", Span(until=AtTime(NOW - 3_600_000))),
    ],
)
def test_where_to_start_and_where_to_stop(text: str, span: Span) -> None:
    assert parse_span(text) == span


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("middle", "'middle': the value must begin with start, end, stored or a number"),
        ("", "'' has none of these forms: start, end"),
        (":", "':' has none of these forms"),
        ("1:2:3", "'1:2:3' has none of these forms"),
        ("5:5", "the end offset 5 must be greater than the start offset 5"),
        ("end:7", "no records come after the end"),
        (str(2**63), "does not fit into an offset (64 bits)"),
        ("9" * 5000, "the value must begin with"),
        ("@", "a time is missing after the @"),
        ("@:", "a time is missing after the @"),
        ("@yesterday", "has none of these forms"),
        ("@2022-02-30", "2022-02-30 is not a date"),
        ("@2022-02-14:-1h", "the end time must be later than the start time"),
        ("@" + "9" * 400 + "h", "is too long for a duration"),
        ("s@never", "a time must follow the @"),
        ("s@", "a time must follow the @"),
        ("٣", "has none of these forms"),
    ],
)
def test_mistakes(text: str, message: str) -> None:
    with pytest.raises(click.BadParameter, match=r".*") as caught:
        parse_span(text)
    assert message in caught.value.message


def test_several() -> None:
    assert merge(()) == Span()
    assert merge((parse_span("s@5"), parse_span("e@9"))) == Span(AtTime(5), AtTime(9))
    assert merge((parse_span("stored"), parse_span("e@9"))) == Span(until=AtTime(9), stored=True)
    for first, second in (("s@5", "12"), ("stored", "12"), ("e@5", ":7")):
        with pytest.raises(click.UsageError, match="two -o options set a"):
            merge((parse_span(first), parse_span(second)))


@given(st.text(alphabet="0123456789:@+-seTZhmd. startendoldstored", max_size=24))
def test_any_text_is_parsed_or_refused(text: str) -> None:
    try:
        span = parse_span(text)
    except click.BadParameter:
        return
    if span.start is not None:
        check_offset(span.start)
    check_until(span.until)
