"""The consumer: it fetches batches from brokers before the application asks for their records.

The problem: a simple consumer sends its next request only after the application has processed all fetched
records. The application then waits until the response arrives.

The idea: the consumer always keeps one request to each leader in flight, even while the application processes
records. The consumer has no extra thread for this. The method `poll` sends the next request, and the leader prepares
the response while the application works.

The consumer reads a response only after the application has received all buffered records. So the memory does not
fill up if the application is slow.

The next drawing shows the objects that one call of `poll` uses. Before this call, the application has received
the records up to offset 12, and the consumer has fetched the records up to offset 19:
    poll()
      GroupReading      receives the consumer's partitions and their committed offsets from the group
      Discovery         finds the topics and partitions of the subscription
      AssignmentReader  has a Position for each partition: consumed=13, fetch_offset=20
        Fetcher         Fetch(weather-0 from 20) ----> leader
                                                 <---- batches 20-29
        RecordBuffer    decodes the batch 10-19
      returns the records 13-19

The consumer itself stores its position in each partition, and the application can change this position at any time. A
broker stores only the committed offsets of the consumer's group. Kafka's consumer works in the same way.

Read the modules in this order:
1. `simple_consumer`: a simple consumer, which sends a request and waits for its response.
2. `consumer` and `assigned`: the public class `Consumer`.
3. `positions`: the two offsets that form the consumer's position in a partition.
4. `reader`: finds the first offset of each partition, and fills the buffer with fetched batches.
5. `fetcher`: sends requests to the leaders; `partition_errors` handles the errors in the responses. `fetch_session`
   makes the requests small if the consumer reads many partitions.
6. `buffer`: decodes batches to records.
7. `subscription` and `group_reading`: find the partitions to read.

You can skip these modules in a first reading:
- `settings` declares keyword arguments, and `building` passes them to the objects of a consumer.
- `arrow` returns columns instead of records.
- `single_thread` checks that only one thread uses the consumer.
"""
