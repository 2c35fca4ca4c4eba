"""Messages v0 and v1, the record formats of 2012 to 2017. Old clients send these messages, and old logs contain them.

Before Kafka 0.11, clients and brokers exchanged *messages*. A message is one record with its own offset, CRC
and attributes. A *message set* is a sequence of messages. Unlike a record batch, it has no header.

A producer can compress a message set, and send the result as the value of one new message, the *wrapper*. The
wrapper has the offset of the set's last message. In this drawing, three messages become one wrapper:
    message set   | offset 0, message | offset 1, message | offset 2, message |
    compressed    | offset 2, wrapper: attributes = codec, value = compressed message set |

Since Kafka 0.11, clients send record batches (magic 2), which have one header for all their records. See
`hmb.records.batch`.

For example, a record with a value of 10 bytes takes 36 bytes as a message v0 (26 + 10), and 44 bytes as a message v1
(34 + 10). In a record batch, the record takes 17 bytes, and the header takes 61 bytes once for all records.

The broker accepts messages v0 and v1 from old producers. It writes the log's offsets into the messages, and
usually stores all other bytes unchanged. If compressed messages contain wrong offsets, the broker corrects
the offsets and compresses the messages again.

The broker converts messages to a record batch only in two cases:
- The topic's `compression.type` requires a codec that a message does not have, so the broker encodes the
  records again.
- The broker has written offsets into compressed messages v0, but then appends another producer's records at
  these offsets. The messages therefore need new offsets.

When an old consumer reads record batches, the broker converts the batches to messages. If you are interested
only in today's clients, skip this folder.

The class `Message` has the same properties as `RecordBatch`. So most code in the other modules of `hmb.records` works
with objects of both classes.

Read in this order:
- `message`          one message, which may contain compressed messages
- `message_set`      encodes a message set, and writes the offsets of its messages
- `down_conversion`  converts record batches to messages, for old consumers
- `up_conversion`    converts messages to one record batch
"""
