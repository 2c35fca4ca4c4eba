"""Writing to topics from Spark: `write / writeStream.format("hmb")`, at least once or exactly once.

Problem: Spark runs a task again if its worker dies, and so writes the rows of the task twice. A row whose record the
broker rejects must not be lost without an error.

Idea: each task sends its rows with one `hmb.Producer` and waits for all deliveries. If one delivery fails, the task
fails, and Spark runs it again. Rows can then be written twice: *at least once*. With the option `exactlyOnce`, a task
writes its rows in a transaction together with a note of its batch. A repeated task finds the note and writes nothing:
*exactly once*.

    rows of a task  ->  rows: by topic and partition  ->  sending: Producer.send_many  ->  all delivered: commit message
                                                          once: the same, in one transaction

Example: a task has 100 rows for topic "weather", and its worker dies after 60 of them. At least once, the topic holds
160 records after the second run. Exactly once, a reader with `read_committed` sees 100 records.

Read in this order:

    sink     the writers that Spark calls
    rows     checks the columns of the rows, and groups rows by topic and partition
    sending  sends a task's rows, and reports records that were not delivered
    once     exactly once: one transaction for each task
"""
