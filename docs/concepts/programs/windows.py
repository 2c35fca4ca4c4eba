from collections import Counter

import hmb

WINDOW, TOLERANCE = 10, 5  # minutes
# Each pair is one event: the minute in which the event happens, and the minute in which the program receives it.
EVENTS = ((1, 1), (4, 4), (8, 9), (12, 12), (9, 13), (14, 15), (18, 18), (7, 20), (21, 22), (27, 27))


def main() -> None:
    with hmb.Broker() as broker, hmb.Producer(broker.bootstrap_servers) as producer:
        for minute, _ in EVENTS:
            producer.send("orders", b"an order", timestamp=minute * 60_000).result()

        windows: Counter[int] = Counter()
        watermark = 0
        for record in hmb.Consumer(broker.bootstrap_servers, "orders", until="end"):
            minute = record.timestamp // 60_000
            start = minute - minute % WINDOW
            if start + WINDOW <= watermark:
                print(f"minute {minute}: late, its window is closed")
                continue
            windows[start] += 1
            watermark = max(watermark, minute - TOLERANCE)
            for closed in [start for start in windows if start + WINDOW <= watermark]:
                print(f"watermark {watermark}: {windows.pop(closed)} orders from {closed} to {closed + WINDOW}")
        print("still open:", dict(windows))


if __name__ == "__main__":
    main()
