"""Random requests of every API and version, with values at their limits.

The generator reads the message classes, so it knows every field of every version. It chooses a value for each
field. Some values are names that exist in the broker, for example of a topic, a group or a member. Other values are at
a limit: an empty string, a string of 32,767 bytes, the smallest or the greatest number of the type.

The generator avoids requests that even a correct broker answers slowly. For example, a fetch waits for at most
LONGEST_WAIT ms. A request to create a topic or to add partitions asks for at most three partitions of a topic.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any
from uuid import UUID

from hmb.protocol.fields import Field, version_range
from hmb.protocol.schema import Struct
from hmb.records import Codec, Record, encode_batch, encode_message_set

LONGEST_STRING = 32_767  # bytes; Kafka's limit for each string
LONGEST_WAIT = 20  # ms
TOPIC, COMPACTED, TRANSACTION = "t", "compacted", "x"
GROUP, CONSUMER_GROUP, SHARE_GROUP, STREAMS_GROUP = "g", "c", "s", "w"
TEXTS = ("", "a", "..", "a.b", "\u00e4\N{GRINNING FACE}", "*", "a\0b", "x" * 249, "x" * 250, "\u00e9" * 300)
INTEGERS = {"int8": 7, "int16": 15, "int32": 31, "int64": 63}
SMALL = {"num_partitions": (-1, 0, 1, 3), "count": (-1, 0, 1, 3)}
LARGE_ARRAYS = (1_000, 16_000, 18_000, 100_000)  # A broker accepts about 16,000 items in one request.
# The approximate limit for the size of a large array, in characters. The size of an item is `len(repr(item))`.
LARGEST = 20 << 20
GROUPS = {"group_id", "groups", "groups_names", "group_ids", "key", "coordinator_keys"}
TOPICS = {"name", "topic", "topic_names", "topic_name", "resource_name", "subscribed_topic_names", "source_topics"}
TRANSACTIONS = {"transactional_id", "transactional_ids", "v3_and_below_transactional_id"}


@dataclass
class Known:
    """Names and ids that exist in the broker. The caller adds the names and ids that responses contain."""

    members: list[str] = field(default_factory=list)
    topic_ids: list[UUID] = field(default_factory=list)
    producer_ids: list[int] = field(default_factory=list)
    sessions: list[int] = field(default_factory=list)


@dataclass
class Generator:
    """A generator of random requests. The same seed of `random` produces the same requests."""

    random: Random
    known: Known
    longest_array: int = 2
    longest_string: int = LONGEST_STRING
    large_arrays: float = 0.0  # the probability that an array repeats its item thousands of times

    def message(self, cls: type[Struct], version: int) -> Any:
        """Return a message of the class `cls`. Each field of this version has a random value."""
        present = {name: each for name, each in cls.fields.items() if version in version_range(each.versions)}
        values = {name: self._value(name, each, version) for name, each in present.items()}
        for name in ("max_wait_ms", "rebalance_timeout_ms", "timeout_ms"):
            if name in values:
                values[name] = self.random.randint(-1, LONGEST_WAIT)
        return cls(**values)

    def _value(self, name: str, each: Field, version: int) -> Any:
        if version in version_range(each.nullable) and self.random.random() < 0.1:
            return None
        if each.struct is not None:
            return self.message(each.struct, version)
        if each.item is not None:
            if self.large_arrays and self.random.random() < self.large_arrays:
                item = self._value(name, each.item, version)
                return [item] * min(self.random.choice(LARGE_ARRAYS), LARGEST // len(repr(item)) + 1)
            size = min(self.random.choice((0, 1, 1, 2, self.longest_array)), self.longest_array)
            return [self._value(name, each.item, version) for _ in range(size)]
        return self._scalar(name, each.kind)

    def _scalar(self, name: str, kind: str) -> Any:
        random = self.random
        if name in SMALL:
            return random.choice(SMALL[name])
        if kind in INTEGERS:
            return self._integer(name, INTEGERS[kind])
        if kind == "string":
            return self._text(name)
        if kind == "uuid":
            return random.choice([UUID(int=0), UUID(int=random.getrandbits(128)), *self.known.topic_ids])
        if kind == "records":
            return memoryview(self._records())
        if kind == "bytes":
            return random.randbytes(random.choice((0, 1, 50, 5_000)))
        return {"bool": random.random() < 0.5, "float64": 0.5, "uint16": 0, "uint32": 0}[kind]

    def _integer(self, name: str, bits: int) -> int:
        choices: list[int] = [-(2**bits), -2, -1, 0, 1, 2, 3, self.random.randrange(2**bits), 2**bits - 1]
        if name == "session_timeout_ms":
            choices += [6_000] * 20
        if name == "producer_id":
            choices += self.known.producer_ids * 3
        if name == "session_id":
            choices += self.known.sessions * 3
        if name in ("partition", "partitions", "partition_index", "partition_indexes", "index", "acks"):
            choices += [0] * 20
        return self.random.choice(choices)

    def _text(self, name: str) -> str:
        random = self.random
        usual: Sequence[str] = ()
        if name in GROUPS:
            usual = GROUP, CONSUMER_GROUP, SHARE_GROUP, STREAMS_GROUP, f"group-{random.randrange(100)}"
        elif name in TOPICS:
            usual = TOPIC, COMPACTED, f"topic-{random.randrange(20)}", "__consumer_offsets", "cleanup.policy", "0"
        elif name in TRANSACTIONS:
            usual = TRANSACTION, f"transaction-{random.randrange(20)}"
        elif name == "member_id":
            usual = *self.known.members, ""
        elif name == "protocol_type":
            usual = ("consumer",)
        if usual and random.random() < 0.7:
            return random.choice(usual)
        return random.choice((*TEXTS, "s" * self.longest_string, "range", "consumer", "uniform"))

    def _records(self) -> bytes:
        random = self.random
        timestamp, key = random.choice((-1, 0, 10**12)), random.choice((None, b"k"))
        records = [Record(0, timestamp, key, b"v" * random.choice((0, 99)))] * random.choice((1, 2, 50))
        if random.random() < 0.2:
            return bytes(encode_message_set(records, random.choice((0, 1)), Codec.NONE))
        batch = encode_batch(
            records,
            producer_id=random.choice((-1, 0, 2**63 - 1, *self.known.producer_ids)),
            producer_epoch=random.choice((-1, 0, 2**15 - 1)),
            base_sequence=random.choice((-1, 0, 2**31 - 1)),
            transactional=random.random() < 0.2,
        )
        data = bytearray(batch)
        if random.random() < 0.3:
            data[random.randrange(len(data))] = random.getrandbits(8)
        return bytes(data[: random.choice((0, 1, 17, 61, len(data), len(data), len(data)))])
