"""Finds an API or an error code by its name. For example, "JoinGroup" becomes `ApiKey.JOIN_GROUP`."""

from __future__ import annotations

from hmb.broker.config.keys import nearest
from hmb.broker.handlers import HANDLERS
from hmb.protocol.api_keys import ApiKey
from hmb.protocol.errors import ErrorCode
from hmb.protocol.messages import api_name
from hmb.testing.errors import NameNotFound

_BY_LETTERS = {key.name.replace("_", ""): key for key in HANDLERS}  # for example "JOINGROUP" -> ApiKey.JOIN_GROUP


def api_key(api: str | ApiKey) -> ApiKey:
    """Return the key of the API with this name. `JoinGroup`, `JOIN_GROUP` and `join_group` name the same API.

    Raises NameNotFound.
    """
    if not isinstance(api, str | ApiKey):
        raise NameNotFound(f"api={api!r}: the value must be the name of an API; examples: Produce, Fetch, JoinGroup")
    found = api if isinstance(api, ApiKey) else _BY_LETTERS.get(api.replace("_", "").upper())
    if found is None:
        near = nearest(str(api), [*map(api_name, HANDLERS), *(key.name for key in HANDLERS)])
        raise NameNotFound(f"no API has the name {api!r}{near or '; examples: Produce, Fetch, JoinGroup'}")
    if found not in HANDLERS:
        raise NameNotFound(f"the broker has no API {found.name}")
    return found


def error_code(error: str | ErrorCode) -> ErrorCode:
    """Return the error code with a name such as `NOT_LEADER_OR_FOLLOWER`. Raises NameNotFound."""
    if isinstance(error, ErrorCode):
        return error
    if not isinstance(error, str):
        raise NameNotFound(f"error={error!r}: the value must be the name of an error; example: NOT_LEADER_OR_FOLLOWER")
    try:
        return ErrorCode[error.upper()]
    except KeyError:
        near = nearest(error.upper(), ErrorCode.__members__)
        raise NameNotFound(f"no error has the name {error!r}{near or '; example: NOT_LEADER_OR_FOLLOWER'}") from None
