"""An identity provider for the tests of OAUTHBEARER."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import rsa

ISSUER, AUDIENCE = "https://provider.example", "kafka"


class Provider:
    """An identity provider: it has a private key, makes tokens, and publishes the public key in a file."""

    def __init__(self, directory: Path) -> None:
        self.key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        self.file = directory / "keys.json"
        self.publish("key-1")

    def publish(self, key_id: str) -> None:
        own = json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(self.key.public_key()))
        self.file.write_text(json.dumps({"keys": [own | {"kid": key_id, "alg": "RS256", "use": "sig"}]}))

    def token(self, key_id: str = "key-1", lifetime: float = 600, **claims: Any) -> str:
        content = {"sub": "alice", "iss": ISSUER, "aud": AUDIENCE, "exp": time.time() + lifetime} | claims
        content = {name: value for name, value in content.items() if value is not None}
        return jwt.encode(content, self.key, "RS256", {"kid": key_id})

    def settings(self, **others: str) -> dict[str, str]:
        own = {
            "listeners": "SASL_PLAINTEXT://127.0.0.1:0",
            "sasl.enabled.mechanisms": "OAUTHBEARER",
            "sasl.oauthbearer.jwks.endpoint.url": self.file.as_uri(),
            "sasl.oauthbearer.expected.issuer": ISSUER,
            "sasl.oauthbearer.expected.audience": AUDIENCE,
            "sasl.oauthbearer.clock.skew.seconds": "0",
        }
        return own | {name.replace("_", "."): value for name, value in others.items()}
