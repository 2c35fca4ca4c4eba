"""Transactions: records of several partitions, and a consumer's offsets, become visible together or not at all.

A producer with a *transactional id* sends requests about its transactions to one broker, the transaction coordinator.
The coordinator stores the state of the transactional id. The state is not lost when the producer or the broker
restarts.

The transaction coordinator must know all partitions of a transaction. The producer's *transaction version*
(KIP-890) determines who reports a partition to the coordinator. In version 1, the producer reports a
partition before it sends the first batch to this partition. In version 2, the leader of the partition
reports it when the first batch arrives.
The methods of the producer send these requests:
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

A producer sends Produce requests to the leaders of the partitions. It sends the offsets of a consumer group to the
coordinator of this group, in a TxnOffsetCommit request. It sends all other requests of a transaction to the
transaction coordinator. To end a transaction, the producer waits until no batch is in flight, and then sends EndTxn.
The transaction coordinator then writes a marker, COMMIT or ABORT, into each partition of the transaction.

In transaction version 1, all transactions of a producer have the same epoch. A late request of one transaction can
therefore change the next transaction.

In transaction version 2, each transaction of a producer has a new epoch, which the producer gets in the response to
EndTxn. For example, producer 7 commits a transaction with epoch 4, and its next transaction has epoch 5. If a request
of the first transaction arrives late, the brokers reject it, because epoch 4 is now too low. After the highest
possible epoch, the response to EndTxn contains a new producer id and epoch 0.

The producer chooses its transaction version in `init_transactions`. It uses version 2 if the coordinator reports that
the feature `transaction.version` has the level 2 or more. HMB, and Kafka from version 4.0 on, report this level by
default.

If a record cannot be delivered, the application must abort the transaction. It can then begin another
transaction. During the abort, a copy of a failed batch may still be on its way to a broker. In this case, the
producer's epoch must increase, so that brokers reject the copy.

EndTxn increases the producer's epoch only in transaction version 2. If a copy of a failed batch may still
arrive, a producer with version 1 sends InitProducerId with its id and epoch instead of EndTxn. The coordinator
then aborts the transaction and increases the epoch (KIP-360).

After a *fatal* error, the application can only close the producer. For example, the error is fatal if a newer producer
uses the same transactional id.

Limits: a producer never changes its transaction version. If an administrator raises `transaction.version` in a
cluster, a producer that already uses transaction version 1 continues with this version. All brokers support version 1.

Read the modules of this folder in this order:
1. `states`: the states of a producer, and the table of the allowed transitions.
2. `manager`: the methods of the producer, and their requests.
3. `requests`: builds the requests of both transaction versions.

Source: KIP-98, KIP-360, KIP-447, KIP-890.
"""
