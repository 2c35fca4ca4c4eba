"""Client telemetry (KIP-714): clients send their own metrics to the broker, and the broker writes them to its log.

An administrator often has no access to the machines on which clients run. With client telemetry, the clients
send their metrics to the broker, where the administrator can read them.

Kafka's broker passes the clients' metrics to a plug-in. Without a plug-in, telemetry is off. HMB has no
plug-ins. If the setting `client.telemetry.enable` is true, HMB's broker writes each metric as one line to its
log, with the level INFO.

An administrator creates *subscriptions*. A subscription contains the names of metrics, an interval, and
conditions that select clients. The broker stores a subscription as settings of the resource type
CLIENT_METRICS.

A client must send the metrics of all subscriptions that select the client. The shortest of their intervals applies.
The broker gives the combination of metrics and interval a number, the *subscription id*.

In this example, a new client sends the instance id 0. Later, the administrator changes a subscription, so the
client must ask again:
    client                                              broker
    GetTelemetrySubscriptions(instance id 0)  ------>   assigns instance id A; finds matching subscriptions
                                              <------   instance id A, subscription id 7, metrics, interval 10 s
    PushTelemetry(A, 7, metrics)              ------>   checks the request; writes the metrics to its log
                                              <------   no error
    ... 10 s later ...
    PushTelemetry(A, 7, metrics)              ------>   the administrator has changed a subscription
                                              <------   UNKNOWN_SUBSCRIPTION_ID
    GetTelemetrySubscriptions(A)              ------>   ...

Read in this order:
- `subscriptions`   defines a subscription: it selects clients and metrics, and sets an interval
- `instances`       stores the client instances, and checks their requests
- `metrics_data`    decodes the metrics, which are in OpenTelemetry's format

A client instance is one run of a client. For each client instance, the broker keeps the times of the last
requests in memory. It keeps the times of at most MAX_INSTANCES client instances. If there are more, the broker
forgets the client instance that has been silent for the longest time.

A client instance must usually wait for an interval, for example 10 s, before it sends metrics again. If the
broker has forgotten a client instance, it accepts the next metrics of this instance, even if the interval has
not passed.

Source: KIP-714; Kafka's `ClientMetricsManager`.
"""
