"""Kafka's protocol: bytes to messages and back, with no I/O.

Read in this order: primitives (the alphabet), schema (how a message class becomes a codec), messages (one file an
API), headers and framing (what stands around a message), connection (the two ends of a conversation), annotate (any
message, byte by byte).  Errors and API keys are tables.
"""
