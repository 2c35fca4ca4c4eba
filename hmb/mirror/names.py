"""Determines which topics a mirror copies, and which names the copies get at the target.

By default, a copy has the same name as its topic. The mirror can also use the names of Kafka's MirrorMaker 2:
the copy of topic `orders` from cluster `east` is called `east.orders`.

The name `east.orders` shows where the records come from. It also allows two clusters to mirror each other: the
mirror from `west` to `east` does not copy `east.orders` back.

Source: KIP-382, "Remote Topics".
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NamedTuple

HEARTBEATS = "heartbeats"
INTERNAL = re.compile(r"__.*|.*\.checkpoints\.internal|mm2-.*\.internal|mirrormaker2-.*")


class Aliases(NamedTuple):
    """The short names of both clusters. MirrorMaker 2 puts them into the names of topics, for example `east.orders`."""

    source: str
    target: str

    @property
    def checkpoints(self) -> str:
        """The name of the topic in the target cluster to which the mirror writes checkpoints.

        Each checkpoint contains a consumer group's committed offset at the source, and the matching offset at the
        target.
        """
        return f"{self.source}.checkpoints.internal"


@dataclass(frozen=True, slots=True)
class TopicChoice:
    """Determines which topics a mirror copies, and the names of the copies.

    The mirror copies a topic if the whole name matches `include` and does not match `exclude`. It never copies
    internal topics such as `__consumer_offsets`.

    If `aliases` is None, a copy has the same name as its topic, and the mirror does not copy the topic
    `heartbeats`.

    If `aliases` is ("east", "west"), the copy of `orders` has the name `east.orders`, as in MirrorMaker 2. The
    mirror always copies `heartbeats`. It does not copy topics such as `west.orders`, because they are copies of
    topics in `west`.
    """

    include: re.Pattern[str]
    exclude: re.Pattern[str] | None = None
    aliases: Aliases | None = None

    def copies(self, name: str) -> bool:
        """Return whether the mirror copies this topic of the source."""
        if self.aliases is not None:
            if name == HEARTBEATS:
                return True
            if name.startswith(f"{self.aliases.target}."):
                return False  # This topic is itself a copy from the target.
        elif name == HEARTBEATS:
            return False
        if INTERNAL.fullmatch(name) or not self.include.fullmatch(name):
            return False
        return self.exclude is None or not self.exclude.fullmatch(name)

    def target_name(self, name: str) -> str:
        """Return the name of the copy of a topic."""
        return name if self.aliases is None else f"{self.aliases.source}.{name}"
