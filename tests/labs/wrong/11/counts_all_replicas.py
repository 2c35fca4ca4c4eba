"""A wrong answer to lab 11: the high watermark also waits for replicas that are not in the ISR."""


def high_watermark(log_ends, isr):
    return min(log_ends[replica] for replica in log_ends)


def in_sync(replicas, leader, caught_up_at, now, max_lag):
    return [each for each in replicas if each == leader or now - caught_up_at[each] <= max_lag]


def elect(replicas, isr, live):
    return next((each for each in replicas if each in isr and each in live), None)


def common_length(follower_epochs, leader_epochs):
    length = 0
    for mine, theirs in zip(follower_epochs, leader_epochs, strict=False):
        if mine != theirs:
            break
        length += 1
    return length


def is_acknowledged(acks, offset, leader_end, high_watermark):
    if acks == "0":
        return True
    return offset < (leader_end if acks == "1" else high_watermark)
