"""Runs all comparisons, one after the other."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from hmb.broker.handlers import HANDLERS

from .brokers import PAUSE_SECONDS, Conversation, Side, both
from .case import Case, Comparison, Step
from .comparing import Difference, Normalizer, differences
from .explained import EXPLAINED, Explanation
from .fixtures import both_brokers, both_secured_brokers

SETTLING_SECONDS = 2.0
SERVED = frozenset(map(int, HANDLERS))


class Verdict(StrEnum):
    EQUAL = "equal"
    TEXT = "equal but for words"
    EXPLAINED = "explained"
    UNEXPLAINED = "UNEXPLAINED"
    NOT_SERVED = "not served"


@dataclass
class Result:
    """The result of one comparison: the responses of HMB and of Kafka, and the differences between the responses."""

    comparison: Comparison
    # For each request, the responses of HMB and of Kafka. They are converted to dicts and lists.
    answers: list[tuple[Any, Any]] = field(default_factory=list)
    differences: list[Difference] = field(default_factory=list)
    unexplained: list[Difference] = field(default_factory=list)
    reasons: list[Explanation] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def verdict(self) -> Verdict:
        if not self.comparison.api_keys <= SERVED:
            return Verdict.NOT_SERVED
        if self.unexplained:
            return Verdict.UNEXPLAINED
        if self.reasons:
            return Verdict.EXPLAINED
        return Verdict.TEXT if self.differences else Verdict.EQUAL


def run_all(comparisons: Sequence[Comparison]) -> tuple[list[Result], str]:
    """Start the brokers, and run all comparisons. Return the results and the log of HMB's processes.

    Comparisons that test ACLs run on a second pair of brokers. Only these two brokers check ACLs.
    """
    results, log = list[Result](), ""
    without_acls = [each for each in comparisons if each.case.user is None]
    with_acls = [each for each in comparisons if each.case.user is not None]
    for start, part in ((both_brokers, without_acls), (both_secured_brokers, with_acls)):
        if part:
            with start(part) as (ours, kafka, hmb):
                results += run(ours, kafka, part)
                log += hmb.log_path.read_text()
    return results, log


def run(
    ours: Side, kafka: Side, comparisons: Iterable[Comparison], each: Callable[[Result], None] = lambda _: None
) -> list[Result]:
    """Run the comparisons, and return their results. Both brokers already have the topics.

    If HMB does not serve an API of a comparison, skip this comparison. Call the function `each` with every result.
    """
    results = []
    for comparison in comparisons:
        result, started = Result(comparison), time.monotonic()
        if comparison.api_keys <= SERVED:
            _run(result, ours, kafka)
        result.seconds = time.monotonic() - started
        results.append(result)
        each(result)
    return results


def _run(result: Result, ours: Side, kafka: Side) -> None:
    comparison = result.comparison
    conversations = [Conversation(side, comparison) for side in (ours, kafka)]
    try:
        later: list[Step] = []
        answers = []
        for step in comparison.case.steps:
            if step.later or not step.answered:
                for conversation in conversations:
                    conversation.send(step)
                later += [step] if step.later else []
            else:
                answers.append(_settled(conversations, step, comparison.case))
        answers += [[conversation.receive(step) for conversation in conversations] for step in later]
        normalizers = _normalizers(conversations, comparison.case)
        for number, pair in enumerate(answers, 1):
            trees = _trees(normalizers, pair)
            result.answers.append(trees)
            result.differences += differences(*trees, path=str(number) if len(answers) > 1 else "")
    finally:
        for conversation in conversations:
            conversation.close()
    _explain(result)


def _settled(conversations: list[Conversation], step: Step, case: Case) -> list[object]:
    """Send a step's request to both brokers, and return the two responses.

    If `step.settles` is true, repeat the request until the two responses are equal, or until SETTLING_SECONDS have
    passed.
    """
    deadline = time.monotonic() + SETTLING_SECONDS
    while True:
        pair = both(conversations, step)
        if not step.settles or time.monotonic() > deadline:
            return pair
        ours, kafka = _trees(_normalizers(conversations, case), pair)
        if ours == kafka:
            return pair
        time.sleep(PAUSE_SECONDS)


def _normalizers(conversations: list[Conversation], case: Case) -> list[Normalizer]:
    return [Normalizer(each.known(), case.may_differ, case.ignored) for each in conversations]


def _trees(normalizers: list[Normalizer], pair: list[object]) -> tuple[Any, Any]:
    ours, kafka = (normalizer.tree(answer) for normalizer, answer in zip(normalizers, pair, strict=True))
    return ours, kafka


def _explain(result: Result) -> None:
    for difference in result.differences:
        if difference.is_text:
            continue
        what = result.comparison.name, difference.path, difference.ours, difference.kafka
        why = next((each for each in EXPLAINED if each.covers(*what)), None)
        if why is None:
            result.unexplained.append(difference)
        elif why not in result.reasons:
            result.reasons.append(why)


def no_longer_needed(results: Iterable[Result]) -> list[Explanation]:
    used = Counter(reason for result in results for reason in result.reasons)
    return [each for each in EXPLAINED if not used[each]]
