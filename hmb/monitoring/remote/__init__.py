"""Shows what happens inside any broker, Apache Kafka included, through the APIs that clients use.

A broker of HMB serves its own state and its own page. Other brokers have no such ports. `hmb state -b ADDRESS`, `hmb
top -b ADDRESS` and `hmb ui -b ADDRESS` therefore ask the brokers with the APIs of Kafka, and make the same
`BrokerState` from the responses:
    part of the state                                     API
    brokers, topics, leaders                              Metadata
    settings of topics                                    DescribeConfigs
    log start offset, last stable offset, high watermark  ListOffsets
    bytes of a partition                                  DescribeLogDirs
    producers, open transactions                          DescribeProducers, ListTransactions, DescribeTransactions
    groups, members, positions                            ListGroups, a Describe API for each type, OffsetFetch
    batches and records that the user opens               Fetch

No API describes segments, connections or the requests of other clients. The field `missing` of the state names each of
these parts with a reason, and the page shows this reason. A request can also fail, for example because the user may not
use the API. Then `missing` contains the broker's error.

*Rights.* HMB connects to the brokers as the user in the command's settings (`--command-config`). The page therefore
shows only what this user may read.

*Cost.* One reading of the state needs about ten requests, and three further requests for each group. The page waits at
least one second between two readings.

Read in this order: `reader.py`, `groups.py`, `fetched.py`, and then `page.py`.
"""
