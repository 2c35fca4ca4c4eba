"""Tests of Kafka's rules about versions of a message, with a message that exists only in this test."""

import pytest

from hmb.protocol import fields as t
from hmb.protocol.api_keys import ApiKey
from hmb.protocol.errors import ErrorCode, KafkaError, ProtocolError
from hmb.protocol.fields import version_range
from hmb.protocol.schema import Request, Response, Struct


class Order(Request, api_key=ApiKey.PRODUCE, versions="0-3", flexible="2+"):
    """A message that exists only in this test.

    Version 1 adds `note` and `urgent`. Version 2 is flexible, and adds `origin` and `extras`. Version 3 removes
    `number`.
    """

    class Item(Struct):
        name:  str              = t.string()
        sizes: list[int] | None = t.array(t.int16, nullable="1+")

    class Place(Struct):
        x: int = t.int32(default=-1)

    number: int          = t.int32("0-2", default=7)
    note:   str | None   = t.string("1+", nullable="2+", ignorable=True)
    urgent: bool         = t.boolean("1+")
    items:  list[Item]   = t.array(Item)
    origin: Place        = t.struct(Place, "2+", tag=1)
    extras: list[str]    = t.array(t.string, "2+", tag=0)
    where:  Place | None = t.struct(Place, "3+", nullable="3+", default=None)


@pytest.mark.parametrize(
    ("text", "inside", "outside"),
    [("3+", [3, 32767], [2]), ("0-2", [0, 2], [3]), ("5", [5], [4, 6]), ("none", [], [0, 1])],
)
def test_version_ranges(text: str, inside: list[int], outside: list[int]) -> None:
    assert all(version in version_range(text) for version in inside)
    assert not any(version in version_range(text) for version in outside)


@pytest.mark.parametrize(
    ("version", "message", "wire"),
    [
        (0, Order(), "00000007 00000000"),
        (0, Order(items=[Order.Item(name="a", sizes=[1])]), "00000007 00000001 0001 61 00000001 0001"),
        (1, Order(number=1, note="n", urgent=True), "00000001 0001 6e 01 00000000"),
        (2, Order(number=1, note=None), "00000001 00 00 01 00"),
        (2, Order(items=[Order.Item(sizes=None)]), "00000007 01 00 02 01 00 00 00"),
        (2, Order(extras=["a"]), "00000007 01 00 01 01 00 03 02 02 61"),
        (2, Order(origin=Order.Place(x=1)), "00000007 01 00 01 01 01 05 00000001 00"),
        (2, Order(extras=[""], origin=Order.Place(x=1)), "00000007 01 00 01 02 00 02 02 01 01 05 00000001 00"),
        (3, Order(), "01 00 01 ff 00"),
        (3, Order(where=Order.Place(x=2)), "01 00 01 01 00000002 00 00"),
    ],
)
def test_versions_on_the_wire(version: int, message: Order, wire: str) -> None:
    assert message.encode(version) == bytes.fromhex(wire)
    assert Order.decode(bytes.fromhex(wire), version) == message


def test_a_missing_field_decodes_to_its_default() -> None:
    order = Order.decode(bytes(8), 0)
    assert (order.number, order.note, order.urgent, order.where) == (0, "", False, None)
    assert (order.origin, order.extras) == (Order.Place(x=-1), [])
    order.extras.append("mine alone")
    assert Order.decode(bytes(8), 0).extras == Order().extras == []


def test_a_field_that_the_version_lacks_cannot_be_encoded() -> None:
    with pytest.raises(KafkaError, match=r"there is no Order\.urgent in version 0, but its value is True") as caught:
        Order(urgent=True).encode(0)
    assert caught.value.code is ErrorCode.UNSUPPORTED_VERSION
    with pytest.raises(KafkaError, match=r"Order\.number in version 3"):
        Order(number=1).encode(3)
    with pytest.raises(KafkaError, match=r"Order\.origin in version 1"):
        Order(origin=Order.Place(x=1)).encode(1)
    assert Order(note="left out, since it is ignorable").encode(0) == Order().encode(0)


def test_a_version_that_does_not_exist() -> None:
    with pytest.raises(KafkaError, match="Order has no version 4"):
        Order().encode(4)


def test_null_where_it_is_not_allowed() -> None:
    with pytest.raises(ValueError, match=r"Order\.note in version 1 cannot be None"):
        Order(note=None).encode(1)
    with pytest.raises(ProtocolError, match=r"Order\.note in version 1, byte 4 of 11: null is not allowed"):
        Order.decode(bytes.fromhex("00000007 ffff 00 00000000"), 1)


def test_an_error_names_the_field_and_the_position() -> None:
    with pytest.raises(ProtocolError, match=r"Order\.Item\.sizes in version 0, byte 11 of 14: the bytes end here"):
        Order.decode(bytes.fromhex("00000007 00000001 0001 61 000000"), 0)
    with pytest.raises(ProtocolError, match="Order in version 0 ends at byte 8, but the buffer has 9 bytes"):
        Order.decode(bytes(9), 0)


def test_unknown_tags_are_kept_and_known_tags_are_ordered() -> None:
    wire = bytes.fromhex("00000007 01 00 01 03 00 02 02 01 01 05 00000001 00 09 02 beef")
    order = Order.decode(wire, 2)
    assert order.unknown_tagged_fields == {9: b"\xbe\xef"}
    assert order.encode(2) == wire
    assert order != Order(extras=[""], origin=Order.Place(x=1))


def test_tags_may_be_in_any_order() -> None:
    order = Order.decode(bytes.fromhex("00000007 01 00 01 02 01 05 00000001 00 00 02 02 01"), 2)
    assert order == Order(extras=[""], origin=Order.Place(x=1))


@pytest.mark.parametrize(
    ("tags", "complaint"),
    [
        ("02 09 00 09 00", "tag 9 occurs twice"),
        ("01 09 02 00", "field's length is 2, but only 1 bytes are left"),
        ("01 00 03 01 0000", "tag 0 has length 3, but the value of extras has 1 bytes"),
        ("01 00 01 02", "extras|field's length is 1, but only 0"),
        ("01", "the bytes end here"),
        ("ffffffff0f", "the bytes end here"),
    ],
)
def test_bad_tags(tags: str, complaint: str) -> None:
    with pytest.raises(ProtocolError, match=rf"Order.*byte \d+ of \d+.*({complaint})"):
        Order.decode(bytes.fromhex("00000007 01 00 01" + tags), 2)


def test_construction() -> None:
    with pytest.raises(TypeError, match="Order has no field colour, size"):
        Order(size=1, colour="red")  # type: ignore[call-arg]
    assert Order(items=[Order.Item(name="a")]) == Order(items=[Order.Item(name="a")])
    assert Order() != Order(number=8)
    assert Order.Place() != Order.Item()


def test_repr_is_python() -> None:
    order = Order(number=1, note=None, items=[Order.Item(name="a", sizes=[1])], where=Order.Place())
    assert eval(repr(order)) == order
    assert repr(order) == (
        "Order(number=1, note=None, items=[Order.Item(name='a', sizes=[1])], where=Order.Place())"
    )


def test_header_versions() -> None:
    class Plain(Response, api_key=ApiKey.FETCH, versions="0-2", flexible="1+"): ...

    class Quirk(Response, api_key=ApiKey.API_VERSIONS, versions="0-2", flexible="1+", header="none"): ...

    assert [Order.header_version(version) for version in Order.versions] == [1, 1, 2, 2]
    assert [Plain.header_version(version) for version in Plain.versions] == [0, 1, 1]
    assert [Quirk.header_version(version) for version in Quirk.versions] == [0, 0, 0]
