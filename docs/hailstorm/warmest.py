"""Print the two cities with the highest mean temperature.

The bolt `mean` computes the mean temperature of each city. After each new temperature of a city, it sends the
city's mean. The bolt `warmest` keeps the newest mean of each city, and compares these means.
"""

import heapq
from typing import Any

from temperatures import temperature

from hmb.hailstorm import Bolt, MapOf, Mean, Newest, Sink, Spout, Topology

MEAN = Mean()


def counted_mean(item: Any, states: Any) -> list[tuple[str, tuple[int, float]]]:
    """Return the city of the tuple `item`, and the count and the mean of this city's temperatures so far.

    The count grows with each new temperature. For each city, the bolt `warmest` therefore keeps only the
    mean with the highest count: the newest mean.
    """
    state = states[item[0]]
    _, count = state
    return [(item[0], (count, MEAN.result(state)))]


def two_warmest(item: Any, newest: Any) -> list[list[tuple[str, float]]]:
    """Return the two warmest cities. `newest` maps each city to its newest (number of temperatures, mean)."""
    means = [(city, mean) for city, (_, mean) in newest.items()]
    return [heapq.nlargest(2, means, key=lambda pair: pair[1])]


topology = Topology("warmest")
topology.spout("weather", Spout("weather", temperature))
mean_of_city = Bolt.keyed(MEAN, key=lambda item: item[0], value=lambda item: item[2], transform=counted_mean)
topology.bolt("mean", mean_of_city, after="weather", parallelism=2)
topology.bolt("warmest", Bolt.over(MapOf(Newest()), two_warmest, lift=lambda item: {item[0]: item[1]}), after="mean")
topology.sink("console", Sink(print), after="warmest")
