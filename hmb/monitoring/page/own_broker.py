"""Serves the page of a broker that runs in this process.

On the page, a user can open a segment or a batch, or look up an offset or a timestamp. The page then sends a
request to one of the routes in this module, for example
`/batch?topic=orders&partition=0&segment=8021&position=5000`.

If the topic, the partition, the segment or the offset of a request does not exist, the response has the
status 404. It contains a JSON object with the reason.
"""

from __future__ import annotations

from collections.abc import Callable
from http import HTTPStatus
from typing import Any

from hmb.broker.lifecycle import BrokerServer
from hmb.monitoring.http_server import HttpRequest, HttpResponse, HttpServer, json_response
from hmb.monitoring.page.log_views import batch_view, look_up_offset, look_up_time, segment_view
from hmb.monitoring.page.recent_requests import KEPT, SLOWEST, RecentRequests
from hmb.monitoring.page.routes import PageRoutes, number_of
from hmb.monitoring.refusal import Refused
from hmb.monitoring.rights import check_may_read, check_may_see_requests
from hmb.monitoring.state import BrokerState
from hmb.protocol.errors import KafkaError
from hmb.storage.log import Log


class OwnBrokerPage(PageRoutes):
    """The routes of a broker's web page. The broker runs in this process."""

    def __init__(
        self,
        server: HttpServer,
        broker: BrokerServer,
        current: Callable[[], BrokerState],
        requests: RecentRequests,
    ) -> None:
        super().__init__(server, current)
        self._broker = broker
        self._requests = requests
        server.add("/segment", self._segment)
        server.add("/batch", self._batch)
        server.add("/look-up", self._look_up)
        server.add("/requests", self._recent)
        server.add("/request", self._request)

    def _segment(self, request: HttpRequest) -> HttpResponse:
        base_offset, position = number_of(request, "segment"), number_of(request, "position", 0)
        return self._of_log(request, lambda log: segment_view(log, base_offset, position))

    def _batch(self, request: HttpRequest) -> HttpResponse:
        base_offset, position = number_of(request, "segment"), number_of(request, "position")
        return self._of_log(request, lambda log: batch_view(log, base_offset, position))

    def _look_up(self, request: HttpRequest) -> HttpResponse:
        if "timestamp" in request.query:
            timestamp = number_of(request, "timestamp")
            return self._of_log(request, lambda log: look_up_time(log, timestamp))
        offset = number_of(request, "offset")
        return self._of_log(request, lambda log: look_up_offset(log, offset))

    def _of_log(self, request: HttpRequest, view: Callable[[Log], Any]) -> HttpResponse:
        name, number = request.query.get("topic", ""), number_of(request, "partition")
        check_may_read(request.reader, name)
        topic = self._broker.context.topics.get(name)
        log = None if topic is None else topic.partitions.get(number)
        if log is None:
            raise Refused(HTTPStatus.NOT_FOUND, f"the broker has no partition {number} of topic {name}")
        try:
            return json_response(view(log))
        except KafkaError as error:
            raise Refused(HTTPStatus.NOT_FOUND, error.message) from error
        except OSError as error:
            why = f"{error.strerror or error}; retention or compaction may have removed the file"
            raise Refused(HTTPStatus.NOT_FOUND, why) from error

    def _recent(self, request: HttpRequest) -> HttpResponse:
        check_may_see_requests(request.reader)
        return json_response(self._requests.view())

    def _request(self, request: HttpRequest) -> HttpResponse:
        check_may_see_requests(request.reader)
        found = self._requests.one(number_of(request, "number"))
        if found is None:
            kept = f"it keeps the last {KEPT} requests and the {SLOWEST} slowest ones of each API"
            why = f"the broker has forgotten this request; {kept}"
            raise Refused(HTTPStatus.NOT_FOUND, why)
        return json_response(found)
