"""The commands for security: `hmb users`, `hmb acls`, `hmb quotas` and `hmb certs`."""
