"""The commands for security: `hmb users`, `hmb tokens`, `hmb acls`, `hmb quotas` and `hmb certs`.

Each command has a module of its own: `users`, `tokens`, `acls`, `quotas` and `certs`. `passwords` reads a password, and
`acl_options` declares the options of `hmb acls`.
"""
