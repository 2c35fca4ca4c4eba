"""The list of all comparisons, in the order in which they run."""

from __future__ import annotations

from .case import Case, Comparison, comparisons_of
from .cases import (
    api_versions,
    configs,
    consumer_groups,
    controllers,
    create_topics,
    delete_topics,
    fetch,
    find_coordinator,
    group_admin,
    init_producer_id,
    join_group,
    list_offsets,
    log_ends,
    membership,
    metadata,
    migration,
    offsets,
    partitions,
    permissions,
    produce,
    quotas,
    share_groups,
    streams_groups,
    transactional_writes,
    transactions,
    versions,
)

# The cases that request all topics or all groups run first, because later cases create more topics and groups.
MODULES = [
    metadata,
    api_versions,
    list_offsets,
    fetch,
    produce,
    find_coordinator,
    init_producer_id,
    create_topics,
    delete_topics,
    join_group,
    membership,
    group_admin,
    offsets,
    consumer_groups,
    migration,
    share_groups,
    streams_groups,
    configs,
    partitions,
    controllers,
    quotas,
    log_ends,
    transactions,
    transactional_writes,
    versions,
]
CASES: list[Case] = [
    *group_admin.LIST_CASES,
    *partitions.ALL_CASES,
    *controllers.ALL_CASES,
    *(case for module in MODULES for case in module.CASES),
    *permissions.CASES,
]
COMPARISONS: list[Comparison] = [each for case in CASES for each in comparisons_of(case)]


def sample() -> list[Comparison]:
    """Return a sample of all comparisons. It contains every test case, in at most three API versions.

    Most cases run in the first version, in the last version and in a third version. A case that tests ACLs runs in one
    version. An API that needs permissions has one such case for each of several users. Some of these cases run in the
    first version of the API, and the others run in the last version.
    """
    chosen: list[Comparison] = []
    for number, case in enumerate(CASES):
        of_case = list(comparisons_of(case))
        last = len(of_case) - 1
        indexes = {0, number % len(of_case), last} if case.user is None else {last if number % 2 else 0}
        chosen += [of_case[index] for index in sorted(indexes)]
    return chosen
