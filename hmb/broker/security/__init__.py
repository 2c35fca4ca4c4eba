"""The broker's side of security: encryption (TLS), authentication (certificates, SASL) and authorization (ACLs).

A client connects to a listener. If the listener uses TLS, both sides first make a handshake. If the listener uses SASL,
the client then logs in. The broker now knows the *principal* of the connection, which is the name of its user:
    connection  ->  TLS handshake (tls.py)  ->  login (login.py)  ->  requests of User:alice

Read in this order:
1. `settings.py`         the security of each listener, from `server.properties`
2. `tls.py`              the socket of an encrypted connection
3. `login.py`            the login of a connection, from SaslHandshake to the principal
4. `scram.py`            the broker's side of SCRAM, a login in which no password is sent
5. `users.py`            the credentials of users for SCRAM
6. `store.py`            the file `security.checkpoint`, which contains users, ACLs, quotas and tokens
7. `acls/`               what a user may do
8. `tokens/`             logins with a token instead of a password
9. `quotas/`             how much a user may use

You can skip these modules on a first reading:
- `plain.py`             the broker's side of PLAIN, a login in which the client sends its password
- `mechanisms.py`        the ways to log in with SASL, such as PLAIN and SCRAM
- `principals.py`        user names in Kafka's form, such as `User:alice`
- `mapping_rules.py`     rules that turn the name in a certificate into a user name
- `addresses.py`         which addresses need a login
- `refused_logins.py`    stores refused logins as events, and slows down a client that guesses passwords
- `first_user.py`        creates a user before the broker's first start
- `decoys.py`            the answers to SCRAM logins of unknown users
- `jaas.py`              reads the users of PLAIN from JAAS lines, which are settings in Java's format
- `metadata_records.py`  the records in the file `security.checkpoint`
"""
