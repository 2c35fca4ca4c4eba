"""The cost of ACLs: two new brokers of HMB receive the same records, and one of them has 1,000 ACLs.

The broker checks the ACLs once for each topic of a request, not once for each record. The benchmark therefore sends
many small Produce requests. With larger requests, the check would cost less time for each record.

One ACL permits everything on the benchmark's topic. The other 999 ACLs belong to other topics and other users.
Of these, 500 are for prefixes of topic names, such as `department-1`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

from hmb.client import Admin
from hmb.client.admin import raised
from hmb.client.admin.acls import AclBinding
from hmb.protocol.enums import AclOperation, AclPatternType, AclResourceType

from ..load.producers import rate_and_cpu
from ..load.workload import Workload
from ..peers import Hmb, topics

TOPIC = "hmb-bench-acls"
ACLS = 1_000
SMALL_BATCH = 195  # bytes; a batch contains one record of 100 bytes
AUTHORIZER = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "allow.everyone.if.no.acl.found": "true",  # This setting allows the benchmark to create the ACLs.
}
NOBODY = "User:ANONYMOUS"  # the principal of a client that does not log in


def acls() -> Iterator[AclBinding]:
    """Yield the ACLs: one for the topic of the benchmark, and all others for other topics."""
    yield AclBinding(AclResourceType.TOPIC, TOPIC, NOBODY, AclOperation.ALL)
    for number in range(1, ACLS):
        pattern = AclPatternType.PREFIXED if number % 2 else AclPatternType.LITERAL
        name, user = f"{'department' if number % 2 else 'topic'}-{number}", f"User:user-{number}"
        yield AclBinding(AclResourceType.TOPIC, name, user, AclOperation.WRITE, pattern_type=pattern)


class AclBrokers:
    """Two brokers: one without an authorizer, and one with 1,000 ACLs.

    The brokers stop when the caller closes the ExitStack `stack`.
    """

    def __init__(self, stack: ExitStack, records: int) -> None:
        self._workload = Workload(100, SMALL_BATCH, records)
        self._without, self._with = stack.enter_context(Hmb()), stack.enter_context(Hmb(config=AUTHORIZER))
        for broker in (self._without, self._with):
            topics.create(broker.bootstrap, TOPIC)
            rate_and_cpu(broker, TOPIC, self._workload)  # This run is the warm-up.
        with Admin(self._with.bootstrap) as admin:
            for result in (created := admin.create_acls(acls())):
                raised(created[result])

    def measure(self, number: int) -> dict[str, float]:
        """Return the record rate with ACLs, how much lower it is than without (%), and the extra CPU time (%)."""
        runs = {}
        for broker in (self._without, self._with) if number % 2 else (self._with, self._without):
            runs[broker] = rate_and_cpu(broker, TOPIC, self._workload)
        (rate, cpu), (rate_without, cpu_without) = runs[self._with], runs[self._without]
        return {
            "records_per_second": rate,
            "lost_percent": 100 * (1 - rate / rate_without),
            "cpu_percent": 100 * (cpu / cpu_without - 1),
        }
