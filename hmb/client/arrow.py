"""Arrow columns of what was fetched."""

from typing import Any


def take_batch(hand: Any) -> Any:
    raise NotImplementedError
