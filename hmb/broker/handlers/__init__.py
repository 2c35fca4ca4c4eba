"""The handlers: one module for each API, and the table of all handlers.

A handler is a function `handle(request, context)`. It calls functions of the domain layer (logs, groups, transactions),
and makes a response from the results. If the domain layer raises KafkaError, the handler puts the error code into the
response.

A handler returns a response, a Deferred, or None. A Deferred is a response that must wait, for example until records
are on disk. None means that the client wants no response (acks=0).

The table HANDLERS contains the handler of each API. The broker reads this table to find the handler of a request, and
to list all APIs in the response to ApiVersions. The documentation also uses this table.

A handler's module has the name of its API. For example, the handler of `ApiKey.LIST_OFFSETS` is the function `handle`
in list_offsets.py. The table HANDLERS finds each handler by this name, so the code contains no list of the handlers.
The keys of the table are the APIs whose messages are declared in the folder `hmb.protocol.messages`.

The broker does not call the handlers of the table HANDLERS directly. It calls functions that wrap the handlers
and do additional work. The function `counted` (counting.py) measures each request. If the broker has an
authorizer, `guarded` (security/acls/guards.py) checks the ACLs before the handler runs. If a quota limits an
API, `throttled` (security/quotas/throttling.py) slows down clients that exceed the quota.

This folder contains only handlers. The functions that several handlers use are in broker/shared_responses.py and, for
the states of share-partitions, in broker/share/state_results.py.

The docstring of each handler's module has five parts:
- "Versions" says which versions of the API the handler supports.
- "Permissions" says which operations ACLs must allow, if the broker has an authorizer (security/acls/rules.py).
- "Behavior" describes the newest version.
- "Version notes" says how the broker's behavior differs in other versions. The fields of each version are
  described in the docstring of the message class.
- "Left out" says which parts of Kafka's behavior HMB lacks, and what this means for clients.

A new version of an API can add fields or change the behavior. If the version adds a field, the field's declaration in
the message class contains the version (`first_version`), and handlers read the version from there. If a version
changes only the behavior, the message class has a constant with this version.
"""

from collections.abc import Callable, Iterator, Mapping
from functools import cache
from importlib import import_module
from typing import Any, TypeAlias

from hmb.protocol.api_keys import ApiKey
from hmb.protocol.messages import API_KEYS

AnyHandler: TypeAlias = Callable[[Any, Any], Any]


class HandlerTable(Mapping[ApiKey, AnyHandler]):
    """The handler of each API. A look-up imports the handler's module.

    Most clients use only a few APIs. Importing the modules of all handlers would take 70 ms. The broker therefore
    imports a handler's module only when the first request of its API arrives.
    """

    def __getitem__(self, api_key: ApiKey) -> AnyHandler:
        return _handler(api_key)

    def __iter__(self) -> Iterator[ApiKey]:
        return iter(API_KEYS)

    def __len__(self) -> int:
        return len(API_KEYS)


@cache
def _handler(api_key: ApiKey) -> AnyHandler:
    if api_key not in API_KEYS:
        raise KeyError(api_key)
    handle: AnyHandler = import_module(f"{__name__}.{api_key.name.lower()}").handle
    return handle


HANDLERS = HandlerTable()
