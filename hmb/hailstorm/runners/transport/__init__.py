"""The transport between processors: it brings payloads to the thread of the processor that receives them.

Problem: processors send each other tuples, and run in one process, in several processes or on several machines.
The code of a processor must be the same in all cases. A slow receiver must slow down its senders.

Idea: each processor has one mailbox, which holds a limited number of payloads (batches of tuples). If all
processors run in one process, a `Post` puts payloads into the mailboxes. With several processes, a `RemotePost`
also sends payloads through sockets. A spout receives no payloads, because it reads records from a partition of
a topic:
    sender's outbox  ->  Post        ->  mailbox in this process         ->  thread of the receiver
                     ->  RemotePost  ->  socket -> mailbox in process 2  ->  thread of the receiver
    partition of a topic             ->  PartitionReader                 ->  thread of the spout

Example: "split-0" runs in process 1 and sends payloads to "count-0" in process 2. `RemotePost` writes the payloads to
the socket of process 2. If the mailbox of "count-0" is full, process 2 stops reading the socket, and "split-0" waits.

Read in this order:
    mailbox           the queue of a processor: payloads (tuples of other processors) and notices (messages that
                      control the processor)
    post              carries payloads to the receiver's mailbox, in this process or through a socket
    partition_reader  reads one partition; raises an error if unread records have expired, or if the topic was deleted
                      and created again
"""
