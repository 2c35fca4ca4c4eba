"""Client telemetry (KIP-714): clients send their own metrics to the broker, and the broker writes them to its log.

An administrator often has no access to the machines on which clients run. With client telemetry, the
administrator can read the metrics of the clients on the broker. In Kafka, the broker passes the metrics to a
plug-in, and telemetry is on if such a plug-in is installed. HMB has no plug-ins. It writes each metric as one
line to the broker's log, with the level INFO, if the setting `client.telemetry.enable` is true.

An administrator creates *subscriptions*. A subscription contains the names of metrics, an interval, and conditions that
select clients. The broker stores it as settings of the resource type CLIENT_METRICS. If a client matches several
subscriptions, it must send the metrics of all of them, at the shortest of their intervals. The broker gives this
combination a number, the *subscription id*. In this example, the administrator changes a subscription, so the client
must ask again:
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

A client instance is one run of a client. For each client instance, the broker keeps the times of the last
requests in memory. It keeps the times of at most MAX_INSTANCES client instances. If there are more, the broker
forgets the client instance that has been silent for the longest time.

A client must usually wait for an interval, for example 10 s, between two pushes of its metrics (`instances`).
If the broker has forgotten a client instance, it accepts the next push of this instance, even if the interval
has not passed.

Source: KIP-714; Kafka's `ClientMetricsManager`.
"""
