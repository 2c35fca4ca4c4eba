from pathlib import Path

import hmb
from hmb.testing import ManualClock

DAY = 24 * 60 * 60 * 1000  # ms


def show(when: str) -> None:
    names = sorted(path.name for path in Path("data", "weather-0").iterdir() if ".log" in path.name)
    print(f"{when}:", ", ".join(f"{int(name[:20])}{name[20:]}" for name in names))


clock = ManualClock()
settings = {"log.segment.bytes": 200, "log.retention.ms": "4d", "log.segment.delete.delay.ms": "1m"}
with hmb.Broker("data", clock=clock, config=settings) as broker:
    for age in (7, 6, 5, 4, 3, 2, 1, 0):
        broker.produce("weather", f"{age} days ago: rain", timestamp=clock.now_ms() - age * DAY)
    show("before")
    broker.run_retention()
    show("after retention")
    clock.advance(minutes=2)
    show("two minutes later")
    print("first record:", broker.records("weather")[0].value.decode())
