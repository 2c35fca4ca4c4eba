"""Kafka's protocol: converts bytes to messages, and messages to bytes, without any input or output.

A client and a broker exchange *frames* over TCP. A frame is a length, followed by a *message*. A message is a request
or a response, and begins with a header.

Each API (Produce, Fetch, Metadata, ...) has one kind of request and one kind of response, and both exist in
many versions. HMB does not have all of Kafka's APIs: for example, `Vote`, which only controllers use, is
missing. The bytes of a message contain no names and no types of fields. So the client and the broker must know
the layout of each version:
    frame     | int32 size | header | body |
    header    | int16 API key | int16 version | int32 correlation id | client id |      (of a request)
    body      | the fields of this version, one after the other |

For example, a client with the id "ab" requests the metadata of the topic "a". The frame contains the size 19 (13 in
hexadecimal), the header (API key 3, version 1, correlation id 7, client id), and an array with one topic name:
    00 00 00 13 | 00 03 00 01 00 00 00 07 00 02 61 62 | 00 00 00 01 00 01 61

In HMB, one class declares all versions of a message. For each version, the class has a *plan*, which lists the fields
of this version. The plan encodes and decodes the message. The code in this folder opens no sockets and no files, so a
test of this code needs only bytes. The broker and the client use the same code.

Read in this order:
- `framing`     where one message ends and the next one begins in a stream of bytes
- `primitives`  the types of fields: numbers, strings, arrays
- `fields`      how a message class declares its fields
- `schema`      how a message class becomes a codec
- `messages`    the classes, one file for each API; begin with `messages/produce.py`
- `headers`     the header that precedes each request and each response
- `connection`  the client's end and the broker's end of a connection; matches responses with requests
- `errors`, `api_keys`, `enums`, `topics`  tables of codes and names

You can skip five modules at your first reading:

- `tagged_fields` encodes the optional fields of newer versions.
- `allowance` limits the memory for the requests of untrusted clients.
- `annotate` shows messages byte by byte, for the commands `hmb decode` and `hmb sniff`.
- `consumer_protocol` encodes the data that members of a classic group send to each other through the broker.
- `range_assignment` divides partitions among the members of a group.
"""
