"""The commands for security: `hmb users`, `hmb tokens`, `hmb acls`, `hmb quotas` and `hmb certs`.

Each command has a module of its own: `users`, `tokens`, `acls`, `quotas` and `certs`. `hmb certs` creates files with
certificates, and `hmb users create --data-dir` writes the first user before a broker starts. All other commands send
requests to a broker with `hmb.Admin`.

The module `passwords` reads a password from a prompt, a file or standard input, and `acl_options` declares the options
of `hmb acls`.
"""
