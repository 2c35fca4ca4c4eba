"""The commands for security: `hmb users` and `hmb certs`."""
