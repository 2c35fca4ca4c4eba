"""The transaction coordinator: records of several partitions become visible together or not at all.

A producer with a *transactional id* appends records to several partitions. A consumer that reads only committed records
must see all of these records or none. The coordinator first writes its decision, commit or abort, as one record to its
journal `__transaction_state`. Then the coordinator appends a *marker* with this decision to each partition. The marker
shows the readers of a partition whether the transaction was committed.

In transaction version 2, the producer sends no AddPartitions, because its first Produce to a partition adds this
partition to the transaction. The next drawing shows version 1:
    producer                       coordinator                         partitions weather-0, weather-1
    InitProducerId  ------------>  Empty            journal: producer 7, epoch 0
    AddPartitions   ------------>  Ongoing          journal: weather-0, weather-1
    Produce         ------------------------------------------------>  records of producer 7
    EndTxn(commit)  ------------>  PrepareCommit    journal: the decision
                                   WriteMarkers ------------------->   COMMIT marker in each partition
    response        <------------  CompleteCommit   journal: the transaction is over

Suppose that the broker crashes while a producer commits a transaction. If the state PrepareCommit is already in the
journal, the decision to commit is not lost: after the restart, the broker writes the markers again. If this state is
not in the journal yet, the transaction is still Ongoing after the restart, and the producer can continue it. If the
producer does not continue, the coordinator aborts the transaction after the transaction timeout.

A *zombie* is an old producer that still sends requests after a new producer with the same transactional id has
started. The *epoch* of the producer id protects against zombies. When the new producer starts, the epoch
increases, for example from 0 to 1. The broker then rejects the zombie's requests, because they contain epoch 0.
In transaction version 2, the epoch also increases at the end of each transaction.

Read the modules of this folder in this order:
- `states`               the states of a transactional id, the events, and the table of all transitions
- `transactional_id`     one transactional id, and the change that each request makes to it, as pure functions
- `table`                the table of all transactional ids, each with its lock
- `coordinator`          handles the requests of producers: it stores each change, and ends transactions
- `markers`              the writing of markers to the partitions
- `records`              a transactional id as a record of `__transaction_state`

On a first reading, skip the module `hanging`. It repairs a rare problem: a log has lost the marker that ended a
transaction, so the transaction is open again in this log. The module writes a new marker.

Source: KIP-98, KIP-360, KIP-890; Kafka's `TransactionCoordinator`.
"""
