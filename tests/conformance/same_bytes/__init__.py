"""Sends the same bytes to HMB and to Apache Kafka 4.3.0, and compares the responses.

    python -m tests.conformance.same_bytes                           # all comparisons
    python -m tests.conformance.same_bytes --only 'Produce/acks=2/*' # some of them, with both responses side by side

Problem: tests with real clients check how a broker responds to valid requests. They do not check the responses to
invalid requests (an unknown topic, a negative count, a wrong epoch), and the specification says little about these
responses. Yet these responses matter, because a client retries after one error code and gives up after another.

Idea: Kafka itself is the specification. A comparison sends one request, or a few requests in order, to HMB and to Kafka
over a raw socket. The test decodes the two responses to each request, and compares them field by field.

- A test case (`case.py`) lists requests, and selects versions of one API. If both brokers support a selected version,
  the test makes one comparison in this version.
- Some values must differ: each broker assigns its own topic ids and member ids. The test inserts each broker's ids into
  the requests. In the responses, `comparing.py` replaces the ids by equal placeholders. Fields in `MASKED` (host, port,
  times) are not compared. A closed connection counts as a response.
- The words of error messages may differ without a reason. The test counts these differences separately.
- Every other difference needs a reason in `explained.py`. The test fails if a difference has no reason, or if a reason
  matches no difference.
- Comparisons of an API that HMB does not serve are counted separately. `NOT_SERVED` lists these APIs. No API may be
  added to it.

The order of the items in an array is not compared, because it mostly depends on Kafka's hash tables.
"""
