"""The commands for security: `hmb users`, `hmb acls` and `hmb certs`."""
