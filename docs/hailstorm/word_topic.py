"""Count the words of the topic `lines`, and write each new count to the topic `counts`, exactly once."""

import sys

from hmb.hailstorm import Bolt, DirectorySnapshotStore, Spout, Sum, TopicTarget, Topology, TransactionalSink, run

servers = sys.argv[1]


def record(count: tuple[str, int]) -> tuple[bytes, bytes]:
    """Return the key and the value of a record. For example, `("to", 2)` becomes `(b"to", b"2")`.

    The tuple `count` contains a word and the number of times that the word has occurred.
    """
    return count[0].encode(), str(count[1]).encode()


topology = Topology("word_topic")
topology.spout("lines", Spout("lines"))
topology.bolt("split", Bolt.stateless(str.split), after="lines", group=str)
topology.bolt("count", Bolt.keyed(Sum(), key=str, value=lambda word: 1), after="split")
topology.sink("counts", TransactionalSink(lambda: TopicTarget(servers, "counts", record)), after="count")

if __name__ == "__main__":
    print(run(topology, servers, DirectorySnapshotStore("topic-counts"), until="end").completed)
