"""The transaction coordinator: records of several partitions become visible together or not at all.

A producer with a *transactional id* appends records to several partitions. Consumers that read committed records must
see all of them or none. The coordinator decides with one record in its journal, `__transaction_state`. It then appends
a *marker* to each partition. The marker shows the readers of that partition how the transaction has ended::

    producer                       coordinator                         partitions weather-0, weather-1
    InitProducerId  ------------>  Empty            journal: producer 7, epoch 0
    AddPartitions   ------------>  Ongoing          journal: weather-0, weather-1
    Produce         ------------------------------------------------>  records of producer 7
    EndTxn(commit)  ------------>  PrepareCommit    journal: the decision
                                   WriteMarkers ------------------->   COMMIT marker in each partition
    response        <------------  CompleteCommit   journal: the transaction is over

If the broker crashes after PrepareCommit, it writes the markers again after the restart: the decision is in the
journal. If it crashes before PrepareCommit, the transaction is still Ongoing after the restart. The coordinator aborts
it when its timeout has passed.

The *epoch* of a producer id protects against zombies. When a second producer starts with the same transactional id, the
epoch becomes 1. The broker rejects every request of the first producer, which still uses epoch 0.

Read in this order:

- `states`               the states, the events, and the table that drives a transactional id
- `transactional_id`     one transactional id: what each request changes, as pure functions
- `coordinator`          all transactional ids, shared by the threads of many connections
- `markers`              the markers in the partitions
- `records`              a transactional id as a record of `__transaction_state`

A first reading can skip `hanging`, which ends open transactions whose marker was lost.

Source: KIP-98, KIP-360, KIP-890; Kafka's `TransactionCoordinator`.
"""
