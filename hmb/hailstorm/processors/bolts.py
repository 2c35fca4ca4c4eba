"""The bolt's state machine: merges each tuple into the state, sends the results of `transform`, and saves snapshots."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from itertools import chain
from typing import Any, NamedTuple, cast

from hmb.client import TopicPartition
from hmb.hailstorm.bolt import Bolt, Transform
from hmb.hailstorm.clock import Clock
from hmb.hailstorm.errors import UserCodeError
from hmb.hailstorm.master import MasterPhase, MasterState, Report
from hmb.hailstorm.monoids.base import NoState
from hmb.hailstorm.payload import Number, Payloads
from hmb.hailstorm.processors.emitter import Emitter
from hmb.hailstorm.processors.event_time import Watermark
from hmb.hailstorm.processors.low_water_marks import LowWaterMarks
from hmb.hailstorm.processors.split_state import SplitState
from hmb.hailstorm.topology import Processor, Processors

Results = list[Sequence[Any]]  # one sequence for each input tuple: the outputs of `transform` for this tuple


class SaveRequest(NamedTuple):
    """A request to store a processor's state in a background thread, as a part of a snapshot.

    The processor is a bolt, a sink or a spout. The field `clock` contains one offset for each partition: the
    snapshot covers the records below these offsets. The thread stores `state.to_value()`.
    """

    clock: Clock
    state: Any


class BoltMachine:
    """Runs one instance of a bolt during one epoch: it merges tuples, sends outputs, and takes part in snapshots."""

    def __init__(self, processors: Processors, processor: Processor, epoch: int, start: Clock) -> None:
        assert isinstance(processor.node.runs, Bolt)
        self.bolt = processor.node.runs
        self.name, self.epoch = processor.name, epoch
        self.report = Report(epoch)
        self.save: SaveRequest | None = None
        self.state = SplitState(self.bolt)
        upstreams = processors.upstreams[processor.name]
        self.marks, self.watermark = LowWaterMarks(upstreams, start), Watermark(upstreams)
        self.received = self.refused = 0  # numbers of tuples; `refused` counts tuples of an older epoch
        self.last_late: Any = None  # a late tuple that the driver has not yet logged; None if it has logged all
        self._emitter = Emitter(processors, processor, epoch)
        self._node = processor.node.name
        self._is_saving = False
        # The clock (partition -> offset) of a snapshot that waits for the save of an older snapshot. Usually None.
        self._desired: Clock | None = None
        # The clock of the current snapshot: one offset for each partition. Tuples at or above the offset of their
        # partition wait until the bolt has received all tuples of the snapshot. If None, the bolt processes every tuple
        # immediately.
        self._waits_at: Clock | None = None
        self._waiting: list[Payloads] = []
        self._is_stateless = isinstance(self.bolt.monoid, NoState)

    @property
    def outbox(self) -> list[tuple[str, Payloads]]:
        return self._emitter.outbox

    # -- methods that the driver calls

    def restore(self, value: Any) -> None:
        """Restore the state from a snapshot."""
        self.state.restore(value)

    def observe(self, master: MasterState) -> None:
        """Begin, continue or give up a snapshot.

        The newest decision of the negotiator, `master`, contains a phase:

        - SPOUTS_PAUSED_AT: the bolt begins a snapshot.
        - FLOWING_TO: the bolt continues the snapshot.
        - Any other phase: the bolt gives up the snapshot. If the bolt is already saving its state, the save continues.
        """
        self.report.seen = master.number
        if master.phase is not MasterPhase.FLOWING_TO:
            self._end_round()
        if master.phase is MasterPhase.SPOUTS_PAUSED_AT:
            self._desired = master.clock
            self._split()

    def receive(self, payloads: Payloads) -> None:
        """Process the tuples of an upstream processor. Raises UserCodeError if the user's code raises an exception."""
        if payloads.epoch != self.epoch:
            self.refused += len(payloads)
            return
        self.received += len(payloads)
        now = payloads if self._waits_at is None else self._without_waiting(payloads, self._waits_at)
        results = self._process(now) if now.tuples else []
        has_moved = self.marks.advance(payloads)
        self.watermark.advance(payloads)
        if results or has_moved or payloads.times:
            self._send(now, results)
        self._save_if_eligible()

    def saved(self, clock: Clock, error: str | None = None) -> None:
        """Report the result of a save, and merge the two states of the bolt into one.

        `error` is None if the save succeeded. The second state contains the tuples that the bolt processed during the
        save. If the negotiator has already requested another snapshot, the bolt starts it.
        """
        self._is_saving, self.save = False, None
        if error is None:
            self.report.stored = clock
        else:
            self.report.not_saved = (clock, error)
        self.state.join()
        self._split()

    # -- tuples

    def _without_waiting(self, payloads: Payloads, clock: Clock) -> Payloads:
        """Return the tuples that belong to the snapshot in progress. Append the other tuples to `_waiting`.

        The snapshot's clock contains one offset for each partition. A tuple belongs to the snapshot if its offset is
        smaller than the offset of its partition in `clock`.
        """
        boundary = bisect_left(payloads.offsets, clock[payloads.partition])  # The offsets are sorted.
        if boundary == len(payloads):
            return payloads
        self._waiting.append(payloads.slice(boundary, len(payloads)))
        return payloads.slice(0, boundary)

    def _process(self, payloads: Payloads) -> Results:
        """Merge the tuples into the state, and return the outputs of `transform` for each tuple.

        While the bolt saves a snapshot, the saved state must not change. The method then merges the tuples into a
        second state.
        """
        state, results = self.state, cast(Results, [])
        try:
            if not state.is_frozen:
                state.a, late = self._apply(payloads.tuples, state.a, None, results)
                state.late_in_a += late
            else:
                state.b, late = self._apply(payloads.tuples, state.b, state.a, results)
                state.late_in_b += late
        except Exception as error:
            row = len(results)
            origin = f"{payloads.tuples[row]!r:.100} from {payloads.partition} at offset {payloads.offsets[row]}"
            raise UserCodeError(
                self.name, "one of the user's functions (lift, merge or transform)", origin, error
            ) from error
        return results

    def _apply(self, tuples: Sequence[Any], state: Any, base: Any, results: Results) -> tuple[Any, int]:
        """Merge tuples into `state`. Return the new state and the number of late tuples.

        After each merge, the method calls `transform` with the tuple and the new state, and appends the outputs to
        `results`.

        If `base` is None, `state` is the whole state of the bolt, and `transform` receives this state.

        While the bolt saves a snapshot, `base` is the state in this snapshot, and `state` contains only later tuples.
        `transform` then receives merge(base, state).
        """
        bolt, monoid = self.bolt, self.bolt.monoid
        lift, absorb, view, transform = bolt.lift, monoid.absorb, monoid.view, bolt.transform
        if self._is_stateless:
            for item in tuples:
                results.append(tuple(transform(item, None)))
            return None, 0
        if bolt.windows is not None:
            return self._apply_in_windows(tuples, state, base, results)
        if bolt.combining is not None:
            return self._apply_combined(bolt.combining.transform, tuples, state, base, results), 0
        for item in tuples:
            state = absorb(state, lift(item))
            results.append(tuple(transform(item, state if base is None else view(base, state))))
        return state, 0

    def _apply_in_windows(self, tuples: Sequence[Any], state: Any, base: Any, results: Results) -> tuple[Any, int]:
        """Merge tuples into the states of their windows, and append the outputs for each tuple to `results`.

        The method leaves out a late tuple, which belongs only to closed windows. The parameters and the result are the
        same as those of `_apply`.
        """
        bolt, windows, closed = self.bolt, self.bolt.windows, self.state.closed
        assert windows is not None and bolt.event_time is not None
        late = 0
        for item in tuples:
            lifted = bolt.lift(item)
            if bolt.event_time(item) < closed and not (lifted := windows.expire(lifted, closed)):
                late, self.last_late = late + 1, item
                results.append(())
                continue
            state = windows.absorb(state, lifted)
            results.append(tuple(bolt.transform(item, state if base is None else windows.view(base, state))))
        return state, late

    def _apply_combined(
        self, transform: Transform, rows: Sequence[tuple[Any, Any]], state: Any, base: Any, results: Results
    ) -> Any:
        """Merge the rows of a batch into `state`, and return the new state.

        A row is (key, merged tuples of this key). The method appends the outputs for each row to `results`.

        While the bolt saves a snapshot, `base` is the state in this snapshot, and `state` contains only later tuples.
        At all other times, `base` is None, and `state` is the whole state.
        """
        monoid = self.bolt.monoid
        state = monoid.absorb(state, monoid.from_value(dict(rows)))
        seen = state if base is None else monoid.view(base, state)
        results.extend(tuple(transform(key, seen)) for key, _ in rows)
        return state

    def _send(self, payloads: Payloads, results: Results) -> None:
        """Send the outputs for the tuples of `payloads`. `results` contains the outputs for each tuple.

        Each output gets the partition and the offset of its tuple. The bolt also sends its low water mark, which
        reports to the receivers how far the bolt has processed each partition. It sends the mark even if there are no
        outputs.
        """
        tuples, offsets, numbers = list(chain.from_iterable(results)), payloads.offsets, payloads.numbers
        if not tuples:
            offsets, numbers = [], None
        elif set(map(len, results)) != {1}:
            offsets, numbers = _spread(payloads, results)
        elif numbers is not None:
            numbers = [(*number, 0) for number in numbers]
        self._emit((*payloads.path, self._node), payloads.partition, tuples, offsets, numbers)

    def _emit(self, path: tuple[str, ...], partition: TopicPartition, *columns: Any) -> None:
        """Send tuples of one partition, together with the bolt's low water mark.

        The mark contains one offset for each partition. The bolt promises to send no more tuples with smaller
        offsets. For example, a tuple at offset 10 waits during a snapshot. The bolt sends the output for this
        tuple later, so the mark must be at most 10.

        `path` contains the names of the nodes that made the tuples. `columns` contains lists with one item for
        each tuple: `tuples`, `offsets` and optionally `numbers`.
        """
        mark, times = self.marks.clock, self.watermark.marks()
        if self._waits_at is not None:
            mark, times = mark.minimum(self._waits_at), {}
        self._emitter.emit(path, partition, mark, times, *columns)

    # -- snapshots

    def _split(self) -> None:
        """Begin the snapshot that the negotiator has requested.

        During the save of an older snapshot, this method does nothing. After the save, the bolt calls `_split` again.
        """
        if self._desired is not None and not self._is_saving:
            if self._desired != self.report.stored:  # If they are equal, this snapshot is already stored.
                self.state.split(self._desired, self.watermark.time)
                self._waits_at = None if self._is_stateless else self._desired
            self.report.split, self._desired = self._desired, None
            self._save_if_eligible()

    def _save_if_eligible(self) -> None:
        """Request a save of the state if the bolt has received all tuples for the current snapshot.

        For example, a snapshot contains the tuples from offsets 0 to 9 of one partition. When no more of these tuples
        can arrive from any processor, the bolt sets its field `save` to request the save. It then merges tuples from
        later offsets into a second state.
        """
        clock = self.state.clock
        if clock is not None and self.state.is_gathering and self.marks.clock.has_reached(clock):
            self.state.freeze()
            self._is_saving, self.save = True, SaveRequest(clock, self.state)
            self._process_waiting()

    def _process_waiting(self) -> None:
        """Process the tuples that waited during a snapshot, and then send the bolt's current low water mark.

        The low water mark contains one offset for each partition. The bolt promises to send no more outputs with
        smaller offsets. For example, a tuple at offset 10 waited, so the bolt could not send a mark above 10. After the
        output for this tuple, the bolt can send a higher mark.
        """
        waiting, self._waiting = self._waiting, []
        for payloads in waiting:
            self._send(payloads, self._process(payloads))
        if self._waits_at is not None:
            self._waits_at = None
            self._emit((self._node,), next(iter(self.marks.clock)), [], [])

    def _end_round(self) -> None:
        """Give up the current snapshot, unless the bolt has begun to save this snapshot.

        The negotiator has given up the snapshot, for example because a processor could not save its state. Also process
        the tuples that waited because of the snapshot.
        """
        self._desired, self.report.split, self.report.not_saved = None, None, None
        if self.state.clock is not None and not self._is_saving:
            self.state.join()
            self._process_waiting()


def _spread(payloads: Payloads, results: Results) -> tuple[list[int], list[Number]]:
    """Return two lists: the offsets of all outputs in `results`, and their numbers (tuples of indexes).

    `results` contains a list of outputs for each input tuple. An output has the same offset as its input tuple.

    The number of an output is the number of its input tuple, with the output's index appended. For example, an
    input tuple with the number (4,) has three outputs. Their numbers are (4, 0), (4, 1) and (4, 2).
    """
    numbers = payloads.numbers or [(0,) * len(payloads.path)] * len(payloads)
    offsets, spread = [], []
    for offset, number, made in zip(payloads.offsets, numbers, results, strict=True):
        offsets += [offset] * len(made)
        spread += [(*number, index) for index in range(len(made))]
    return offsets, spread
