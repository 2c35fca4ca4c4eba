"""HMB starts with an unchanged `server.properties`, as administrators write it for Kafka 4.3.0."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

import hmb
from hmb.broker import BrokerServer
from hmb.broker.config.keys import ConfigError
from hmb.broker.config.names import unknown_names
from hmb.protocol.messages.api_versions import ApiVersionsRequest
from hmb.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from hmb.protocol.messages.sasl_handshake import SaslHandshakeRequest
from hmb.security.certificates import Certificates
from hmb.storage.state.properties import read_properties
from tests.broker.security.conftest import connect_tls
from tests.broker.security.provider import Provider

MODULES = "org.apache.kafka.common.security"
FILE = """
process.roles=broker,controller
node.id=1
controller.quorum.bootstrap.servers=localhost:9093
listeners=INTERNAL://127.0.0.1:0,CLIENTS://127.0.0.1:0,OAUTH://127.0.0.1:0,CONTROLLER://127.0.0.1:9093
advertised.listeners=INTERNAL://localhost:0,CLIENTS://localhost:0,OAUTH://localhost:0,CONTROLLER://localhost:9093
listener.security.protocol.map=INTERNAL:SSL,CLIENTS:SASL_SSL,OAUTH:SASL_SSL,CONTROLLER:SASL_SSL
inter.broker.listener.name=INTERNAL
controller.listener.names=CONTROLLER
early.start.listeners=CONTROLLER
controller.quorum.election.timeout.ms=1000
metadata.log.max.record.bytes.between.snapshots=20971520
offsets.topic.replication.factor=1
log.retention.hours=168
ssl.keystore.location=DIR/broker.p12
ssl.keystore.type=PKCS12
ssl.keystore.password=store-secret
ssl.key.password=store-secret
ssl.truststore.location=DIR/authority.pem
ssl.truststore.type=PEM
ssl.enabled.protocols=TLSv1.3,TLSv1.2
ssl.client.auth=none
ssl.endpoint.identification.algorithm=
listener.name.internal.ssl.client.auth=required
listener.name.internal.ssl.principal.mapping.rules=RULE:^CN=(.*?)$/$1/L,DEFAULT
listener.name.clients.ssl.keystore.location=DIR/broker.pem
listener.name.clients.ssl.keystore.type=PEM
listener.name.clients.sasl.enabled.mechanisms=PLAIN,SCRAM-SHA-512
listener.name.clients.plain.sasl.jaas.config=MODULES.plain.PlainLoginModule required \\
    username="admin" password="admin-secret" user_admin="admin-secret" user_alice="alice-secret";
listener.name.clients.scram-sha-512.sasl.jaas.config=MODULES.scram.ScramLoginModule required \\
    username="admin" password="admin-secret";
listener.name.clients.connections.max.reauth.ms=3600000
listener.name.clients.plain.connections.max.reauth.ms=60000
listener.name.clients.num.network.threads=4
listener.name.oauth.sasl.enabled.mechanisms=OAUTHBEARER
listener.name.oauth.oauthbearer.sasl.jaas.config=MODULES.oauthbearer.OAuthBearerLoginModule required ;
listener.name.oauth.oauthbearer.sasl.server.callback.handler.class=MODULES.oauthbearer.OAuthBearerValidatorCallbackHandler
listener.name.oauth.sasl.oauthbearer.jwks.endpoint.url=KEYS
listener.name.oauth.sasl.oauthbearer.expected.audience=kafka
listener.name.controller.sasl.enabled.mechanisms=PLAIN
listener.name.controller.plain.sasl.jaas.config=MODULES.plain.PlainLoginModule required user_admin="admin-secret";
sasl.mechanism.controller.protocol=PLAIN
sasl.mechanism.inter.broker.protocol=PLAIN
authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer
super.users=User:admin;User:CN=broker
allow.everyone.if.no.acl.found=false
delegation.token.secret.key=token-secret
"""


@pytest.fixture
def settings(certificates: Certificates, tmp_path: Path) -> dict[str, str]:
    """Return the settings of a `server.properties` file that the fixture creates from the constant FILE.

    The fixture also creates the keystore and the public keys to which the settings refer.
    """
    directory = certificates.broker.parent
    store = ["-in", str(certificates.broker), "-out", str(directory / "broker.p12"), "-passout", "pass:store-secret"]
    subprocess.run(["openssl", "pkcs12", "-export", *store], check=True, capture_output=True)
    keys = Provider(tmp_path).file.as_uri()
    path = tmp_path / "server.properties"
    path.write_text(FILE.replace("DIR", str(directory)).replace("MODULES", MODULES).replace("KEYS", keys))
    return dict(read_properties(path))


def test_the_file_starts_the_broker(certificates: Certificates, settings: dict[str, str]) -> None:
    (warning,) = unknown_names(settings)
    assert warning.startswith("skipped settings that only Kafka's controllers need: controller.quorum.bootstrap")
    assert "early.start.listeners" in warning and "sasl" not in warning
    with hmb.Broker(config=settings) as broker:
        assert [listener.name for listener in broker.listeners] == ["INTERNAL", "CLIENTS", "OAUTH"]
        offered = {}
        for number in (1, 2):
            wire = connect_tls(broker, certificates, listener=number)
            answer: Any = wire.ask(SaslHandshakeRequest(mechanism="other"), 1)
            offered[broker.listeners[number].name] = answer.mechanisms
        assert offered == {"CLIENTS": ["PLAIN", "SCRAM-SHA-512"], "OAUTH": ["OAUTHBEARER"]}
        wire = connect_tls(broker, certificates, listener=1)
        wire.ask(SaslHandshakeRequest(mechanism="PLAIN"), 1)
        answer = wire.ask(SaslAuthenticateRequest(auth_bytes=b"\0alice\0alice-secret"), 2)
        assert (answer.error_code, answer.session_lifetime_ms) == (0, 60_000)
        internal = connect_tls(broker, certificates, certificates.client)
        internal.ask(ApiVersionsRequest(), 0)
        assert "User:client" in {client.principal for _, client in broker._server.clients()}
        assert broker._server.security["CLIENTS"].sessions == {"PLAIN": 60, "SCRAM-SHA-512": 3600}


RESTRICTING = [
    ("authorizer.class.name", "kafka.security.authorizer.AclAuthorizer"),
    ("principal.builder.class", "com.example.Builder"),
    ("listener.name.clients.plain.sasl.server.callback.handler.class", "com.example.Handler"),
    ("listener.name.clients.sasl.enabled.mechanisms", "PLAIN,GSSAPI"),
    ("ssl.engine.factory.class", "com.example.Factory"),
    ("listener.name.internal.ssl.allow.dn.changes", "true"),
    ("listener.name.clients.sasl.login.class", "com.example.Login"),
    ("security.providers", "com.example.Provider"),
]


@pytest.mark.parametrize(("name", "value"), RESTRICTING)
def test_a_setting_that_restricts_access_and_is_unknown_stops_the_start(
    settings: dict[str, str], name: str, value: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        BrokerServer(config=settings | {name: value})
    assert name.removeprefix("listener.name.clients.") in str(caught.value)
