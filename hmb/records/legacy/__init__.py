"""Messages v0 and v1: the record formats of 2012 to 2017. Old clients still send them, and old logs still contain them.

Before Kafka 0.11 the unit on the wire was a *message*: one record with its own offset, CRC and attributes. A *message
set* is a sequence of messages without a header. A producer that compresses puts a whole message set into the value of
one more message, the *wrapper*::

    message set   | offset 0, message | offset 1, message | offset 2, message |
    compressed    | offset 2, wrapper: attributes = codec, value = compressed message set |

A record batch (magic 2) does the same work with one header for all its records. See `hmb.records.batch`.

An example in numbers: a record with a value of 10 bytes takes 36 bytes as a message v0 (26 + 10) and 44 bytes as a
message v1 (34 + 10). In a record batch the same record takes 17 bytes, plus 61 bytes once for the batch's header.

The broker accepts both formats from old producers, assigns their offsets, and stores them unchanged otherwise. For old
consumers it converts record batches to messages. A reader who is interested only in today's clients can skip this
folder. The rest of `hmb.records` calls it through `Message`, which has the properties of a `RecordBatch`.

Read in this order:

- `message`          one message, plain or a wrapper
- `message_set`      encoding a message set, and assigning offsets to its messages
- `down_conversion`  record batches as messages, for consumers of old versions
- `up_conversion`    messages as one record batch
"""
