import hmb
from hmb.client.admin import NewTopic

with hmb.Broker() as broker, hmb.Admin(broker.bootstrap_servers) as admin:
    print(admin.create_topics([NewTopic("weather", partitions=2)]))
    print(admin.create_topics([NewTopic("weather")]))  # returns an error for the topic, and raises none
    print(admin.describe_cluster())
