"""Share groups in the broker: share sessions, and fetches that acquire records (KIP-932).

A member of a share group does not choose offsets. The member asks for up to 500 records, for example, and the broker
chooses the records. One request passes through these modules:
    handlers/share_fetch.py          checks the request
      |
    sessions.py                      which partitions the member reads
      |
    acknowledging.py                 the acknowledgements in the request
      |
    fetching.py                      reads the log, and acquires records for the member
      |
    hmb/coordinator/share            the state of the share-partition
    hmb/storage                      the log of the partition

For example, a member asks for at most 500 records of orders-0. The first Available record of the share-partition is at
offset 1000. `fetching` reads the batches 1000 to 1299 and 1300 to 1599 from the log. In the default mode, the member
acquires all 600 records, because the broker returns both batches completely. If the member asks for the mode
RECORD_LIMIT, it acquires only 500 of these records.

Read the modules of this folder in this order: `sessions`, `acknowledging`, `fetching`, `batches`. The module
`state_results` does not belong to ShareFetch: the handlers of five other APIs use it. The module `creation` creates the
objects of hmb/coordinator/share.
"""
