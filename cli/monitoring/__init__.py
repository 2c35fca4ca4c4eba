"""Commands that show what a running broker does: `hmb state` prints its state once, and `hmb top` follows it.

A broker that was started with `--state PORT` serves its state over HTTP (hmb/monitoring). `source.py` finds and fetches
the state, and `views.py` makes tables of it. `hmb state` prints these tables, and `top.py` draws them again and again.
"""
