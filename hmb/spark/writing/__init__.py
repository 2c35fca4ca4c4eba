"""Write the rows of a query to topics, at least once or exactly once: `write / writeStream.format("hmb")`.

Problem: if a worker process dies, Spark runs its task again. If the first run has already written some rows, the second
run writes these rows again. A second problem: if the broker rejects the record of a row, the row must not be lost
without an error.

Idea: each task sends its rows with one `hmb.Producer`, and waits until the broker has acknowledged all of them. If one
row is not acknowledged, the task fails, and Spark runs the task again. Rows can then be written twice: *at least once*.
With the option `exactlyOnce`, a task writes its rows in a transaction. The same transaction also stores a note that
this batch is written. If Spark runs the task again, the task finds the note and writes nothing: *exactly once*.

The rows of a task pass through these modules, from left to right. If the query writes exactly once, the task also uses
the module `once`, which sends all rows in one transaction:
    rows of a task  ->  rows: by topic and partition  ->  sending: Producer.send_many  ->  all delivered: commit message

Example: a task has 100 rows for the topic "weather". Its worker dies when 60 rows are written, and Spark runs the task
again. If the query writes at least once, the topic then contains 160 records. If the query writes exactly once, a
consumer that skips aborted transactions (`read_committed`) reads 100 records.

Read in this order:
    sink     the writers that Spark calls
    rows     checks the columns of the rows, and groups rows by topic and partition
    sending  sends a task's rows, and reports records that were not delivered
    once     exactly once: one transaction for each task
"""
