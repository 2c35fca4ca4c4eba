"""Share groups in the broker: share sessions, and fetches that acquire records (KIP-932).

A member of a share group does not choose offsets. It asks for a number of records, for example at most 500, and
the broker chooses the records. The member *acquires* these records: for a limited time, no other member gets
them. The broker stores the states of the records for each *share-partition*, which is one partition that one
share group reads. In a *share session*, the broker remembers which partitions the member reads. A ShareFetch
request passes through these modules:
    handlers/share_fetch.py          checks the request
      |
    sessions.py                      finds the partitions that the member reads
      |
    acknowledging.py                 handles the acknowledgements in the request
      |
    fetching.py                      acquires records for the member
      |
    batches.py                       reads the headers of the record batches in the log
      |
    hmb/coordinator/share            stores the state of the share-partition
    hmb/storage                      stores the log of the partition

For example, a member asks for at most 500 records of orders-0. The first record that the member can acquire
(state Available) has the offset 1000. `batches` finds the batches 1000 to 1299 and 1300 to 1599 in the log.
In the default mode, the broker returns whole batches, so the member acquires all 600 records. In the mode
RECORD_LIMIT, the member acquires only the first 500 records.

Four modules handle a ShareFetch request. Read them in this order: `sessions`, `acknowledging`, `fetching`,
`batches`.

The module `state_results` fills responses about states of share-partitions, for example ReadShareGroupState
responses. The module `creation` creates the objects of hmb/coordinator/share.
"""
