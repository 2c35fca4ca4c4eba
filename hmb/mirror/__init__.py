"""The mirror: copies topics from one cluster to another one.

One Kafka cluster belongs to one data center. A company with several data centers needs a copy of its topics in each of
them. A company that moves to a new cluster needs a copy in this cluster.

The mirror follows a simple idea from Kafka 0.7: it is a consumer of the source cluster, and a producer of the
target cluster. Neither cluster needs special code, and the clusters can have different sizes. In the next
drawing, the mirror has copied the records a to f (offsets 0 to 5). It commits two offsets at the target: its
own position (6, the next record to copy), and the translated offset of the group `billing`:
    source cluster                        mirror                              target cluster
    orders-0  a b c d e f g  --Fetch-->   batches: (c d) (e f)  --Produce-->   orders-0  a b c d e f
                                          position: 6           --commit--->   group hmb-mirror-...: orders-0 at 6
    group billing: 4         --------->   translation           --commit--->   group billing: 4

The mirror usually copies a whole batch without decoding its records. It only replaces a few fields in the
header of the batch. In some cases, the mirror must decode the records, and encode them in a new batch. For
example, compaction has removed records from the batch, or the batch has an old format (v0 or v1). The module
`copying` describes all these cases.

The *position* of a partition is the source offset of the next record to copy. The mirror stores its positions
in the target cluster, where it also writes the records. One transaction can therefore contain both the records
and the new position. After a crash, the mirror continues at the stored positions.

The records of the copy can have other offsets than the records of the source. The committed offsets of consumer groups
must then be *translated*, so that a group can continue at the target.

Read in this order:
1. `copying`      prepares a batch of the source for the target
2. `source`       the consumer side: fetches batches
3. `target`       the producer side: writes batches and commits positions
4. `session`      the loop that connects both sides
5. `translation`  source offsets and target offsets
6. `resuming`     finds the positions when a mirror starts
7. `groups`       translates and commits the offsets of consumer groups
8. `topics`       creates the topics of the copy, with their settings
9. `names`        decides which topics are copied, and the names of their copies
10. `mirror_maker` writes the topics of MirrorMaker 2, if a mirror uses its names
11. `errors`      the errors with which a mirror ends

A mirror has these limits:
- A mirror copies each record to the partition with the same number: from partition 3 to partition 3.
- A mirror does not copy users, ACLs or share groups.
- Two mirrors must not use the same consumer group at the same time. A mirror commits its positions at the
  target as the offsets of this group, so two mirrors would overwrite each other's positions. If both use
  transactions, the target refuses the writes of the mirror that started earlier.

Source: Kafka 0.7 design, "Consumer tracking" and "Mirroring"; KIP-382.
"""
