"""Consuming: how a consumer fetches batches before the application asks for their records.

The problem: an application that fetches, works and fetches again waits for the network half of its time. The consumer
therefore keeps one request to each leader in flight while the application works on earlier records.

::

    poll()
      GroupReading      partitions of the group, committed offsets
      Discovery         topics and partitions of the subscription
      AssignmentReader   a Position for each partition: consumed=13, fetched=20
        Fetcher         Fetch(weather-0 from 20) ----> leader
                                                 <---- batches 20-29
        RecordBuffer    decodes the batch 10-19
      returns the records 13-19

Kafka's consumer works in the same way: the broker stores no state of its readers except committed offsets. The consumer
knows its positions and can move them at any time.

Read in this order:

1. `simple_consumer`: the plain path, one request and one response.
2. `consumer` and `assigned`: the public class.
3. `positions`: the two offsets of a partition.
4. `reader`: partitions, from their start to the buffer.
5. `fetcher`: the requests to the leaders, and `partition_errors`: the errors in their responses.
6. `buffer`: from batches to records.
7. `subscription` and `group_reading`: the two ways to find partitions.

These modules can be skipped in a first reading: `settings` (the keyword arguments), `arrow` (columns instead of
records) and `single_thread` (a check for wrong use).
"""
