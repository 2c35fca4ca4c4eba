"""The header of a request and the header of a response. Each request or response begins with its header.

The headers of a request and of a response contain these fields. The versions are versions of the header:
    request                             response
    int16   api_key                     int32   correlation_id
    int16   api_version                 tagged fields (only in version 1)
    int32   correlation_id
    string  client_id (may be null)
    tagged fields (only in version 2)

A header has its own version, but the bytes of the header do not contain this version. The API and the version of the
message determine the header's version (see `header_version` in the classes of messages).

The client gives each request a number, the correlation id. The response contains the same correlation id. For example,
a Metadata request (key 3) in version 1 with the correlation id 7 and the client id "ab" has the header
`00 03 00 01 00 00 00 07 00 02 61 62`.

In both versions of the request header, the client id begins with an int16 length. (Other strings of a flexible version
begin with a varint.) So a broker can read the client id even if it does not know the version of the request.

Source: KIP-482, RequestHeader.json and ResponseHeader.json. In these files, `api_key` and `api_version` have the names
`request_api_key` and `request_api_version`.
"""

from __future__ import annotations

from hmb.protocol import fields as t
from hmb.protocol.schema import Struct

API_KEY_SIZE = 2  # bytes


class RequestHeader(Struct, versions="1-2", flexible="2+"):
    """The header of a request.

    Version 2 adds tagged fields. Version 0 had no client id. Only old brokers used version 0, for requests to other
    brokers.
    """

    api_key:        int        = t.int16()
    api_version:    int        = t.int16()
    correlation_id: int        = t.int32()
    client_id:      str | None = t.string(nullable="0+", compact=False)


class ResponseHeader(Struct, versions="0-1", flexible="1+"):
    """The header of a response. Version 1 adds tagged fields."""

    correlation_id: int = t.int32()
