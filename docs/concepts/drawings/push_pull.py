"""The drawings for the documentation page on push and pull."""

from __future__ import annotations

from drawing import Drawing

PRODUCED, CONSUMED = 10, 6  # messages per second
BUSY, END = 20, 34  # seconds: when the producer stops, and where the curve ends


def waiting(second: int) -> int:
    """Return how many messages wait after `second` seconds: they were produced, but not consumed yet."""
    return max(0, PRODUCED * min(second, BUSY) - CONSUMED * second)


def backlog() -> Drawing:
    """Draw a curve of the number of waiting messages over time.

    Below the curve, two small drawings show where the messages wait. With push, they wait in the consumer. With
    pull, they wait in the broker.
    """
    most = max(waiting(second) for second in range(END + 1))
    drawing = Drawing(
        640,
        290,
        f"A curve over {END} seconds. The number of waiting messages grows to {most} in {BUSY} seconds and then "
        "falls to 0. With push the messages wait in the memory of the consumer, with pull on the disk of the broker.",
    )
    left, bottom, wide, high = 60, 170, 500, 130

    def at(second: int, messages: int) -> tuple[float, float]:
        return left + wide * second / END, bottom - high * messages / most

    drawing.line((left, bottom - high - 10), (left, bottom), (left + wide + 10, bottom))
    drawing.line(*(at(second, waiting(second)) for second in range(END + 1)), tone="violet")
    drawing.text(left - 8, bottom - high + 5, str(most), anchor="end", size=13)
    drawing.text(left - 8, bottom, "0", anchor="end", size=13)
    for second in (0, BUSY, END):
        drawing.text(at(second, 0)[0], bottom + 18, f"{second} s", size=13)
    drawing.text(left + 12, 24, "messages that wait", anchor="start", size=13)
    drawing.text(at(BUSY, most)[0] + 14, bottom - high + 2, "the producer stops", anchor="start", size=13)
    for x, name in ((20, "push"), (335, "pull")):
        drawing.text(x, 248, f"{name}:", anchor="start", strong=True)
        is_push = name == "push"
        broker = drawing.box(x + 50, 226, 100, 38, "broker" if is_push else f"broker: {most}", tone="amber")
        consumer = drawing.box(x + 170, 226, 110, 38, f"consumer: {most}" if is_push else "consumer", tone="green")
        if is_push:
            drawing.arrow(broker.right, consumer.left)
        else:
            drawing.arrow(consumer.left, broker.right)
    return drawing


def long_poll() -> Drawing:
    """Draw two long polls over time. A message ends the first one, and the time limit ends the second one."""
    drawing = Drawing(
        640,
        230,
        "Two lines of time, for the broker and for the consumer. The first request reaches the broker and waits. "
        "A message arrives, and the broker answers at once. The second request waits 0.5 seconds and is answered "
        "without messages.",
    )
    broker, consumer = 70, 180
    for y, name in ((broker, "broker"), (consumer, "consumer")):
        drawing.text(76, y + 5, name, anchor="end")
        drawing.arrow((86, y), (630, y), tone="gray")
    drawing.box(120, broker - 12, 170, 24, "waits", tone="amber")
    drawing.box(360, broker - 12, 210, 24, "waits 0.5 s", tone="amber")
    drawing.arrow((110, consumer), (120, broker + 12))
    drawing.arrow((290, broker + 12), (300, consumer))
    drawing.arrow((350, consumer), (360, broker + 12))
    drawing.arrow((570, broker + 12), (580, consumer))
    drawing.arrow((290, 24), (290, broker - 12), tone="blue")
    drawing.text(290, 18, "message arrives", tone="blue", size=13)
    for x, words in ((110, "Fetch"), (300, "1 message"), (372, "Fetch"), (580, "0 messages")):
        drawing.text(x, consumer + 22, words, size=13)
    return drawing
