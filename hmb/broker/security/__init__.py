"""The broker's side of security: encryption (TLS), authentication (SASL, certificates) and authorization (ACLs).

Read in this order:
1. `settings.py`         the security of each listener, from `server.properties`
2. `tls.py`              the socket of an encrypted connection
3. `mapping_rules.py`    from the name in a certificate to the name of a principal
"""
