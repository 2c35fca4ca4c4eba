"""Test cases for InitProducerId: requests without a transactional id, and requests with invalid values."""

from __future__ import annotations

from hmb.protocol.messages.init_producer_id import InitProducerIdRequest as Request

from ..case import Case, case

NEW = {"may_differ": ("producer_id",)}
CASES: list[Case] = [
    case("idempotent", Request(transactional_id=None), **NEW),
    case("idempotent, timeout 0", Request(transactional_id=None, transaction_timeout_ms=0), **NEW),
    case("idempotent, timeout -1", Request(transactional_id=None, transaction_timeout_ms=-1), **NEW),
    case("idempotent, timeout of ages", Request(transactional_id=None, transaction_timeout_ms=2**31 - 1), **NEW),
    case("empty transactional id", Request(transactional_id="", transaction_timeout_ms=1000), **NEW),
    *(
        case(
            f"idempotent, id {id}, epoch {epoch}",
            Request(transactional_id=None, producer_id=id, producer_epoch=epoch),
            versions="3+",
            **NEW,
        )
        for id, epoch in ((0, 0), (4711, 3), (-1, 0), (5, -1), (-2, -2), (5, 32767), (2**63 - 1, 0))
    ),
]
