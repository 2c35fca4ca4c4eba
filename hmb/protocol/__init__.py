"""Kafka's protocol: conversion between bytes and messages, without any input or output.

A client and a broker exchange *frames* over TCP. A frame is a length and a *message*: a request with its header, or a
response with its header. Each API (Produce, Fetch, Metadata, ...) has a request and a response, and both exist in many
versions. The bytes contain no names and no types. So client and broker must know the layout of each version::

    frame     | int32 size | header | body |
    header    | int16 API key | int16 version | int32 correlation id | client id |      (of a request)
    body      | the fields of this version, one after the other |

In HMB, one class declares a message in all its versions, and a *plan* for each version encodes and decodes it. Nothing
in this folder opens a socket or a file. The tests therefore need only bytes, and broker and client share the code.

Read in this order:

- `framing`     one frame in a stream of bytes
- `primitives`  the types of fields: numbers, strings, arrays
- `schema`      how a message class becomes a codec
- `messages`    the classes, one file for each API; begin with `messages/produce.py`
- `headers`     the header that precedes each request and each response
- `connection`  the two ends of a connection: which response belongs to which request
- `errors`, `api_keys`, `enums`, `topics`   tables of codes and names

A first reading can skip four modules. `tagged_fields` describes the optional fields of newer versions, and `allowance`
the memory limits for untrusted requests. `annotate` shows messages byte by byte, for `hmb decode` and `hmb sniff`.
`consumer_protocol` describes the bytes that classic consumers exchange inside group messages.
"""
