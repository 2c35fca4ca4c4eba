"""DescribeCluster (60): return the brokers of a cluster and its controller (KIP-700)."""

from hmb.protocol import fields as t
from hmb.protocol.api_keys import ApiKey
from hmb.protocol.schema import Request, Response, Struct


class DescribeClusterRequest(Request, api_key=ApiKey.DESCRIBE_CLUSTER, versions="0-2", flexible="0+"):
    """A request to describe the cluster.

    Version 1 adds `endpoint_type`: the client asks for the brokers (1) or for the controllers (2) (KIP-919). In version
    2, the client can also ask for fenced brokers (KIP-1073). A fenced broker is excluded from the cluster for some
    time.
    """

    include_cluster_authorized_operations: bool = t.boolean()
    endpoint_type:                         int  = t.int8("1+", default=1)
    include_fenced_brokers:                bool = t.boolean("2+")


class DescribeClusterResponse(Response, api_key=ApiKey.DESCRIBE_CLUSTER, versions="0-2", flexible="0+"):
    """The addresses of the cluster's brokers, and the id of its controller.

    Version 1 adds `endpoint_type`: the list contains brokers (1) or controllers (2). Version 2 adds a flag for each
    broker. The flag is set if the broker is fenced: it is excluded from the cluster for some time.
    """

    class DescribeClusterBroker(Struct):
        broker_id: int        = t.int32()
        host:      str        = t.string()
        port:      int        = t.int32()
        rack:      str | None = t.string(nullable="0+", default=None)
        is_fenced: bool       = t.boolean("2+")

    throttle_time_ms:              int                         = t.int32()
    error_code:                    int                         = t.int16()
    error_message:                 str | None                  = t.string(nullable="0+", default=None)
    endpoint_type:                 int                         = t.int8("1+", default=1)
    cluster_id:                    str                         = t.string()
    controller_id:                 int                         = t.int32(default=-1)
    brokers:                       list[DescribeClusterBroker] = t.array(DescribeClusterBroker)
    cluster_authorized_operations: int                         = t.int32(default=-2147483648)
