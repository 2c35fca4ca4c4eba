"""Tests of the login to the monitoring page.

The page shows a user only what the user's ACLs permit. After five wrong passwords from one computer, the page refuses
further attempts from this computer for some time.
"""

from __future__ import annotations

import base64
import http.client
import json
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from typing import Any, NamedTuple
from urllib.parse import urlencode

import pytest

import hmb
from hmb.bench.load.chromium import CHROMIUM, browser
from hmb.client.admin import AclBinding
from hmb.monitoring.ports import HttpAddress, MonitoringPorts, PublicAddressError
from hmb.protocol.enums import AclOperation as Op
from hmb.protocol.enums import AclResourceType as Kind
from tests.cli.conftest import Hmb, run

__all__ = ["run"]

USERS = {"admin": "admin-secret", "bob": "bob-secret", "dora": "dora-secret"}
CONFIG = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:admin",
    "log.flush.acks.all": "false",
    "group.initial.rebalance.delay.ms": "0",
}
ACLS = [
    AclBinding(Kind.TOPIC, "orders", "User:bob", Op.READ),
    AclBinding(Kind.TOPIC, "prices", "User:bob", Op.DESCRIBE),
    AclBinding(Kind.GROUP, "billing", "User:bob", Op.DESCRIBE),
]


class SecuredPage(NamedTuple):
    """A broker with users and ACLs, and its page. The topics orders, prices and salaries have one record each."""

    broker: hmb.Broker
    ports: MonitoringPorts
    context: ssl.SSLContext | None = None  # for a page with TLS

    @property
    def token(self) -> str:
        assert self.ports.ui is not None
        return self.ports.ui.token

    @property
    def cookie(self) -> str:
        """The cookie that contains the token."""
        assert self.ports.ui is not None
        return self.ports.ui.token_cookie.partition(";")[0]

    def ask(
        self, method: str, path: str, body: str | None = None, **headers: str
    ) -> tuple[int, dict[str, str], bytes]:
        assert self.ports.ui is not None
        host, port = "127.0.0.1", self.ports.ui.port
        if self.context is None:
            connection = http.client.HTTPConnection(host, port, timeout=30)
        else:
            connection = http.client.HTTPSConnection(host, port, timeout=30, context=self.context)
        connection.request(method, path, body, headers)
        response = connection.getresponse()
        return response.status, dict(response.getheaders()), response.read()

    def log_in(self, user: str, password: str) -> tuple[int, str, bytes]:
        """Send the login form. Return the HTTP status, the cookies for later requests, and the body of the response."""
        form = urlencode({"user": user, "password": password})
        status, headers, body = self.ask("POST", "/login", form, Cookie=self.cookie)
        session = headers.get("Set-Cookie", "").partition(";")[0]
        return status, f"{self.cookie}; {session}", body

    def get(self, cookies: str, path: str) -> tuple[int, Any]:
        status, _, body = self.ask("GET", path, Cookie=cookies)
        return status, json.loads(body)


@contextmanager
def secured(host: str = "127.0.0.1", *, tls: bool = False) -> Iterator[SecuredPage]:
    with hmb.Broker(users=USERS, tls=tls, config=CONFIG) as broker:
        security = broker.security
        with hmb.Admin(broker.bootstrap_servers, security=security) as admin:
            admin.create_topics([hmb.NewTopic(name, 1) for name in ("orders", "prices", "salaries")])
            admin.create_acls(ACLS)
        with hmb.Producer(broker.bootstrap_servers, security=security) as producer:
            for topic in ("orders", "prices", "salaries"):
                producer.send(topic, b"value of %s" % topic.encode()).result()
        topics = ("orders", "salaries")
        for group in ("billing", "payroll"):
            with hmb.Consumer(broker.bootstrap_servers, *topics, group=group, security=security) as consumer:
                while not consumer.poll(1):
                    pass
                consumer.commit()
        server = broker._running
        ports = MonitoringPorts(ui=HttpAddress(host, 0), properties=server.properties)
        ports.start(server)
        context = None
        if tls:
            context = ssl.create_default_context(cafile=security["ssl.truststore.location"])
        try:
            yield SecuredPage(broker, ports, context)
        finally:
            ports.stop()


@pytest.fixture(scope="module")
def page() -> Iterator[SecuredPage]:
    with secured() as page:
        yield page


def test_the_link_alone_opens_only_the_form(page: SecuredPage) -> None:
    status, headers, _ = page.ask("GET", f"/?token={page.token}")
    assert status == HTTPStatus.SEE_OTHER
    cookie = headers["Set-Cookie"].partition(";")[0]
    status, headers, body = page.ask("GET", "/", Cookie=cookie)
    assert status == 200 and b'action="/login"' in body and b"page.js" not in body
    assert "form-action 'self'" in headers["Content-Security-Policy"]
    for path in ("/state", "/changes", "/batch?topic=orders&partition=0&segment=0&position=0", "/requests"):
        assert page.get(cookie, path)[0] == 401, path
        assert page.ask("GET", path, Authorization=f"Bearer {page.token}")[0] == 401, path
    # This request has no cookie with the token.
    assert page.ask("POST", "/login", urlencode({"user": "bob", "password": USERS["bob"]}))[0] == 401


def test_a_form_of_another_site_is_refused(page: SecuredPage) -> None:
    assert page.ports.ui is not None
    form = urlencode({"user": "bob", "password": USERS["bob"]})
    for headers in ({"Origin": "http://attacker.example"}, {"Origin": "null"}, {"Host": "attacker.example"}):
        status, answer, _ = page.ask("POST", "/login", form, Cookie=page.cookie, **headers)
        assert status == HTTPStatus.FORBIDDEN and "Set-Cookie" not in answer
    assert page.ask("POST", "/login", form, Cookie=page.cookie, Origin=page.ports.ui.url)[0] == HTTPStatus.SEE_OTHER


def test_a_user_sees_what_the_acls_permit(page: SecuredPage) -> None:
    status, bob, _ = page.log_in("bob", USERS["bob"])
    assert status == HTTPStatus.SEE_OTHER
    assert b"page.js" in page.ask("GET", "/", Cookie=bob)[2]
    _, state = page.get(bob, "/state")
    assert state["user"] == "bob"
    assert [topic["name"] for topic in state["topics"]] == ["orders", "prices"]
    (group,) = state["groups"]
    assert group["group_id"] == "billing" and {it["topic"] for it in group["positions"]} == {"orders"}
    assert not (state["connections"] or state["events"] or state["requests"] or state["process"])
    rights = {"topics", "requests", "process", "connections", "events", "single requests", "producers"}
    assert set(state["missing"]) == rights
    assert "salaries" not in json.dumps(state) and "payroll" not in json.dumps(state)
    where = "partition=0&segment=0&position=0"
    _, opened = page.get(bob, f"/batch?topic=orders&{where}")
    assert opened["records"][0]["value"]["text"] == "value of orders"
    status, refused = page.get(bob, f"/batch?topic=prices&{where}")
    assert status == 403 and "User:bob does not have the right READ on topic prices" in refused["error"]
    hidden, missing = (page.get(bob, f"/batch?topic={name}&{where}") for name in ("salaries", "nosuch"))
    assert hidden[0] == missing[0] == 404
    assert hidden[1]["error"].replace("salaries", "nosuch") == missing[1]["error"]
    assert page.get(bob, "/requests")[0] == page.get(bob, "/request?number=1")[0] == 403


def test_the_feed_sends_what_the_acls_permit(page: SecuredPage) -> None:
    _, bob, _ = page.log_in("bob", USERS["bob"])
    assert page.ports.ui is not None
    connection = http.client.HTTPConnection(page.ports.ui.address, timeout=30)
    connection.request("GET", "/changes", headers={"Cookie": bob})
    stream = connection.getresponse()
    while not (line := stream.readline()).startswith(b"data:"):
        pass
    assert b'"orders"' in line and b"salaries" not in line and b"payroll" not in line
    page.ask("POST", "/logout", Cookie=bob)
    while stream.readline():  # The log-out ends the stream.
        pass
    assert page.get(bob, "/state")[0] == 401
    connection.close()


def test_a_super_user_and_the_owner_see_everything(page: SecuredPage, run: Hmb) -> None:
    _, admin, _ = page.log_in("admin", USERS["admin"])
    _, state = page.get(admin, "/state")
    assert {"orders", "prices", "salaries"} <= {topic["name"] for topic in state["topics"]}
    assert state["missing"] == {} and state["connections"] is not None and state["process"]
    assert page.get(admin, "/requests")[0] == 200
    directory = str(page.broker._running.data_dir)
    owners = json.loads(run("state", "--data-dir", directory, "--json").stdout)
    assert owners["user"] is None and {it["group_id"] for it in owners["groups"]} == {"billing", "payroll"}
    assert run("ui", "--data-dir", directory).stdout.strip() == page.ports.urls["ui"]


def test_a_program_sends_name_and_password(page: SecuredPage, run: Hmb) -> None:
    url = page.ports.urls["state"].replace("http://", "http://bob:bob-secret@")
    state = json.loads(run("state", "--state-url", url, "--json").stdout)
    assert state["user"] == "bob" and len(state["topics"]) == 2
    login = base64.b64encode(b"bob:bob-secret").decode()
    assert page.ask("GET", "/state", Authorization=f"Basic {login}")[0] == 401  # without the token's cookie
    assert "log in on its page" in run("state", "--state-url", page.ports.urls["state"], exit_code=2).stderr


@pytest.mark.parametrize("value", ["", "é", "Ym9i=", "/w==", "Ym9i"])
def test_a_damaged_basic_header_is_refused(page: SecuredPage, value: str) -> None:
    """The server answers with status 401 if it cannot decode the user name and the password in the header.

    The value must be base64. The decoded bytes must be UTF-8 text, and this text must contain a colon.
    """
    assert page.ask("GET", "/state", Cookie=page.cookie, Authorization=f"Basic {value}")[0] == 401


def test_a_changed_password_ends_the_session(page: SecuredPage) -> None:
    _, dora, _ = page.log_in("dora", USERS["dora"])
    assert page.get(dora, "/state")[0] == 200
    with hmb.Admin(page.broker.bootstrap_servers, security=page.broker.security) as admin:
        admin.set_password("dora", "another-secret")
    assert page.get(dora, "/state")[0] == 401
    assert page.log_in("dora", "another-secret")[0] == HTTPStatus.SEE_OTHER


def test_wrong_passwords_are_limited_and_become_events() -> None:
    with secured() as page:
        for _ in range(5):
            status, cookies, body = page.log_in("bob", "<b>wrong")
            assert status == 401 and b">The name or the password is wrong.<" in body
            assert page.get(cookies, "/state")[0] == 401
        status, _, body = page.log_in("bob", USERS["bob"])
        assert status == 429 and b"wait a minute" in body
        texts = [event.text for event in page.broker.state().events if event.kind == "login"]
        reason = "the name or the password is wrong"
        assert texts == [f"login of 'bob' at the page refused: {reason}, client on 127.0.0.1"] * 5


def test_a_refused_login_of_a_client_becomes_an_event(page: SecuredPage) -> None:
    wrong = page.broker.security | {"sasl.password": "wrong"}
    with hmb.Admin(page.broker.bootstrap_servers, security=wrong) as admin, pytest.raises(hmb.HmbError):
        admin.list_topics()
    event = page.broker.state().events[-1]
    assert event.kind == "login" and event.text.startswith("login of 'admin' with SCRAM-SHA-256 refused: ")
    assert event.text.endswith(", client on 127.0.0.1")


def test_a_public_address_needs_tls_and_a_user() -> None:
    with secured("0.0.0.0", tls=True) as page:
        assert page.ports.urls["ui"].startswith("https://0.0.0.0:")
        _, headers, _ = page.ask("GET", f"/?token={page.token}")
        assert headers["Set-Cookie"].endswith("; Secure")
        _, bob, _ = page.log_in("bob", USERS["bob"])
        assert page.get(bob, "/state")[1]["user"] == "bob"
        assert page.ports.ui is not None
        owner = page.ports.ui.admission.owner_token
        # On a public address, the owner must log in, too.
        assert page.ask("GET", "/state", Authorization=f"Bearer {owner}")[0] == 401
    with hmb.Broker(tls=True) as broker:
        ports = MonitoringPorts(ui=HttpAddress("0.0.0.0", 0), properties=broker._running.properties)
        with pytest.raises(PublicAddressError, match="no user of this broker has a password"):
            ports.start(broker._running)
        ports.stop()


@pytest.mark.external
@pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium (Debian: apt install chromium)")
def test_a_user_logs_in_and_out_in_a_browser(page: SecuredPage) -> None:
    with browser() as tab:
        tab.look()
        tab.open(page.ports.urls["ui"])
        for password, wanted in (("wrong", "#view .problem"), (USERS["bob"], "tbody tr")):
            for field, value in (("user", "bob"), ("password", password)):
                tab.run(f"document.getElementById('{field}').value = '{value}'")
            tab.run("document.querySelector('form.login').requestSubmit()")
            tab.until(f"document.querySelector('{wanted}') !== null", wanted)
        assert [row[0] for row in tab.rows("Topics")] == ["orders", "prices"]
        assert tab.text("#broker").endswith(" · bob")
        tab.go("events")
        assert "User:bob does not have the right CLUSTER_ACTION on the cluster" in tab.text()
        tab.go("partition/prices/0")
        reason = "User:bob does not have the right READ on topic prices"
        tab.until(f"document.body.innerText.includes('{reason}')", "the reason is shown")
        tab.run("document.getElementById('logout').click()")
        tab.until("document.querySelector('form.login') !== null", "the form is shown again")
        assert tab.problems() == []
