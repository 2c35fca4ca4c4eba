"""The headers before every request and every response.

    request                             response
    int16   api_key                     int32   correlation_id
    int16   api_version                 tagged fields (version 1)
    int32   correlation_id
    string  client_id (may be null)
    tagged fields (version 2)

A header has its own version. The API key and the version of the message determine the header's version
(`header_version` of the message class).

The client numbers its requests with correlation ids. The broker sends the id of the request back in the response, and
responds on one connection in the order of the requests. For example, a Metadata request (key 3) in version 1 with the
id 7 and the client id "ab" has the header `00 03 00 01 00 00 00 07 00 02 61 62`.

The client id has an int16 length in all versions, even in flexible ones. So a broker can read the header of any request
before it has checked the version.

Source: KIP-482. RequestHeader.json and ResponseHeader.json call the fields request_api_key and so on.
"""

from __future__ import annotations

from hmb.protocol import schema as t
from hmb.protocol.schema import Struct


class RequestHeader(Struct, versions="1-2", flexible="2+"):
    """The header of a request.

    v2 adds tagged fields. v0 had no client id. Only old brokers used v0, for their requests to each other.
    """

    api_key:        int        = t.int16()
    api_version:    int        = t.int16()
    correlation_id: int        = t.int32()
    client_id:      str | None = t.string(nullable="0+", compact=False)


class ResponseHeader(Struct, versions="0-1", flexible="1+"):
    """The header of a response. v1 adds tagged fields."""

    correlation_id: int = t.int32()
