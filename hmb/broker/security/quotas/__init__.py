"""Quotas: the broker limits what a client may use, so that one client does not slow down all others.

An administrator sets a quota for an *entity*: a user, a client id, a user with a client id, or an IP address. There are
five quotas:
    producer_byte_rate         bytes of records in Produce requests, in one second
    consumer_byte_rate         bytes of records in Fetch responses, in one second
    request_percentage         time of the broker's threads; 100 means one thread that is always busy
    controller_mutation_rate   partitions that a client creates or deletes, in one second
    connection_creation_rate   new connections of an IP address, in one second

The broker measures each client with a sliding window over the last 10 to 11 seconds (window.py). If a client exceeds
its quota, the broker sends the response with a throttle time. The broker then reads no further request from this
connection until the time is over. For example, the window covers 10.5 s, and the quota is 1,000 bytes/s. The client has
sent 15,000 bytes in this time, for which it should have needed 15 s:
    Produce request                        ->  response with throttle_time_ms = 4500, because 15 s - 10.5 s = 4.5 s
    next request of the same connection    ->  the broker reads it 4.5 s later

Two quotas work differently from the others. For controller_mutation_rate, the broker uses a bucket of tokens instead of
a sliding window. A new connection above the quota connection_creation_rate gets no response: the broker closes this
connection after the throttle time.

Read in this order:
1. `window.py`         the two state machines: a sliding window, and a bucket of tokens
2. `limits.py`         which of several quotas applies to a client
3. `measuring.py`      the windows of all clients
4. `throttling.py`     the wrappers around the handlers
5. `partitions.py`     the quota for created and deleted partitions
6. `alterations.py`    sets and finds quotas, with Kafka's checks

The network layer enforces the quota connection_creation_rate (network/connection_limits.py).

Source: KIP-13, KIP-55, KIP-124, KIP-219, KIP-546, KIP-599, KIP-612.
"""
