"""The cases of the table, one module for each API or group of APIs."""
