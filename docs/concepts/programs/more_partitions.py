from hmb.client.producing.partitioner import partition_of_key

print("customer   of 3   of 4")
for customer in ("ada", "bob", "joe", "mia", "ben"):
    three, four = (partition_of_key(customer.encode(), count) for count in (3, 4))
    print(f"{customer:10} {three:4} {four:6}", "" if three == four else "  moves")
