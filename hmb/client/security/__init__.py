"""The client's side of security: TLS, and the login with SASL.

Read the modules of this folder in this order:
1. `settings.py`     the settings `security.protocol`, `ssl.*` and `sasl.*`
2. `tls.py`          the socket of an encrypted connection
3. `login.py`        the requests of a login, and the client's side of PLAIN
4. `scram.py`        the client's side of SCRAM
5. `oauth.py`        the client's side of OAUTHBEARER

TLS encrypts a connection. With SASL, a client proves to the broker who it is. SASL has several *mechanisms*:
PLAIN sends the password, SCRAM proves that the client knows the password, and OAUTHBEARER sends a token. The
module `hmb.security` explains TLS and SASL.
"""
