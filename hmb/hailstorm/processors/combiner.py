"""The combiner: a sender merges the tuples of a batch by key, before it sends them to a bolt.

**Problem.** A bolt that counts words receives one tuple for each word. The sender selects an instance for each tuple,
and a channel between two processes encodes and decodes it. This work costs more than the addition of 1 to a count.

**Idea.** The states of a bolt are commutative monoids, so neither order nor grouping matters. The sender can merge some
tuples first, and the bolt then merges the result into its state. MapReduce has the same step, and calls it a combiner.

**Mechanism.** The user asks for it with `Bolt.keyed(..., combine=True)`. The sender of a batch then makes one row for
each key, with the state of all tuples of this key. For the counts of the words `sun fog sun sun`, at offsets 7 to 10:

    without a combiner            with a combiner
    offset   tuple                offset   tuple
    7        "sun"                10       ("sun", 3)
    8        "fog"                10       ("fog", 1)
    9        "sun"
    10       "sun"

The bolt calls `transform` once for each row. It therefore sends one running value for each key and batch, the last one.

**Snapshots stay exact.** All tuples of a batch come from one partition. A spout pauses for a snapshot between two
batches, so the clock C of the snapshot never lies within a batch. Either all tuples of a batch are below C, or none is.
One offset can thus represent the whole batch: its last one.

**What may follow.** A replay can cut the records into other batches, and then sends other running values. The rule for
the bolts that follow is therefore the same as without a combiner: only the last value of each key may matter (see
`bolt`). An `IdempotentSink` after such a bolt would never overwrite the outputs of the old batches, so the topology
refuses it.

**Gain.** `hmb bench hailstorm` measures the word count with and without the combiner. The documentation's chapter has
the figures. The gain depends on how often a key occurs in a batch: without repetitions, the combiner is only more work.

Source: Dean and Ghemawat, "MapReduce" (2004), chapter 4.3, "Combiner Function". The Hailstorm paper has no combiner.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hmb.hailstorm.bolt import Combining
from hmb.hailstorm.errors import UserCodeError
from hmb.hailstorm.payload import Payloads


def combine(payloads: Payloads, combining: Combining, node: str) -> tuple[Payloads, list[Any]]:
    """Return payloads with one row (key, state) for each key, and the first tuple of each key, in the same order.

    `node` is the bolt that will receive the rows. There must be at least one tuple. Raises UserCodeError if a function
    of the user raises.
    """
    key, lift, absorb = combining.key, combining.lift, combining.states.absorb
    states: dict[Any, Any] = {}
    firsts = []
    item = None
    try:
        for item in payloads.tuples:
            name = key(item)
            if name in states:
                states[name] = absorb(states[name], lift(item))
            else:
                states[name] = lift(item)
                firsts.append(item)
    except Exception as error:
        row = next(row for row, each in enumerate(payloads.tuples) if each is item)
        origin = f"{item!r:.100} from {payloads.partition} at offset {payloads.offsets[row]}"
        raise UserCodeError(node, "key, value, lift or merge", origin, error) from error
    to_value = combining.states.to_value
    rows = [(name, to_value(state)) for name, state in states.items()]
    return replace(payloads, tuples=rows, offsets=[payloads.offsets[-1]] * len(rows), numbers=None), firsts
