"""What stands in front of every request and every response.

    request                             response
    int16   api_key                     int32   correlation_id
    int16   api_version                 tagged fields (version 1)
    int32   correlation_id
    string  client_id (may be null)
    tagged fields (version 2)

The headers have versions of their own, which follow from api key and version (`header_version` of a message).  The
correlation id is the client's number for the request; the broker sends it back, and answers on one connection in the
order of the requests.  `client_id` kept its int16 length when all other strings became compact, so that a broker can
read this much of any request before it knows the version.

Source: KIP-482; RequestHeader.json and ResponseHeader.json (where the fields are called request_api_key, ...).
"""

from hmb.protocol import schema as t
from hmb.protocol.schema import Struct


class RequestHeader(Struct, versions="1-2", flexible="2+"):
    """v2: tagged fields.  (v0 had no client id; only brokers of old used it among themselves.)"""

    api_key:        int        = t.int16()
    api_version:    int        = t.int16()
    correlation_id: int        = t.int32()
    client_id:      str | None = t.string(nullable="0+", compact=False)


class ResponseHeader(Struct, versions="0-1", flexible="1+"):
    """v1: tagged fields."""

    correlation_id: int = t.int32()
