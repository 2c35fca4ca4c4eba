"""Security code that both sides use: the broker and its clients.

Both sides must answer two questions before they can trust a connection. Who is the other side (authentication)? Can a
third party read or change the bytes (encryption)? TLS encrypts a connection, and a certificate proves who the broker
is. SASL then proves who the client is. The two sides exchange messages of a SASL *mechanism*, for example of
SCRAM-SHA-256. A *listener* of the broker uses one of four *security protocols*:
    PLAINTEXT        no encryption, no authentication
    SSL              TLS; the client can prove its name with a certificate
    SASL_PLAINTEXT   no encryption; the client proves its name with SASL
    SASL_SSL         TLS; the client proves its name with SASL

Read in this order:
1. `protocols.py`        the four security protocols
2. `scram.py`            the computations and messages of SCRAM, which never sends a password
3. `stores.py`           keys and certificates for a TLS context
4. `binary_stores.py`    stores in the formats PKCS12 and JKS
5. `web_addresses.py`    decides from which web addresses and files HMB may load keys and tokens
6. `ip_addresses.py`     the normal form in which the broker compares IP addresses, and the look-up of a host name
7. `certificates.py`     a private certificate authority for tests

The broker's side is in `hmb/broker/security/`, and the client's side in `hmb/client/security/`.
"""
