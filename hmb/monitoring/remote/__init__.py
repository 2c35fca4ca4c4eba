"""Sends ordinary client requests to a broker (HMB or Apache Kafka), and shows the broker's state.

A broker of HMB can serve its state and a page over HTTP. Brokers of Apache Kafka cannot. With the option
`-b ADDRESS`, the commands `hmb state`, `hmb top` and `hmb ui` therefore send Kafka requests, and create the state (a
`BrokerState`) from the responses:
    part of the state                                     API
    brokers, topics, leaders                              Metadata
    settings of topics                                    DescribeConfigs
    log start offset, last stable offset, high watermark  ListOffsets
    bytes of a partition                                  DescribeLogDirs
    producers, open transactions                          DescribeProducers, ListTransactions, DescribeTransactions
    groups, members, positions                            ListGroups, a Describe API for each type, OffsetFetch
    batches and records that the user opens               Fetch

Kafka has no API for some parts of a broker's state, for example the segments of a log and the connections of a
broker. The field `missing` contains a reason for each part that HMB cannot read, and the page shows this
reason. If a request fails, for example because the user is not allowed to send it, the reason is the broker's
error.

*Rights.* The option `--command-config` names a file with a user's login data. HMB connects to the brokers as
this user. The page shows only what this user is allowed to read.

*Cost.* To read the state once, HMB sends about ten requests, and three more requests for each group. The page reads the
state at most once per second.

Read in this order: `reader.py`, `groups.py`, `fetched.py`, and then `page.py`.
"""
