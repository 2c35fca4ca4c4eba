"""Faults of requests: a test lets the broker answer with an error, answer late, or not answer at all.

The broker has a table of handlers, one for each API. A fault puts a wrapper around a handler, so the code of the broker
stays unchanged:
    client -> dispatcher -> [wrapper with the fault] -> the broker's handler

A test in Python adds a fault with the method `Faults.add`, for example `broker.faults.add("FETCH", delay=0.5)`.
A test in another language cannot call this method. It sends the fault as a JSON object to the broker's control
port, which is an HTTP port for tests. The module `hmb/testing/disk.py` simulates the faults of a disk.

Read in this order:
1. `requests.py`        defines a fault: which requests it changes, and how
2. `handler_layers.py`  puts wrappers around the broker's handlers
3. `names.py`           converts the names of APIs and errors to their numbers
4. `objects.py`         reads and writes faults as objects of YAML or JSON
5. `control.py`         opens an HTTP port through which a test adds faults to a broker in another process
"""

from hmb.testing.faults.requests import Fault, Faults

__all__ = ["Fault", "Faults"]
