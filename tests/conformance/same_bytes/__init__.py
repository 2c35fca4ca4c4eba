"""Sends the same bytes to HMB and to Apache Kafka 4.3.0, and compares the responses.

    python -m tests.conformance.same_bytes                          # the whole table
    python -m tests.conformance.same_bytes --row 'Produce/acks=2/*' # both responses of some rows, side by side

Problem: the responses to valid requests are tested by every client. No client tests the responses to invalid requests
(an unknown topic, a negative count, a wrong epoch), and the specification says little about them. Yet these responses
matter, because a client retries after one error code and gives up after another.

Idea: Kafka itself is the specification. A row of the table is one request or a short conversation. HMB and Kafka
receive the request over a raw socket. The test decodes the two responses and compares them field by field.

- A case (`case.py`) is a conversation that is written once. It makes one row for each version that both brokers
  support.
- Some values must differ: each broker assigns its own topic ids and member ids. The test inserts each broker's ids into
  the requests. In the responses, `comparing.py` replaces the ids by equal placeholders. Fields in `MASKED` (host, port,
  times) are not compared. A closed connection counts as a response.
- Every other difference needs a reason in `explained.py`. A difference without a reason fails, and so does a reason
  without a difference. Error messages may have different words. These differences are counted separately and need no
  reason.
- Rows of an API that HMB does not serve are counted separately. `NOT_SERVED` lists these APIs, and no API may be added
  to it.

The order of the items in an array is not compared, because it mostly depends on Kafka's hash tables.
"""
