logs: dict[str, list[str]] = {"A": [], "B": [], "C": []}  # one copy of the partition on each broker
in_sync = ["A", "B", "C"]  # The first broker in this list is the leader.


def copy(follower: str) -> None:
    """Copy new records from the leader's log to the follower's log."""
    leader_log = logs[in_sync[0]]
    logs[follower] += leader_log[len(logs[follower]) :]


def show(step: str) -> None:
    high_watermark = min(len(logs[name]) for name in in_sync)
    ends = " ".join(f"{name}:{len(log)}" for name, log in logs.items())
    print(f"{step:34} log ends {ends}   in sync {','.join(in_sync):6} high watermark {high_watermark}")


logs["A"] += ["order 1", "order 2"]
show("leader A appends two records")
copy("B")
show("B has copied both")
copy("C")
show("C has copied both")
in_sync.remove("C")
logs["A"] += ["order 3"]
copy("B")
show("C is too slow, B copies order 3")
logs["A"] += ["order 4"]
show("A appends order 4 ...")
in_sync.remove("A")
show("... and crashes: B is the leader")
