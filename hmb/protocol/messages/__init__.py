"""Kafka's messages: one file an API, one class a request and a response, all versions in one class.

`REQUESTS` and `RESPONSES` find the class by the api key, as a header gives it.
"""

from hmb.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from hmb.protocol.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse
from hmb.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse
from hmb.protocol.messages.fetch import FetchRequest, FetchResponse
from hmb.protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from hmb.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from hmb.protocol.messages.list_offsets import ListOffsetsRequest, ListOffsetsResponse
from hmb.protocol.messages.metadata import MetadataRequest, MetadataResponse
from hmb.protocol.messages.produce import ProduceRequest, ProduceResponse
from hmb.protocol.schema import Request, Response

MESSAGES: list[tuple[type[Request], type[Response]]] = [
    (ProduceRequest, ProduceResponse),
    (FetchRequest, FetchResponse),
    (ListOffsetsRequest, ListOffsetsResponse),
    (MetadataRequest, MetadataResponse),
    (FindCoordinatorRequest, FindCoordinatorResponse),
    (ApiVersionsRequest, ApiVersionsResponse),
    (CreateTopicsRequest, CreateTopicsResponse),
    (DeleteTopicsRequest, DeleteTopicsResponse),
    (InitProducerIdRequest, InitProducerIdResponse),
]

REQUESTS: dict[int, type[Request]] = {request.api_key: request for request, _ in MESSAGES}
RESPONSES: dict[int, type[Response]] = {response.api_key: response for _, response in MESSAGES}
