"""Tests for the requirements of lab 1.

In each test, `answer` is the student's module `answer.py`, and `rng` generates random test cases.
"""

import threading
import time

WAIT = 10  # seconds: the check fails if a thread has not ended after this time


def read_all(topic, name):
    """Call `poll` until it returns None, and return the messages that it returned, at most 10,000."""
    found = []
    while (message := topic.poll(name)) is not None and len(found) < 10_000:
        found.append(message)
    return found


def test_order(answer):
    """Each subscriber receives every message that is published after its subscription, exactly once and in order."""
    topic = answer.Topic()
    topic.publish("before")
    topic.subscribe("a")
    assert topic.poll("a") is None, "a message that was published before subscribe('a') is not for 'a'"
    for message in ("one", "two", "three"):
        topic.publish(message)
    found = read_all(topic, "a")
    assert found == ["one", "two", "three"], f"publish 'one', 'two', 'three': poll returns {found}"
    topic.publish("four")
    found = read_all(topic, "a")
    assert found == ["four"], f"after these three, publish 'four': poll returns {found}"


def test_cursors(answer, rng):
    """Reading by one subscriber does not change what another subscriber receives."""
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
        assert found[name] == messages, f"{name} of {len(expected)} gets {found[name][:8]}..., not {messages[:8]}..."


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
    assert message is None, f"wait of an empty topic returns None after the timeout, and not {message!r}"
    assert time.monotonic() - begin >= 0.15, "wait('a', 0.2) of an empty topic returns before 0.2 seconds are over"
    thread = threading.Thread(target=lambda: found.append(topic.wait("a", 4 * WAIT)), daemon=True)
    thread.start()
    time.sleep(0.2)
    topic.publish("hello")
    thread.join(WAIT)
    assert found == ["hello"], f"a thread waits, and another one publishes 'hello': wait returns {found or 'nothing'}"
    topic.publish("next")
    message = topic.wait("a", WAIT)
    assert message == "next", f"a message is there already: wait returns {message!r}, and not 'next'"


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


def test_memory(answer):
    """The topic removes a message from memory when all subscribers have read the message."""
    topic = answer.Topic()
    for name in ("a", "b"):
        topic.subscribe(name)
    for number in range(100):
        topic.publish(number)
    assert topic.retained() == 100, f"100 messages that nobody has read: retained() is {topic.retained()}"
    read_all(topic, "a")
    assert topic.retained() == 100, f"'a' has read 100 messages, and 'b' none: retained() is {topic.retained()}"
    for _ in range(40):
        topic.poll("b")
    assert topic.retained() == 60, f"'a' has read 100 messages, and 'b' 40: retained() is {topic.retained()}"
    read_all(topic, "b")
    assert topic.retained() == 0, f"all subscribers have read all: retained() is {topic.retained()}"
