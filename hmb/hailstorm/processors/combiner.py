"""The combiner merges all tuples with the same key in a batch, before a processor sends this batch.

**Problem.** A bolt that counts words receives one tuple for each word. For each tuple, the sender selects an instance,
and a channel between two processes encodes and decodes the tuple. This work takes more time than the bolt's own work,
which is adding 1 to a count.

**Idea.** The states of a bolt are a *commutative monoid*: their merged result depends neither on the order of
the states nor on the order of the merges. So the sender can merge several tuples into one state, and send only
this state. The bolt merges this state into its own state.

MapReduce also merges values before it sends them, and calls this step a combiner.

**Mechanism.** The user switches the combiner on with `Bolt.keyed(..., combine=True)`. The sender of a batch then makes
one row for each key, with the merged state of all tuples of this key. All rows of a batch have the offset of the
batch's last tuple. For example, a batch has the words `sun fog sun sun` at the offsets 7 to 10, and the bolt counts
words:
    without a combiner            with a combiner
    offset   tuple                offset   row
    7        "sun"                10       ("sun", 3)
    8        "fog"                10       ("fog", 1)
    9        "sun"
    10       "sun"

A bolt with a combiner receives rows (key, state), one row for each key of a batch. For each row, the bolt calls its
function `transform`, and sends the result, for example the new count of a word. This count already includes all
occurrences of the word in the batch.

**Snapshots stay exact.** A spout pauses for a snapshot only between two batches, so a snapshot contains either
all tuples of a batch or none of them. Each row has the last offset of its batch. So a snapshot with this offset
contains all tuples of the row. For example, a batch has offsets 7 to 10 of one partition. A snapshot with
offset 10 also contains offsets 7 to 9.

**What may follow a bolt with a combiner.** The next bolt must use only the last output for each key, because
the earlier outputs depend on the batches. For example, one batch contains the word "sun" twice, and the next
batch contains it once. The bolt with the combiner sends the counts 2 and 3. After a crash, the three words can
arrive in one batch. The bolt then sends only the count 3.

Even without a combiner, the next bolt must use only the last output for each key: earlier outputs depend on
the tuples' order (module `bolt`).

An `IdempotentSink` recognizes a repeated output by its offset, and overwrites the earlier output with the same offset.
A bolt with a combiner gives each output the offset of the last tuple in the batch. After a crash, the spouts may divide
the records into other batches. A repeated output can then have a different offset, and the sink would store the output
twice. `Topology` therefore raises an error if an `IdempotentSink` follows a bolt with a combiner.

**Gain.** The more often a key occurs in a batch, the more work a combiner saves. If no key is repeated, it only
adds work. The command `hmb bench hailstorm` measures the word count with and without the combiner. The
documentation's chapter on Hailstorm has the figures.

Source: Dean and Ghemawat, "MapReduce" (2004), chapter 4.3, "Combiner Function". The Hailstorm paper has no combiner.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hmb.hailstorm.bolt import Combining
from hmb.hailstorm.errors import UserCodeError
from hmb.hailstorm.payload import Payloads


def combine(payloads: Payloads, combining: Combining, node: str) -> tuple[Payloads, list[Any]]:
    """Return payloads with one row for each key, and a list of the first tuple of each key.

    A row is (key, state merged from the key's tuples). The list and the rows have the same order.

    `payloads` must not be empty. `node` names the receiving bolt. Raises UserCodeError if a user's function fails.
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
        raise UserCodeError(node, "one of the user's functions (key, value, lift or merge)", origin, error) from error
    to_value = combining.states.to_value
    rows = [(name, to_value(state)) for name, state in states.items()]
    return replace(payloads, tuples=rows, offsets=[payloads.offsets[-1]] * len(rows), numbers=None), firsts
