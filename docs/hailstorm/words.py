"""Count how often each word occurs in the topic `lines`. The counts are correct even after a crash."""

from hmb.hailstorm import Bolt, Sink, Spout, Sum, Topology


def show(count: tuple[str, int]) -> None:
    print(*count)


topology = Topology("words")
topology.spout("lines", Spout("lines"))
topology.bolt("split", Bolt.stateless(str.split), after="lines", group=str)
topology.bolt("count", Bolt.keyed(Sum(), key=str, value=lambda word: 1), after="split", parallelism=2)
topology.sink("console", Sink(show), after="count")
