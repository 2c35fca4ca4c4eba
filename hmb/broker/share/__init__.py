"""Share groups in the broker: share sessions, and fetches that acquire records (KIP-932).

A consumer of a share group does not choose offsets. It asks for some hundred records, and the broker decides which
records it gets. One request passes through these modules:
    handlers/share_fetch.py          checks the request
      |
    sessions.py                      which partitions the member reads
      |
    acknowledging.py                 the acknowledgements in the request
      |
    fetching.py                      reads the log, and acquires records for the member
      |                    \
    hmb/coordinator/share      hmb/storage        the state of the share-partition, and the log

For example, a member asks for at most 500 records of orders-0. The share-partition says that the first Available record
is at offset 1000. `fetching` reads the batches 1000 to 1299 and 1300 to 1599 from the log. The member acquires all 600
records, because both batches are returned completely.

Read the modules of this folder in this order: `sessions`, `acknowledging`, `fetching`, `batches`.
"""
