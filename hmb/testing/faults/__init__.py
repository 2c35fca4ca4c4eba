"""Faults of requests: a test lets the broker answer with an error, answer late, or not answer at all.

The broker has a table of handlers, one for each API. A fault puts a wrapper around a handler, so the code of the broker
stays unchanged:
    client -> dispatcher -> [wrapper with the fault] -> the broker's handler

A test in Python adds faults with the methods of `Faults`, for example `broker.faults.add("FETCH", delay=0.5)`. A test
in another language sends the same fault as a JSON object to the control port of the broker. Faults of the disk are in
`hmb/testing/disk.py`.

Read in this order:
1. `requests.py`        the faults: which requests they change, and how
2. `handler_layers.py`  the wrappers around the broker's handlers
3. `names.py`           names of APIs and errors, converted to keys and codes
4. `objects.py`         faults as objects of YAML or JSON
5. `control.py`         an HTTP port that adds faults to a broker in another process
"""

from hmb.testing.faults.requests import Fault, Faults

__all__ = ["Fault", "Faults"]
