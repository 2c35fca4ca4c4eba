"""Producing: how records of many threads become few requests, and how each thread learns the result.

The problem: a request for each record would cost a round trip and some hundred microseconds of a broker's time. The
producer gathers records into batches, and one request carries the batches of many partitions to their leader.

::

    application threads                        sender threads, one for each leader
    -------------------                        -----------------------------------
    send("weather", b"rain", key=b"Seattle")
      partitioner: key -> partition 1
      accumulator: [ weather-0 | batch | batch ]
                   [ weather-1 | batch         ] ----> Produce request ----> broker
      returns a Delivery                          <---- response: base offset 42
    delivery.result()  <------------------------------- completes the batch's result
      RecordMetadata(topic="weather", partition=1, offset=42, ...)

Read in this order, which is the order in which a record passes the modules:

1. `producer`: the public class.
2. `partitioner`: the partition of a record.
3. `accumulator` and `batch`: the queues of batches.
4. `sender`: the threads that send batches.
5. `encoding`: a batch as bytes, and batches as a request.
6. `completion`: a batch after its response.
7. `delivery`: the result for the application.

These modules can be skipped in a first reading: `settings` (the keyword arguments), `idempotence` (numbers that prevent
duplicates), `transactions` and `transaction_states` (several partitions at once), `columns` (many records at once),
`record_checks` and `metrics`.
"""
