"""Quotas: the broker limits what a client may use, so that one client does not slow down all others.

An administrator sets a quota for an *entity*: a user, a client id, a user with a client id, or an IP address. There are
five quotas:
    producer_byte_rate         bytes of records per second in Produce requests
    consumer_byte_rate         bytes of records per second in Fetch and ShareFetch responses
    request_percentage         percentage of time that broker threads work for a client; 100 means one busy thread
    controller_mutation_rate   partitions per second that a client creates or deletes
    connection_creation_rate   new connections per second from an IP address

The broker measures each client with a sliding window over the last 10 to 11 seconds (window.py). If a client exceeds
its quota, the response contains a throttle time. The broker then reads no further request from this connection until
this time has passed. For example, the quota is 1,000 bytes/s. The client has sent 15,000 bytes in a window of 10.5 s.
At the rate of the quota, these bytes take 15 s, so the client must wait for the remaining 4.5 s:
    Produce request                        ->  response with throttle_time_ms = 4500, because 15 s - 10.5 s = 4.5 s
    next request of the same connection    ->  the broker reads it 4.5 s later

For the quota controller_mutation_rate, the broker uses a *token bucket* instead of a sliding window. Each
created or deleted partition takes one token, and new tokens arrive at the rate of the quota.

For example, the quota is 10 partitions/s, and the bucket contains 110 tokens. A client creates 1,000
partitions. The bucket then has -890 tokens, so the client waits for 890 / 10 = 89 s. A sliding window of 11 s
would count the partitions for only 11 s.

The quota connection_creation_rate limits how many new connections an IP address opens per second. If an address
exceeds this quota, the broker lets the new connection wait for the throttle time, and then closes it. The broker cannot
send the throttle time to the client, because it sends only responses, and the client has not sent a request yet.

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
