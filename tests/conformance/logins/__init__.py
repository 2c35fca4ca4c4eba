"""Programs that log in with clients of other languages, and print the names of all topics.

`test_login_clients.py` runs these programs. Each program has the arguments CLIENT BROKER MECHANISM USER SECRET
AUTHORITY CERTIFICATE. AUTHORITY and CERTIFICATE are PEM files for TLS. An argument that a test does not need is empty.
For example, AUTHORITY is empty in a test without TLS. If the login fails, the program prints the error and exits with
code 1.
"""
