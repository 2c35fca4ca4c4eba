"""Commands that show what a running broker does: `hmb state`, `hmb top` and `hmb ui`.

A broker that was started with `--state PORT` serves its state over HTTP (hmb/monitoring). `source.py` finds and fetches
the state, and `views.py` makes tables of it. `hmb state` prints these tables, and `top.py` draws them again and again.
`hmb ui` opens the page of a broker that was started with `--ui`.
"""
