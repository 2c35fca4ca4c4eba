"""Checks a bolt: the functions that merge tuples into its state, and the function that makes tuples from this state.

The check of a bolt calls the bolt's functions with sample tuples, and searches for mistakes of these kinds:
- The codec cannot store a state of the bolt, or a stored state differs from the original.
- `merge` breaks a law. For example, merge(a, b) and merge(b, a) differ for two states a and b.
- `absorb` or `view` gives another result than `merge`. These two functions are faster forms of `merge`.
- A function is not pure: it changes its arguments, or a second call with the same arguments has another result.
- A function raises an exception, or the codec cannot encode a tuple that `transform` returns.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from functools import partial, reduce
from typing import Any

from hmb.hailstorm.bolt import Bolt
from hmb.hailstorm.checking.messages import show
from hmb.hailstorm.codec import decode, encode
from hmb.hailstorm.errors import CodecError
from hmb.hailstorm.monoids.base import NoState

FLOATS = ". Python rounds each sum of floats: the monoids FloatSum and Mean add floats exactly"
ROUNDS = 100  # the number of times that each law is tested, each time with other random states


def bolt_problems(bolt: Bolt, tuples: Sequence[Any], chance: random.Random) -> Iterator[str]:
    """Check a bolt with sample tuples. Yield the first problem of each kind, as a text.

    The text contains the kind of problem, a colon, and the details. `tuples` contains the sample tuples. `chance`
    selects tuples at random.
    """
    seen = set()
    for problem in _problems(bolt, tuples, chance):
        kind = problem.partition(":")[0]
        if kind not in seen:
            seen.add(kind)
            yield problem


def _problems(bolt: Bolt, tuples: Sequence[Any], chance: random.Random) -> Iterator[str]:
    """Yield each problem of a bolt as a text. The text contains the kind of problem, a colon, and the details."""
    if isinstance(bolt.monoid, NoState):
        for item in tuples:
            yield from changed_call("transform", _outputs(bolt, item), partial(_outputs, bolt, item), item)
        return
    if not tuples:
        return
    for _ in range(ROUNDS):
        samples = [chance.choices(tuples, k=chance.randint(0, 4)) for _ in range(3)]
        item = chance.choice(tuples)
        try:
            a, b, c = (_state(bolt, sample) for sample in samples)
            problem = _codec_problem(bolt, a)
            if problem is not None:
                yield problem
                return  # The checks below copy states with the codec, so they cannot run if the codec fails.
            yield from _law_problems(bolt, a, b, c)
            yield from _operation_problems(bolt, a, b)
            yield from _purity_problems(bolt, item, _state(bolt, [item, *chance.choices(tuples, k=3)]))
        except Exception as error:  # noqa: BLE001  # The user's functions can raise anything. It is a problem to report.
            yield f"lift or merge raised {type(error).__name__}: {error}, for states of the tuples {show(samples)}"


def changed_call(function: str, result: Any, again: Callable[[], Any], argument: Any) -> Iterator[str]:
    """Yield a problem if a function of the user returns two different values for the same argument.

    `function` is the name of the user's function. `result` is the value that its first call returned for
    `argument`. The function `again` makes the second call. Two values are equal if their encoded bytes are equal.
    If the codec cannot encode a value, `changed_call` yields no problem.
    """
    try:
        is_equal = encode(again()) == encode(result)
    except CodecError:
        return
    if not is_equal:
        yield (
            f"{function} is not pure: its second call returns another value, for {show(argument)}. It must not "
            "remember earlier tuples: use a bolt with a state"
        )


def _outputs(bolt: Bolt, item: Any) -> list[Any]:
    """Return the tuples that a bolt without a state sends when it receives the tuple `item`."""
    return list(bolt.transform(item, None))


def _state(bolt: Bolt, tuples: Sequence[Any]) -> Any:
    return reduce(bolt.monoid.merge, map(bolt.lift, tuples), bolt.monoid.empty())


def _codec_problem(bolt: Bolt, state: Any) -> str | None:
    try:
        restored = _copy(bolt, state)
    except CodecError as error:
        return f"a state cannot be stored: {error}"
    if restored != state:
        return f"a state changes when it is stored: {show(state)} comes back as {show(restored)}"
    return None


def _law_problems(bolt: Bolt, a: Any, b: Any, c: Any) -> Iterator[str]:
    merge, empty = bolt.monoid.merge, bolt.monoid.empty()
    before = [_frozen(bolt, state) for state in (a, b)]
    for one, other in ((merge(empty, a), "merge(empty, a)"), (merge(a, empty), "merge(a, empty)")):
        if one != a:
            yield f"empty is not the identity of merge: {other} = {show(one)} for a = {show(a)}"
    if (one := merge(a, b)) != (another := merge(b, a)):
        yield (
            f"merge is not commutative: merge(a, b) = {show(one)}, merge(b, a) = {show(another)} "
            f"for a = {show(a)}, b = {show(b)}"
        )
    if (one := merge(merge(a, b), c)) != (another := merge(a, merge(b, c))):
        yield (
            f"merge is not associative: merge(merge(a, b), c) = {show(one)}, merge(a, merge(b, c)) = {show(another)} "
            f"for a = {show(a)}, b = {show(b)}, c = {show(c)}{FLOATS if _has_float(one) else ''}"
        )
    if before != [_frozen(bolt, state) for state in (a, b)]:
        yield "merge changes its arguments: it must return a new state"


def _has_float(state: Any) -> bool:
    """Return whether a state is a float, or a dict, list or tuple that directly contains a float."""
    parts = state.values() if isinstance(state, dict) else state if isinstance(state, list | tuple) else [state]
    return any(isinstance(part, float) for part in parts)


def _operation_problems(bolt: Bolt, a: Any, b: Any) -> Iterator[str]:
    """Yield a problem if `absorb` or `view` does not give the same result as `merge`.

    These two functions are faster forms of `merge`.
    """
    monoid = bolt.monoid
    merged = monoid.merge(a, b)
    if (absorbed := monoid.absorb(_copy(bolt, a), _copy(bolt, b))) != merged:
        yield f"absorb differs from merge: {show(absorbed)} instead of {show(merged)}"
    if (viewed := monoid.merge(monoid.empty(), monoid.view(a, b))) != merged:
        yield f"view differs from merge: {show(viewed)} instead of {show(merged)}"


def _purity_problems(bolt: Bolt, item: Any, state: Any) -> Iterator[str]:
    """Yield a problem if `lift` or `transform` is not a pure function, or if `transform` fails.

    `lift` must return a new state in each call, because Hailstorm can change this state later. Two calls with the
    same tuple must return equal states.

    `transform` must not change the state. Two calls must return the same tuples, and the codec must be able to
    encode these tuples.
    """
    lifted = _frozen(bolt, bolt.lift(item))
    grown = bolt.monoid.absorb(bolt.monoid.empty(), bolt.lift(item))
    bolt.monoid.absorb(grown, _copy(bolt, state))
    if _frozen(bolt, bolt.lift(item)) != lifted:
        yield f"lift is not pure: it returns parts that merges change later, for {show(item)}"
    before = _frozen(bolt, state)
    try:
        outputs = [encode(list(bolt.transform(item, state))) for _ in range(2)]
    except CodecError as error:
        yield f"transform returns a tuple that cannot be sent: {error}"
        return
    except Exception as error:  # noqa: BLE001  # The user's function can raise anything. It is reported as a problem.
        yield f"transform raised {type(error).__name__}: {error}, for {show(item)} and the state {show(state)}"
        return
    if _frozen(bolt, state) != before:
        yield f"transform changes the state: it must only read it, for {show(item)}"
    elif outputs[0] != outputs[1]:
        yield f"transform is not pure: two calls return different tuples, for {show(item)}"


def _copy(bolt: Bolt, state: Any) -> Any:
    return bolt.monoid.from_value(decode(_frozen(bolt, state)))


def _frozen(bolt: Bolt, state: Any) -> bytes:
    return encode(bolt.monoid.to_value(state))
