"""Principals: the names of the users that the broker knows, in Kafka's form `User:alice`.

A client that has not proved its name is the principal `User:ANONYMOUS`.
"""

USER = "User"  # the only type of principal
ANONYMOUS = f"{USER}:ANONYMOUS"
