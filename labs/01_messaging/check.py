"""Tests for the requirements of lab 1.

In each test, `answer` is the student's module `answer.py`, and `rng` generates random test cases.
"""

import gc
import sys
import threading
import time
import weakref

WAIT = 10  # seconds: the check fails if a thread has not ended after this time


def read_all(topic, name):
    """Call `poll` again and again until it returns None. Return the messages, but not more than 10,000."""
    found = []
    while (message := topic.poll(name)) is not None and len(found) < 10_000:
        found.append(message)
    return found


def test_order(answer):
    """A subscriber receives every message that is published after the call of `subscribe`, and no older message.

    It receives each of these messages exactly once, in the order in which they were published.
    """
    topic = answer.Topic()
    topic.publish("before")
    topic.subscribe("a")
    assert topic.poll("a") is None, "a message that was published before subscribe('a') is not for 'a'"
    for message in ("one", "two", "three"):
        topic.publish(message)
    found, right = [*read_all(topic, "a"), None], ["one", "two", "three", None]
    assert found == right, f"publish 'one', 'two', 'three': the calls of poll return {found} (right: {right})"
    topic.publish("four")
    found, right = [*read_all(topic, "a"), None], ["four", None]
    assert found == right, f"after these three, publish 'four': the calls of poll return {found} (right: {right})"


def test_cursors(answer, rng):
    """When one subscriber reads a message, all other subscribers still receive this message."""
    topic, expected, found = answer.Topic(), {}, {}
    for number in range(300):
        action = rng.randrange(4)
        if action == 0 and len(expected) < 4:
            name = f"subscriber {len(expected)}"
            topic.subscribe(name)
            expected[name], found[name] = [], []
        elif action == 1:
            topic.publish(number)
            for messages in expected.values():
                messages.append(number)
        elif expected:
            name = rng.choice(sorted(expected))
            message = topic.poll(name)
            if message is not None:
                found[name].append(message)
    for name, messages in expected.items():
        found[name] += read_all(topic, name)
        assert found[name] == messages, f"{name} gets {found[name][:8]}... (right: {messages[:8]}...)"


def test_poll_does_not_wait(answer):
    """`poll` returns None immediately if the subscriber has read all messages."""
    topic, done = answer.Topic(), threading.Event()
    topic.subscribe("a")

    def poll():
        assert topic.poll("a") is None
        done.set()

    threading.Thread(target=poll, daemon=True).start()
    assert done.wait(WAIT), "poll of an empty topic does not return, or does not return None"


def test_wait(answer):
    """`wait` returns as soon as another thread publishes a message, and returns None after the timeout."""
    topic, found = answer.Topic(), []
    topic.subscribe("a")
    begin = time.monotonic()
    message = topic.wait("a", 0.2)
    assert message is None, f"wait('a', 0.2) of an empty topic returns {message!r} (right: None)"
    assert time.monotonic() - begin >= 0.15, "wait('a', 0.2) of an empty topic returns before 0.2 seconds are over"
    thread = threading.Thread(target=lambda: found.append(topic.wait("a", 4 * WAIT)), daemon=True)
    thread.start()
    time.sleep(0.2)
    topic.publish("hello")
    thread.join(WAIT)
    assert found == ["hello"], f"a thread waits, and another one publishes 'hello': wait returns {found or 'nothing'}"
    topic.publish("next")
    message = topic.wait("a", WAIT)
    assert message == "next", f"a message is there already: wait returns {message!r} (right: 'next')"


def test_all_waiting_threads(answer):
    """After one call of `publish`, one waiting thread of each subscriber gets the message.

    Several threads can call `wait` for one subscriber. The threads that get no message keep waiting.
    """
    topic, found = answer.Topic(), []
    for name in ("a", "b"):
        topic.subscribe(name)

    def read(name):
        found.append((name, topic.wait(name, WAIT)))

    threads = [threading.Thread(target=read, args=(name,), daemon=True) for name in ("a", "a", "b", "b")]
    for thread in threads:
        thread.start()
    time.sleep(0.2)
    topic.publish("one")
    end = time.monotonic() + 3
    while len(found) < 2 and time.monotonic() < end:
        time.sleep(0.05)
    time.sleep(0.2)
    got, right = sorted(found, key=str), [("a", "one"), ("b", "one")]
    case = "two threads wait for 'a' and two for 'b', and publish 'one'"
    rest = "the other two threads must still wait"
    assert got == right, f"{case}: the calls of wait have returned {got} (right: {right}; {rest})"
    topic.publish("two")
    for thread in threads:
        thread.join(WAIT)
    got, right = sorted(found, key=str), [("a", "one"), ("a", "two"), ("b", "one"), ("b", "two")]
    assert got == right, f"{case}, then publish 'two': the calls of wait have returned {got} (right: {right})"


def test_waiting_costs_nothing(answer):
    """While `wait` waits, it does not look for a message again and again."""
    topic, calls, sleeps = answer.Topic(), [], []
    topic.subscribe("a")

    def count(frame, event, argument):
        """Count the function calls in the student's code. Python runs `count` at each of these calls."""
        if event in ("call", "c_call") and frame.f_code.co_filename == answer.__file__:
            calls.append(event)
            if argument is time.sleep:
                sleeps.append(event)

    sys.setprofile(count)
    try:
        topic.wait("a", 0.5)
    finally:
        sys.setprofile(None)
    assert not sleeps, f"wait('a', 0.5) calls time.sleep {len(sleeps)} times; use the condition's wait and notify_all"
    assert len(calls) < 100, f"wait('a', 0.5) calls {len(calls)} functions; use the condition's wait and notify_all"


def interrupted(answer, first, second, step):
    """Call `first`, pause it at step number `step`, and call `second` in another thread.

    A step is one instruction of the answer's code. The pause ends when `second` has returned, or after 10 ms.
    If `second` waits for a lock that `first` holds, only the limit of 10 ms ends the pause.

    Return a list with two items: for each call, its result or its exception. Return None if `first` has fewer
    than `step` steps.
    """
    results, steps = [None, None], 0

    def call(number, method):
        try:
            results[number] = method()
        except Exception as error:  # noqa: BLE001  # The check shows whatever the answer raises.
            results[number] = error

    other = threading.Thread(target=call, args=(1, second), daemon=True)

    def trace(frame, event, argument):
        nonlocal steps
        if frame.f_code.co_filename != answer.__file__:
            return None
        frame.f_trace_opcodes = True
        if event in ("line", "opcode"):
            steps += 1
            if steps == step:
                other.start()
                other.join(0.01)
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        call(0, first)
    finally:
        sys.settrace(before)
    if steps < step:
        return None
    other.join(WAIT)
    return results


def check_interrupted_publish(answer):
    """Check that each subscriber gets the right messages if a second thread interrupts `publish`.

    The second thread calls `publish` and `subscribe`.
    """
    for step in range(1, 200):
        topic = answer.Topic()
        for name in ("a", "b"):
            topic.subscribe(name)

        def other():
            topic.publish("two")  # noqa: B023
            topic.subscribe("c")  # noqa: B023

        found = interrupted(answer, lambda: topic.publish("one"), other, step)  # noqa: B023
        if found is None:
            return
        case = "publish('one') in one thread, and in its middle publish('two') and subscribe('c') in another one"
        errors = [error for error in found if isinstance(error, Exception)]
        assert not errors, f"{case}: {errors} (right: no error); use the lock in each method"
        a, b, c = (read_all(topic, name) for name in "abc")
        is_right = a == b and sorted(a) == ["one", "two"] and c in ([], ["one"])
        assert is_right, f"{case}: 'a', 'b' and 'c' get {a}, {b} and {c}; use the lock in each method"


def test_interrupted_calls(answer):
    """Each method has the right result even if the system lets another thread run in the middle of the method."""
    # Each case has a list of messages and a string with the names of two subscribers, one letter each. The test
    # publishes the messages. One thread then calls `poll` for the first name. In the middle of this call, a second
    # thread calls `poll` for the second name.
    #
    # In the case "aa", both threads call `poll` for subscriber 'a'. The two calls must return different messages. If
    # the topic has only one message, one of the calls must return None.
    #
    # In the case "ab", the threads call `poll` for two subscribers, 'a' and 'b'. Each subscriber gets all messages, so
    # both calls must return the first message.
    for messages, names in ((["one", "two"], "aa"), (["one", "two"], "ab"), (["one"], "aa")):
        for step in range(1, 200):
            topic = answer.Topic()
            for name in ("a", "b"):
                topic.subscribe(name)
            for message in messages:
                topic.publish(message)
            found = interrupted(answer, lambda: topic.poll(names[0]), lambda: topic.poll(names[1]), step)  # noqa: B023
            if found is None:
                break
            calls = f"poll({names[0]!r}) in one thread, and in its middle poll({names[1]!r}) in another one"
            case = f"messages {messages}, {calls}"
            both = [*messages, None][:2]
            right = [both, both[::-1]] if names == "aa" else [["one", "one"]]
            assert found in right, f"{case}: they return {found} (right: {right[0]}); use the lock in each method"
            rest = [read_all(topic, "a"), read_all(topic, "b")]
            right = [[], messages] if names == "aa" else [["two"], ["two"]]
            what = f"then 'a' and 'b' still get {rest} (right: {right}); use the lock in each method"
            assert rest == right, f"{case}: {what}"

    check_interrupted_publish(answer)


def test_threads(answer):
    """Each subscriber receives every message exactly once, even when several threads use the topic."""
    topic, count, found = answer.Topic(), 2000, {"a": [], "b": []}
    for name in found:
        topic.subscribe(name)

    def publish(thread):
        for number in range(count):
            topic.publish((thread, number))

    def read(name):
        while len(found[name]) < 3 * count and (message := topic.wait(name, 2)) is not None:
            found[name].append(message)

    threads = [threading.Thread(target=publish, args=(number,), daemon=True) for number in range(3)]
    threads += [threading.Thread(target=read, args=(name,), daemon=True) for name in found]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(2 * WAIT)
    for name, messages in found.items():
        assert len(messages) == 3 * count, f"3 threads publish {3 * count} messages; {name!r} gets {len(messages)}"
        for thread in range(3):
            numbers = [number for sender, number in messages if sender == thread]
            assert numbers == list(range(count)), f"{name!r} gets the messages of a thread out of order, or doubled"


class Message:
    """A message that a test can use with weak references.

    A weak reference shows whether Python has deleted an object from memory. Python allows weak references to a
    `Message`, but not to a string.
    """


def publish_objects(topic, count):
    """Publish `count` messages, and return a list with a weak reference to each message.

    A weak reference does not keep an object in memory.
    """
    references = []
    for _ in range(count):
        message = Message()
        references.append(weakref.ref(message))
        topic.publish(message)
    return references


def check_kept(topic, references, right, case):
    """Check that the topic keeps the expected number of messages.

    The method `topic.retained()` must return the expected number, `right`. At most `right` messages may still be in
    memory. The list `references` contains a weak reference to each published message.
    """
    found = topic.retained()
    assert found == right, f"{case}: retained() is {found!r} (right: {right})"
    gc.collect()  # Python then also deletes messages to which only unused objects refer.
    found = sum(reference() is not None for reference in references)
    what = f"retained() is right, but the number of messages in memory is {found} (right: {right})"
    assert found <= right, f"{case}: {what}; delete each message that all subscribers have read"


def test_memory(answer):
    """The topic removes a message from memory when all subscribers have read the message.

    A topic without subscribers keeps no messages.
    """
    topic = answer.Topic()
    for name in ("a", "b"):
        topic.subscribe(name)
    references = publish_objects(topic, 100)
    check_kept(topic, references, 100, "100 messages that nobody has read")
    read_all(topic, "a")
    check_kept(topic, references, 100, "'a' has read 100 messages, and 'b' none")
    for _ in range(40):
        topic.poll("b")
    check_kept(topic, references, 60, "'a' has read 100 messages, and 'b' 40")
    read_all(topic, "b")
    check_kept(topic, references, 0, "all subscribers have read all")

    topic_without_subscribers = answer.Topic()
    references = publish_objects(topic_without_subscribers, 3)
    try:
        topic_without_subscribers.retained()
    except Exception as error:
        what = f"{type(error).__name__}: {error}"
        raise AssertionError(f"a topic without subscribers: retained() must return 0, but raises {what}") from error
    check_kept(topic_without_subscribers, references, 0, "3 messages, and a topic without subscribers")
