"""Compares HMB's message classes with Kafka's own definitions, which the jars of 4.3.0 contain.

Every class is compared in each of its versions: the fields and their order, types, nullability, defaults and tags.

Kafka 4 no longer supports the oldest versions of messages, so the property `validVersions` of a definition does not
include these versions. The property `versions` of a field still includes them, so the test compares them. `ONLY_HERE`
lists the fields that Kafka 4 removed.
"""

import json
import re
import shutil
import subprocess
import zipfile
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from hmb.coordinator.group_keys import OFFSETS_KEYS
from hmb.coordinator.journal.records import Key
from hmb.coordinator.share.state_records import STATE_KEYS
from hmb.coordinator.transactions.records import KEYS as TRANSACTION_KEYS
from hmb.protocol.api_keys import ApiKey
from hmb.protocol.consumer_protocol import ConsumerProtocolAssignment, ConsumerProtocolSubscription
from hmb.protocol.errors import ErrorCode
from hmb.protocol.fields import Field, version_range
from hmb.protocol.headers import RequestHeader, ResponseHeader
from hmb.protocol.messages import API_KEYS, request_class, response_class
from hmb.protocol.schema import Request, Response, Struct

GROUPS: list[type[Struct]] = [cls for key in OFFSETS_KEYS.values() for cls in (key, key.value)]
TRANSACTIONS: list[type[Struct]] = [cls for key in TRANSACTION_KEYS.values() for cls in (key, key.value)]
SHARES: list[type[Struct]] = [cls for key in STATE_KEYS.values() for cls in (key, key.value)]
OWNED = (("group", GROUPS), ("transaction", TRANSACTIONS), ("share", SHARES))
OWNERS = {cls.__name__: owner for owner, own in OWNED for cls in own}
OTHERS = [RequestHeader, ResponseHeader, ConsumerProtocolSubscription, ConsumerProtocolAssignment]
MESSAGES = [find(key) for key in API_KEYS for find in (request_class, response_class)]
CLASSES: list[type[Struct]] = [*MESSAGES, *OTHERS, *GROUPS, *TRANSACTIONS, *SHARES]
# These versions are not yet stable in 4.3, and HMB does not have them.
UNSTABLE = {"InitProducerIdRequest": 6, "InitProducerIdResponse": 6}
# These fields of HMB's classes are not in Kafka 4.3's definitions. Their sources are KIP-133 for `is_default`, and the
# protocol guide of Kafka 0.8 for the others.
ONLY_HERE = {
    ("OffsetCommitRequestPartition", "commit_timestamp"),
    ("DescribeConfigsResourceResult", "is_default"),
    ("ListOffsetsPartition", "max_num_offsets"),
    ("ListOffsetsPartitionResponse", "old_style_offsets"),
}
# In HMB, the record with the topology of a streams group uses the structs of the request StreamsGroupHeartbeat. In
# Kafka's definitions, one of these structs has two names: TopicConfig in the record, and KeyValue in the request.
OTHER_NAMES = {"StreamsGroupTopologyValue": ("TopicConfig", "KeyValue")}


class Column(NamedTuple):
    """The properties of one field of a message in one version."""

    name: str
    type: str
    nullable: bool
    default: Any
    tag: int | None


class Lacking(NamedTuple):
    """A field of a message class that exists only in versions other than the compared version.

    An object of the class has this field in every version, so the field needs a default. The test compares only the
    default and the property `ignorable`.
    """

    name: str
    ignorable: bool
    default: Any


@cache
def definition(jars: Path, name: str) -> dict[str, Any]:
    """Return Kafka's definition of the message `name`, a JSON file in one of Kafka's jars.

    The file is in the jar of the clients or of a coordinator. This function removes the comments in the file.
    """
    owner = f"{OWNERS[name]}-coordinator" if name in OWNERS else "clients"
    with zipfile.ZipFile(jars / f"kafka-{owner}-4.3.0.jar") as jar:
        text = jar.read(f"common/message/{name}.json").decode()
    if name in OTHER_NAMES:
        in_record, in_request = OTHER_NAMES[name]
        text = re.sub(rf"\b{in_record}\b", in_request, text)
    loaded: dict[str, Any] = json.loads(re.sub(r"^\s*//.*$", "", text, flags=re.MULTILINE))
    return loaded


def versions_of(field: dict[str, Any]) -> str:
    """Return the range of the message versions that contain a field.

    Kafka's definition of a tagged field can omit the property `versions`. The range is then in `taggedVersions`.
    """
    return str(field.get("versions") or field["taggedVersions"])


def snake_case(name: str) -> str:
    name = re.sub("^Request(?=[A-Z])", "", name)  # RequestApiKey becomes api_key, but RequestedMetrics keeps its name.
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


def their_default(field: dict[str, Any]) -> Any:
    kind, default = field["type"], field.get("default")
    if default == "null" or (kind == "records" and default is None):
        return None
    if kind.startswith("[]"):
        return []
    if kind == "uuid":
        return "00000000-0000-0000-0000-000000000000"
    if kind == "bool":
        return default in ("true", True)
    if kind in ("string", "bytes"):
        return default or {"string": "", "bytes": b""}[kind]
    return "struct" if kind[0].isupper() else int(str(default or 0), 0)


def their_fields(fields: list[dict[str, Any]], version: int) -> list[Column | Lacking]:
    return [
        Column(
            snake_case(field["name"]),
            field["type"],
            version in version_range(field.get("nullableVersions", "none")),
            their_default(field),
            field["tag"] if version in version_range(field.get("taggedVersions", "none")) else None,
        )
        if version in version_range(versions_of(field))
        else Lacking(snake_case(field["name"]), field.get("ignorable", False), their_default(field))
        for field in fields
    ]


def our_type(field: Field) -> str:
    if field.item is not None:
        return "[]" + our_type(field.item)
    return field.struct.__name__ if field.struct is not None else field.kind


def our_default(field: Field) -> Any:
    default = field.default_value()
    if isinstance(default, Struct):
        return "struct"
    return str(default) if field.kind == "uuid" else default


def our_fields(struct: type[Struct], version: int) -> list[Column | Lacking]:
    return [
        Column(name, our_type(field), version in version_range(field.nullable), our_default(field), field.tag)
        if version in version_range(field.versions)
        else Lacking(name, field.ignorable, our_default(field))
        for name, field in struct.fields.items()
        if (struct.__name__, name) not in ONLY_HERE
    ]


def compare(
    struct: type[Struct], fields: list[dict[str, Any]], version: int, common: dict[str, list[dict[str, Any]]]
) -> None:
    """Compare the fields of a struct. `common` contains the structs that several fields of the message use."""
    fields = [field for field in fields if versions_of(field) != f"{UNSTABLE.get(struct.__name__)}+"]
    both = [field for name, field in struct.fields.items() if (struct.__name__, name) not in ONLY_HERE]
    assert our_fields(struct, version) == their_fields(fields, version), f"{struct.__qualname__} v{version}"
    for theirs, ours in zip(fields, both, strict=True):
        nested = ours.struct or (ours.item and ours.item.struct)
        if nested and version in version_range(versions_of(theirs)):
            compare(nested, theirs.get("fields") or common[nested.__name__], version, common)


@pytest.mark.parametrize("cls", CLASSES)
def test_fields(kafka_43: Path, cls: type[Struct]) -> None:
    theirs = definition(kafka_43, cls.__name__)
    common = {struct["name"]: struct["fields"] for struct in theirs.get("commonStructs", [])}
    for version in cls.versions:
        compare(cls, theirs["fields"], version, common)


@pytest.mark.parametrize("cls", CLASSES)
def test_versions(kafka_43: Path, cls: type[Struct]) -> None:
    theirs = definition(kafka_43, cls.__name__)
    valid = version_range(theirs["validVersions"])
    if theirs.get("latestVersionUnstable"):
        assert UNSTABLE[cls.__name__] == valid[-1]
        valid = valid[:-1]
    assert cls.versions[-1] == (valid[-1] if cls.__name__ not in UNSTABLE else UNSTABLE[cls.__name__] - 1)
    assert cls.versions[0] <= valid[0]
    flexible = version_range(theirs["flexibleVersions"])
    assert [v in cls.flexible for v in cls.versions] == [v in flexible for v in cls.versions]
    if issubclass(cls, Request | Response):
        assert cls.api_key == theirs["apiKey"]
    if issubclass(cls, Key):
        assert (cls.record_type, "coordinator-key") == (theirs["apiKey"], theirs["type"])
        assert definition(kafka_43, cls.value.__name__)["apiKey"] == cls.record_type


def test_client_id_is_never_compact(kafka_43: Path) -> None:
    (client_id,) = (f for f in definition(kafka_43, "RequestHeader")["fields"] if f["name"] == "ClientId")
    assert client_id["flexibleVersions"] == "none"
    assert not RequestHeader.fields["client_id"].compact


PROGRAM = """
import org.apache.kafka.common.errors.RetriableException;
import org.apache.kafka.common.protocol.*;
public class Tables {
  public static void main(String[] args) {
    for (Errors e : Errors.values())
      System.out.println(e.name() + " " + e.code() + " " + (e.exception() instanceof RetriableException));
    for (ApiKeys key : ApiKeys.values())
      System.out.println(key.name() + " " + key.id);
  }
}
"""


def test_errors_and_api_keys(kafka_43: Path, tmp_path: Path) -> None:
    if shutil.which("java") is None:
        pytest.skip("Kafka's tables of errors and API keys are Java classes, and there is no java here")
    source = tmp_path / "Tables.java"
    source.write_text(PROGRAM)
    command = ["java", "-cp", f"{kafka_43}/*", str(source)]
    lines = subprocess.run(command, capture_output=True, text=True, check=True, timeout=100).stdout.splitlines()
    errors = [f"{code.name} {code.value} {str(code.retriable).lower()}" for code in ErrorCode]
    assert lines == errors + [f"{key.name} {key.value}" for key in ApiKey]
