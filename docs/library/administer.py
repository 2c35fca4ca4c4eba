import hmb
from hmb.client.admin import NewTopic

with hmb.Broker() as broker, hmb.Admin(broker.bootstrap_servers) as admin:
    print(admin.create_topics([NewTopic("weather", partitions=2)]))
    print(admin.create_topics([NewTopic("weather")]))  # The topic exists: its result is an error, not an exception.
    print(admin.describe_cluster())
