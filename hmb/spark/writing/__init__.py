"""Write the rows of a query to topics, at least once or exactly once: `write / writeStream.format("hmb")`.

Two problems can occur. First, if a worker process dies, Spark runs its task again. The second run then writes all rows
of the task, although the first run may already have written some of them. Second, the broker can reject the record of
a row. The query must then report an error, so that the row is not lost unnoticed.

A task sends its rows with one `hmb.Producer`, and waits until the broker has acknowledged all rows. If a row is
not acknowledged, the task fails, and Spark runs the task again. A row can then be written twice, so the query
writes *at least once*.

With the option `exactlyOnce`, a task writes its rows in one transaction. In the same transaction, the task
commits an offset for a consumer group: the number of the batch plus 1. If Spark runs the task again after this
transaction, the task reads this offset, and finds that the batch is already written. The task then writes
nothing, so the query writes *exactly once*.

The module `rows` groups the rows of a task by topic and partition. The module `sending` passes each group to the
producer. If a query writes exactly once, the module `once` puts all these rows into one transaction:
    rows of a task  ->  module `rows`  ->  module `sending`  ->  Producer.send_many  ->  broker

Example: a task has 100 rows for the topic "weather". Its worker dies when 60 rows are written, and Spark runs the task
again. If the query writes at least once, the topic then contains 160 records. If the query writes exactly once, a
consumer that skips aborted transactions (`read_committed`) reads 100 records.

Read the modules in this order:
    sink     contains the writers that Spark calls
    rows     checks the columns, and groups rows by topic and partition
    sending  sends the rows of a task, and reports undelivered records
    once     writes a task's rows exactly once, in one transaction
"""
