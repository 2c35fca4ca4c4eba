import sys

import hmb

servers, count = sys.argv[1], 6

with hmb.Producer(servers, acks="all") as producer:
    for number in range(count):
        sent = producer.send("orders", b"order %d" % number, partition=number % 3).result()
        print(f"sent order {number} to partition {sent.partition}, offset {sent.offset}")

members = [hmb.Consumer(servers, "orders", group="kitchen") for _ in range(2)]
read: list[str] = []
while len(read) < count:
    for member in members:
        read += [record.value.decode() for record in member.poll(0.2)]
for member in members:
    member.close()  # commits the offsets of the member
print("the group has read:", ", ".join(sorted(read)))
