"""The commands for security: `hmb users`, `hmb tokens`, `hmb acls`, `hmb quotas` and `hmb certs`.

Each command is a module: `users`, `tokens`, `acls`, `quotas`, `certs`. `passwords` reads a password, and `acl_options`
declares the options of `hmb acls`.
"""
