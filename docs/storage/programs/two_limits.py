def too_old(newest: list[int], now: int, retention_ms: int) -> int:
    for number, timestamp in enumerate(newest):  # the newest timestamp of each segment, oldest segment first
        if now - timestamp <= retention_ms:
            return number
    return len(newest)


def too_many(sizes: list[int], retention_bytes: int) -> int:
    surplus = sum(sizes) - retention_bytes
    for number, size in enumerate(sizes):
        surplus -= size
        if surplus < 0:  # Without this segment, the log would be smaller than the limit.
            return number
    return len(sizes)


print("by time:", too_old([10, 20, 30, 40], now=45, retention_ms=20), "segments are too old")
print("by size:", too_many([100, 100, 100, 100], retention_bytes=250), "segment is too many")
