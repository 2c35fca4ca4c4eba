"""The same bytes to HMB and to Apache Kafka 4.3.0: the answers have to be equal, or the difference explained.

    python -m tests.conformance.same_bytes                          # the whole table
    python -m tests.conformance.same_bytes --row 'Produce/acks=2/*' # both answers of some rows, side by side

What a broker does with good requests, its clients test all day.  What it does with bad ones (an unknown topic, a
negative count, a wrong epoch) no client shows, and the specification says little; yet each client reacts to one error
code by trying again, to another by giving up.  So Kafka itself is the specification here: a row of the table is a
request, or a short conversation, which both brokers get over a raw socket; their answers are decoded and compared field
by field.

- A case (`case.py`) is written once and makes a row for every version that both brokers speak.
- What must differ is exchanged on the way in (topic ids, member ids: each broker gets its own) and out
  (`comparing.py`: both answers then say the same placeholder), or left out of the comparison (`MASKED`: host, port,
  times).  Closing the connection is an answer too.
- What differs all the same needs a reason in `explained.py`.  A difference without a reason fails, and so does a
  reason without a difference.  Other words for the same error code are counted apart and need no reason.
- Rows of an API that HMB does not serve are counted as such; `NOT_SERVED` names these APIs and may only shrink.

The order of the items in an answer is not compared: Kafka's comes from hash tables in most places.
"""
