"""Transactions: records of several partitions, and a consumer's offsets, become visible together or not at all.

A producer with a *transactional id* sends requests about its transactions to one broker, the transaction coordinator.
The coordinator stores the state of the transactional id. The state is not lost when the producer or the broker
restarts.

A producer uses one of two *transaction versions* (KIP-890). The coordinator must know all partitions of a transaction.
In version 1, the producer sends their names to the coordinator. In version 2, the leader of a partition sends the name
when it receives the first batch. Each method of the producer sends these requests:
    method                       version 1                              version 2
    init_transactions            InitProducerId                         InitProducerId
    begin_transaction            no request                             no request
    send                         AddPartitionsToTxn before the first    Produce
                                 batch of a partition, then Produce
    send_offsets_to_transaction  AddOffsetsToTxn, TxnOffsetCommit       TxnOffsetCommit
    commit_transaction           EndTxn                                 EndTxn
    abort_transaction            EndTxn or InitProducerId               EndTxn

The response to InitProducerId contains a producer id and an epoch. From then on, brokers reject the requests of older
producers with the same transactional id.

A producer sends Produce to the leaders of partitions. It sends TxnOffsetCommit, which contains the offsets of a
consumer group, to the coordinator of this group. All other requests of a transaction go to the transaction coordinator.
The producer sends EndTxn when no batch is in flight. The transaction coordinator then writes a marker into each
partition of the transaction.

In transaction version 1, all transactions of a producer have the same epoch. A late request of one transaction can
therefore change the next transaction.

In transaction version 2, the response to EndTxn contains the epoch of the next transaction, and brokers reject a late
request because its epoch is too low. For example, producer 7 commits a transaction with the epoch 4. Its next
transaction has the epoch 5. When the epochs of a producer id are used up, the response to EndTxn contains another
producer id and the epoch 0.

The producer chooses its transaction version in `init_transactions`. It uses version 2 if the coordinator reports that
the feature `transaction.version` has the level 2 or more. HMB, and Kafka from version 4.0 on, report this level by
default.

If a record cannot be delivered, the application must abort the transaction. After the abort, the application can begin
another transaction. A copy of a batch may still be on its way to a broker when the producer aborts. In transaction
version 1, the producer then sends InitProducerId with its id and epoch, instead of EndTxn. The coordinator aborts the
transaction itself and raises the epoch, and brokers reject the copy (KIP-360). In transaction version 2, EndTxn itself
raises the epoch.

After a *fatal* error, the application can only close the producer. For example, the error is fatal if a newer producer
uses the same transactional id.

Limits: a producer keeps its transaction version until it is closed. If an administrator raises `transaction.version` in
a cluster, a running producer continues with transaction version 1, which all brokers support.

Read the modules of this folder in this order:
1. `states`: the states of a producer, and the table of their changes.
2. `manager`: the methods of the producer, and their requests.
3. `requests`: builds the requests of both transaction versions.

Source: KIP-98, KIP-360, KIP-447, KIP-890.
"""
