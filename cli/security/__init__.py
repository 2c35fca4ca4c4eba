"""The commands for security: `hmb users`, `hmb tokens`, `hmb acls`, `hmb quotas` and `hmb certs`."""
