"""Logins with a token: instead of a password, a client sends a token from an identity provider or from a broker.

An identity provider makes a token for a client, for example for ten minutes. The client sends the token to the broker.
The broker verifies the signature of the provider, and reads the name of the client from the token. The broker therefore
stores no users. The mechanism OAUTHBEARER carries such tokens:
    client  ->  identity provider     "I am alice" (password, certificate, ...)
    client  <-  identity provider     a token: {"sub": "alice", "exp": 1790000000}, signed
    client  ->  broker                the token
    broker  ->  identity provider     which public keys do you have? (only now and then)

The broker itself can make a token for a user: a *delegation token*. This token consists of a public id and a
secret text, the HMAC. The user gives the id and the HMAC to a program. The program logs in with SCRAM: the id
is the name, and the HMAC is the password. The broker then treats the program like the user.

Read in this order:
1. `oauthbearer.py`      a state machine that handles the messages of OAUTHBEARER
2. `checking.py`         the check of a token: signature, times, issuer and audience
3. `public_keys.py`      the public keys of the identity provider
4. `oauth_settings.py`   the broker's settings for OAUTHBEARER
5. `delegation.py`       delegation tokens
6. `requesters.py`       which connections may send requests about delegation tokens
"""
