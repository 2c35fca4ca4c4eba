"""Client telemetry (KIP-714): clients send their own metrics to the broker, and the broker writes them to its log.

An administrator often cannot look into a client's process. With client telemetry, the administrator asks the client's
broker instead. In HMB, the setting `client.telemetry.enable` switches client telemetry on. In Kafka, a plug-in that
receives the metrics switches client telemetry on. HMB has no plug-ins: it writes each metric as one line to its log,
with the level INFO.

The administrator stores subscriptions as settings of the resource type CLIENT_METRICS. Each subscription names metrics,
an interval, and conditions for clients. If several subscriptions match a client, the client gets the metrics of all of
them, and the shortest interval. The *subscription id* stands for this combination. A client and the broker exchange two
kinds of requests:
    client                                              broker
    GetTelemetrySubscriptions(instance id 0)  ------>   assigns instance id A; looks for subscriptions that match
                                              <------   instance id A, subscription id 7, metrics, interval 10 s
    PushTelemetry(A, 7, metrics)              ------>   checks the ids, the interval and the size; writes the log
                                              <------   no error
    ... 10 s later ...
    PushTelemetry(A, 7, metrics)              ------>   the administrator has changed a subscription
                                              <------   UNKNOWN_SUBSCRIPTION_ID
    GetTelemetrySubscriptions(A)              ------>   ...

Read in this order:
- `subscriptions`   one subscription: which metrics, how often, of which clients
- `instances`       the client instances, and the checks of their requests
- `metrics_data`    decodes the metrics, which are in OpenTelemetry's format

Limits: the broker keeps the state of at most MAX_INSTANCES client instances in memory. If more clients exist, it
forgets the instance that has sent no request for the longest time. The broker then does not notice if this client sends
its next metrics too early. Nothing else changes.

Source: KIP-714; Kafka's `ClientMetricsManager`.
"""
