"""The producer takes records from many threads, sends few requests, and reports each record's result.

The problem: one request for each record would be slow. Each request costs a network round trip, and a few hundred
microseconds of work in the broker. The producer therefore collects records in batches. One request contains the batches
of several partitions with the same leader:
    application threads                        sender threads, one for each leader
    -------------------                        -----------------------------------
    send("weather", b"rain", key=b"Seattle")
      partitioner: key -> partition 1
      accumulator: [ weather-0 | batch | batch ]
                   [ weather-1 | batch         ] ----> Produce request ----> broker
      returns a Delivery                          <---- response: base offset 42
    delivery.result()  <------------------------------- completes the batch's result
      RecordMetadata(topic="weather", partition=1, offset=42, ...)

These words have a special meaning in this package:
- A batch is *sealed* when the producer adds no more records to it.
- A batch is *due* when a sender thread is allowed to send it. `Accumulator.wait_for_batches` waits for due
  batches and returns them.
- A batch is *in flight* from the moment when the producer sends it until the response arrives.
- The *window* of a partition is the largest number of its batches that may be in flight together. After a batch
  has failed, the window is 0, so the producer sends no batch of the partition. When no batch of the partition is
  in flight any more, the producer sends each failed batch again, splits it or gives it up.
- A batch is *completed* when its result is final. Either the broker has written the batch, or the producer has
  *given it up*: the producer reports an error, and does not send the batch again.

Kafka's code uses other words. A sealed batch is *closed for record appends*, and a completed batch is *done*. A
partition is *muted* while none of its batches may be sent. A broker is *ready* when a batch for this broker is due. The
sender *drains* due batches from their queues.

Read the modules in this order. A record passes through the modules in the same order:
1. `producer`: the public class `Producer`.
2. `partitioner`: chooses the partition of a record.
3. `accumulator`, `batch` and `queues`: the queues in which batches wait.
4. `sender`: the threads that send batches.
5. `encoding`: converts batches to bytes, and builds the requests.
6. `completion`: decides what happens to a batch after the response.
7. `delivery`: reports the result of a record to the application.

You can skip these modules in a first reading:
- `settings` declares keyword arguments, and `record_checks` checks the arguments of `send`.
- `idempotence` assigns numbers to batches, so that the broker writes no batch twice.
- `transactions`: the transactions of a producer.
- `memory` limits the bytes in all queues, and `metrics` counts records and requests.
- `columns`: many records in one call.
"""
