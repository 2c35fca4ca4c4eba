"""The transport between processors: how payloads reach the thread of a processor.

Problem: the processors of a topology run in threads, in processes or on several machines. Their code must not depend
on where the receiver runs, and a slow receiver must slow down its senders.

Idea: each processor has one bounded mailbox. A sender passes a payload to the `Post`, which finds the mailbox of the
receiver in this process or sends the payload through a socket. A spout has no upstream processor, so it reads its
payloads from a partition of a topic::

    sender's outbox  ->  Post        ->  mailbox in this process         ->  thread of the receiver
                     ->  RemotePost  ->  socket -> mailbox in process 2  ->  thread of the receiver
    partition of a topic             ->  PartitionReader                 ->  thread of the spout

Example: "split-0" runs in process 1 and sends a payload to "count-0" in process 2. `RemotePost` writes the payload to
the socket of process 2. If the mailbox of "count-0" is full, process 2 stops reading the socket, and "split-0" waits.

Read in this order:

    mailbox           the queue of a processor: payloads and notices
    post              from an outbox to the receiver's mailbox, in this process or through a socket
    partition_reader  a consumer of one partition, which notices expired and recreated topics
"""
