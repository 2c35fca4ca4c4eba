import hmb
from hmb.client.admin import NewTopic

with hmb.Broker() as broker, hmb.Admin(broker.bootstrap_servers) as admin:
    print(admin.create_topics([NewTopic("weather", partitions=2)]))
    print(admin.create_topics([NewTopic("weather")]))  # An existing topic has an error as its result.
    print(admin.describe_cluster())
