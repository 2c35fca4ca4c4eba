r"""Regular expressions over topic names, by which KIP-848's members may subscribe.

A client's expression is matched against every topic of the broker, so it must not be able to take for ever. Python's
`re` backtracks: `(a+)+b` takes it twice as long with every further `a`, with all other threads standing still. Kafka
asks for RE2's syntax for that very reason, and so do we: an expression becomes a finite automaton, and every character
of a name is looked at once (Thompson, 1968)::

    expression --parse--> states, each with the characters it takes and the states that follow
    name       --match--> the set of states that can be reached, character by character

The automaton remembers the sets of states that it has reached, and where each character leads from them. The next
names are then matched faster. An expression matches a name as a whole.

Syntax: characters, `.`, `[a-z]`, `[^...]`, `(...)`, `(?:...)`, `(?P<name>...)`, `|`, `*`, `+`, `?`, `{n}`, `{n,}`,
`{n,m}` (lazy or not is all the same here), `^`, `$`, `\A`, `\z`, the classes `\d`, `\w`, `\s`, their opposites,
`[:alpha:]` and its like, `\Q...\E`, the flag `(?i)`. Left out: Unicode's classes, `\b`. What RE2 refuses is
refused: back references and look-around.
"""

from __future__ import annotations

import string
from collections.abc import Callable, Iterable

from hmb.coordinator.known_names import cached_by_name
from hmb.protocol.errors import ErrorCode, KafkaError

NAME_CHARACTERS = frozenset(string.ascii_letters + string.digits + "._-")  # a topic has no others
DIGITS = frozenset(string.digits)
CLASSES = {"d": DIGITS, "w": DIGITS | frozenset(string.ascii_letters + "_"), "s": frozenset()}
POSIX = {
    "alnum": DIGITS | frozenset(string.ascii_letters),
    "alpha": frozenset(string.ascii_letters),
    "digit": DIGITS,
    "lower": frozenset(string.ascii_lowercase),
    "punct": frozenset("._-"),
    "upper": frozenset(string.ascii_uppercase),
    "word": CLASSES["w"],
    "xdigit": frozenset(string.hexdigits),
}
CONTROL = {"n": "\n", "t": "\t", "r": "\r", "f": "\f", "v": "\v", "a": "\a"}
MAX_STATES = 1000
MAX_REPEAT = 1000
MAX_REMEMBERED = 5000  # states in all remembered sets together: some 300 kB
Characters = frozenset[str]
Fragment = Callable[[int], int]  # a part of the automaton, to be made: state that follows -> first state


class InvalidRegex(KafkaError):
    """The expression is not one of RE2's, or too large."""

    def __init__(self, regex: str, why: str) -> None:
        super().__init__(
            ErrorCode.INVALID_REGULAR_EXPRESSION,
            f"SubscribedTopicRegex `{regex}` is not a valid regular expression: {why}.",
        )


class TopicRegex:
    """One expression, ready to match."""

    def __init__(self, regex: str) -> None:
        """Raises InvalidRegex."""
        self.regex = regex
        # A state takes one of its characters and goes on with another state, or it takes none (None) and goes on with
        # all of several; the ends of the name are such states that only count there.
        self._takes: list[Characters | str | None] = []
        self._next: list[tuple[int, ...]] = []
        self._accepting = self._state(None)
        self._start = _Parser(regex, self).parse()(self._accepting)
        self._known: dict[tuple[frozenset[int], str], frozenset[int]] = {}
        self._room = MAX_REMEMBERED

    def _state(self, takes: Characters | str | None, *following: int) -> int:
        if len(self._takes) >= MAX_STATES:
            raise InvalidRegex(self.regex, "expression too large")
        self._takes.append(takes)
        self._next.append(following)
        return len(self._takes) - 1

    def matches(self, name: str) -> bool:
        """Whether it matches the name from its beginning to its end."""
        states = self._closure([self._start], at_start=True, at_end=not name)
        for position, character in enumerate(name, 1):
            states = self._step(states, character, at_end=position == len(name))
            if not states:
                return False
        return self._accepting in states

    def _step(self, states: frozenset[int], character: str, *, at_end: bool) -> frozenset[int]:
        key = states, character + "$" * at_end
        found = self._known.get(key)
        if found is None:
            taken = [self._next[state][0] for state in states if self._takes_character(state, character)]
            found = self._closure(taken, at_start=False, at_end=at_end)
            if (size := len(states) + len(found) + 1) <= self._room:
                self._room -= size
                self._known[key] = found
        return found

    def _takes_character(self, state: int, character: str) -> bool:
        takes = self._takes[state]
        return isinstance(takes, frozenset) and character in takes

    def _closure(self, states: Iterable[int], *, at_start: bool, at_end: bool) -> frozenset[int]:
        """These states, and all that follow without a character."""
        found, pending = set[int](), list(states)
        while pending:
            state = pending.pop()
            if state in found:
                continue
            found.add(state)
            takes = self._takes[state]
            if takes is None or (takes == "^" and at_start) or (takes == "$" and at_end):
                pending += self._next[state]
        return frozenset(found)

    # -- the automaton's parts, for the parser

    def one_of(self, characters: Characters) -> Fragment:
        return lambda following: self._state(characters, following)

    def at(self, end: str) -> Fragment:
        """The name's beginning `^` or its end `$`."""
        return lambda following: self._state(end, following)

    def sequence(self, parts: list[Fragment]) -> Fragment:
        def build(following: int) -> int:
            if not parts:  # so that nothing is repeated for free
                return self._state(None, following)
            for part in reversed(parts):
                following = part(following)
            return following

        return build

    def any_of(self, parts: list[Fragment]) -> Fragment:
        return lambda following: self._state(None, *(part(following) for part in parts))

    def repeat(self, part: Fragment, least: int, most: int | None) -> Fragment:
        """So many times; None: without an end."""

        def build(following: int) -> int:
            if most is None:
                first = self._state(None)
                self._next[first] = (part(first), following)
            else:
                first = following
                for _ in range(most - least):
                    first = self._state(None, part(first), following)
            for _ in range(least):
                first = part(first)
            return first

        return build


class _Parser:
    """Reads an expression from left to right."""

    def __init__(self, regex: str, automaton: TopicRegex) -> None:
        self._regex = regex
        self._automaton = automaton
        self._position = 0
        self._depth = 0
        self._ignores_case = False

    def parse(self) -> Fragment:
        parsed = self._alternatives()
        if self._position < len(self._regex):
            raise self._invalid("missing closing )")  # RE2's words for a ) without its (
        return parsed

    def _invalid(self, why: str) -> InvalidRegex:
        return InvalidRegex(self._regex, why)

    def _peek(self, text: str) -> bool:
        return self._regex.startswith(text, self._position)

    def _skip(self, text: str) -> bool:
        found = self._peek(text)
        self._position += len(text) * found
        return found

    def _take(self, why: str) -> str:
        """The next character; there must be one."""
        if self._position >= len(self._regex):
            raise self._invalid(why)
        self._position += 1
        return self._regex[self._position - 1]

    def _alternatives(self) -> Fragment:
        parts = [self._sequence()]
        while self._skip("|"):
            parts.append(self._sequence())
        return parts[0] if len(parts) == 1 else self._automaton.any_of(parts)

    def _sequence(self) -> Fragment:
        parts: list[Fragment] = []
        while self._position < len(self._regex) and not self._peek("|") and not self._peek(")"):
            if self._skip("\\Q"):
                quoted, end, _ = self._regex[self._position :].partition("\\E")
                self._position += len(quoted) + len(end)
                parts += [self._characters(each) for each in quoted]
                continue
            parts.append(self._repeated(self._atom()))
        return self._automaton.sequence(parts)

    def _repeated(self, part: Fragment) -> Fragment:
        bounds = self._quantifier()
        if bounds is None:
            return part
        self._skip("?")  # lazy: for a match as a whole it is the same
        if self._quantifier() is not None:
            raise self._invalid("invalid nested repetition operator")
        return self._automaton.repeat(part, *bounds)

    def _quantifier(self) -> tuple[int, int | None] | None:
        for symbol, bounds in (("*", (0, None)), ("+", (1, None)), ("?", (0, 1))):
            if self._skip(symbol):
                return bounds
        inside, end, _ = self._regex[self._position + 1 :].partition("}")
        first, comma, last = inside.partition(",")
        if not (self._peek("{") and end and first.isdecimal() and (last.isdecimal() or not last)):
            return None  # a { that is not a quantifier is itself
        self._position += len(inside) + 2
        least = int(first)
        most = None if comma and not last else int(last or first)
        if max(least, most or 0) > MAX_REPEAT or (most is not None and most < least):
            raise self._invalid("invalid repeat count")
        return least, most

    def _atom(self) -> Fragment:
        character = self._take("")
        if character == "(":
            return self._group()
        if character == "[":
            return self._automaton.one_of(self._fold(self._set()))
        if character == ".":
            return self._automaton.one_of(NAME_CHARACTERS)
        if character in "^$":
            return self._automaton.at(character)
        if character in "*+?":
            raise self._invalid("missing argument to repetition operator")
        if character == "\\":
            return self._escaped()
        return self._characters(character)

    def _characters(self, characters: str) -> Fragment:
        return self._automaton.one_of(self._fold(frozenset(characters)))

    def _fold(self, characters: Characters) -> Characters:
        if self._ignores_case:
            return frozenset(each for one in characters for each in (one.lower(), one.upper()))
        return characters

    def _escaped(self) -> Fragment:
        if self._skip("A"):
            return self._automaton.at("^")
        if self._skip("z"):
            return self._automaton.at("$")
        return self._automaton.one_of(self._fold(self._escape()))

    def _escape(self) -> Characters:
        """Parse the characters after a backslash; return the characters that they match."""
        character = self._take("trailing backslash at end of expression")
        if character.lower() in CLASSES:
            found = CLASSES[character.lower()]
            return found if character.islower() else NAME_CHARACTERS - found
        if character in CONTROL:
            return frozenset(CONTROL[character])
        if character.isalnum():
            raise self._invalid("invalid escape sequence")
        return frozenset(character)

    def _set(self) -> Characters:
        negated = self._skip("^")
        found: set[str] = set()
        is_first = True
        while is_first or not self._skip("]"):
            is_first = False
            low = self._in_set()
            if self._peek("-") and not self._peek("-]"):
                self._position += 1
                high = self._in_set()
                if len(low) != 1 or len(high) != 1 or min(low) > min(high):
                    raise self._invalid("invalid character class range")
                found.update(each for each in NAME_CHARACTERS if min(low) <= each <= min(high))
            found |= low
        folded = self._fold(frozenset(found))
        return NAME_CHARACTERS - folded if negated else folded

    def _in_set(self) -> Characters:
        if self._skip("[:"):
            name, end, _ = self._regex[self._position :].partition(":]")
            if not end or name not in POSIX:
                raise self._invalid("invalid character class range")
            self._position += len(name) + 2
            return POSIX[name]
        character = self._take("missing closing ]")
        return self._escape() if character == "\\" else frozenset(character)

    def _group(self) -> Fragment:
        before = self._ignores_case
        if self._skip("?P<") or self._skip("?<"):
            name, end, _ = self._regex[self._position :].partition(">")
            if not end or not f"_{name}".isidentifier() or not name:
                raise self._invalid("invalid named capture")
            self._position += len(name) + 1
        elif self._skip("?") and self._flags():
            return self._automaton.sequence([])
        self._depth += 1
        if self._depth > MAX_STATES // 10:  # our own recursion
            raise self._invalid("expression nests too deeply")
        inside = self._alternatives()
        self._depth -= 1
        if not self._skip(")"):
            raise self._invalid("missing closing )")
        self._ignores_case = before
        return inside

    def _flags(self) -> bool:
        """Of `(?i)`, which hold for the rest of the group they stand in (True), or of `(?i:...)`."""
        value = True
        while True:
            character = self._take("missing closing )")
            if character in ":)":
                return character == ")"
            if character == "-":
                value = False
            elif character == "i":
                self._ignores_case = value
            elif character not in "msU":  # which make no difference for a name as a whole
                raise self._invalid("invalid or unsupported Perl syntax")


@cached_by_name(32)
def topic_regex(regex: str) -> TopicRegex:
    """Return the automaton of an expression; the same one again, while it is cached. Raises InvalidRegex."""
    return TopicRegex(regex)
