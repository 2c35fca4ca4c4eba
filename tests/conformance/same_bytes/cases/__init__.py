"""The cases, an API a module."""
