"""`hmb consume --share`: print records as a member of a share group (KIP-932).

With the option `--share`, the command prints the records of a poll, and then acknowledges them. If the command is
killed between these two steps, the group delivers the records again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..shared.interruption import sigterm_as_ctrl_c
from ..shared.streams import write_out
from .consume_options import ConsumeOptions
from .filters import record_filter
from .idle_limit import IdleLimit

if TYPE_CHECKING:
    from hmb.client import ShareConsumer

    from .consume import Write


def consume_share(options: ConsumeOptions, write: Write) -> None:
    """Print the records that a share group delivers, until the user presses Ctrl-C.

    The function returns earlier if it has read --count records, or if no record arrives for --timeout-ms
    milliseconds.
    """
    from hmb.client import ShareConsumer
    from hmb.client.consuming.settings import MAX_POLL_RECORDS

    most = MAX_POLL_RECORDS if options.count is None else min(MAX_POLL_RECORDS, options.count)
    with (
        sigterm_as_ctrl_c(),
        ShareConsumer(
            options.client.servers,
            *dict.fromkeys(options.topics),
            group=options.share or "",
            acknowledgement="explicit",
            acquire_mode="batch_optimized" if options.count is None else "record_limit",
            max_poll_records=most,
        ) as consumer,
    ):
        _copy(consumer, options, write)


def _copy(consumer: ShareConsumer, options: ConsumeOptions, write: Write) -> None:
    from hmb.client import ConsumerRecord

    keep = record_filter(options.filter_keys, options.filter_values, options.filter_headers)
    idle = IdleLimit(options.timeout_ms)
    printed = 0
    while options.count is None or printed < options.count:
        acquired = consumer.poll(idle.poll_timeout)
        left = len(acquired) if options.count is None else options.count - printed
        records = [ConsumerRecord(*record[:-1]) for record in acquired[:left]]
        shown = records if keep is None else keep(records)
        if shown:
            write_out(write(shown))
        for number, record in enumerate(acquired):
            consumer.acknowledge(record, options.acknowledgement if number < left else "release")
        printed += len(records)
        if idle.is_over(has_records=bool(records)):
            return
