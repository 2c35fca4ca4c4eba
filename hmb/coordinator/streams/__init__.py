"""Streams groups (KIP-1071): the broker assigns tasks to the threads of a Kafka Streams application.

A Kafka Streams application reads topics, writes topics, and stores states, such as counts. With the classic protocol,
the application uses a consumer group. One member of the group computes the assignment, and the broker only passes it
on. The application also creates its internal topics itself.

In a *streams group*, the broker computes the assignment. A member sends the topology: the parts of the
application (subtopologies), and the topics between them. The broker creates the internal topics, and assigns
*tasks* to the members. For example, task 0_1 processes partition 1 of the topics that subtopology "0" reads. As
in a KIP-848 group (`hmb.coordinator.consumer`), a change of the group increases the group epoch. The broker
then computes a target assignment, and each member moves to its target.

At each heartbeat, the module `group` calls three modules. `topics` checks whether topics are missing. If
necessary, `assignor` computes the *target*: the tasks that each member must own. `member` moves the member
one step towards its target.

The module `state` stores members, epochs, target and topology in records.

For example, a word count has two parts (subtopologies): "0" splits lines into words, and "1" counts the words.
The topic with the lines has 2 partitions, so the application has the tasks 0_0, 0_1, 1_0 and 1_1. The
application runs with two threads, and the broker assigns two tasks to each thread. If one thread stops, the
other thread gets all four tasks.

For this word count, the broker creates two internal topics with 2 partitions each. Subtopology "0" writes the words
to the *repartition topic*, so that all records of one word are in the same partition. Subtopology "1" counts these
words. It stores its counts in the *changelog topic*, from which it can restore them.

Read the modules of this folder in this order:
- `tasks`       a task, and the tasks of a member
- `topology`    the parts of an application, and the topics between them
- `topics`      which internal topics the application needs, and with how many partitions
- `states`      the states of members and groups, and the table that defines them
- `member`      one member, and its steps towards its target
- `assignor`    the algorithm that computes a target
- `group`       the group: how it handles one heartbeat, from the request to the response
- `requests`    the requests of members and of administrators

On a first reading, skip the following modules. `heartbeat` checks the fields of a request. `state` stores a group, and
`records` and `member_records` contain its records. `endpoints` lists the addresses for queries. `settings` contains the
settings of a group, and `description` builds the response to StreamsGroupDescribe.

Source: KIP-1071; Kafka's `StreamsGroup`.
"""
