"""Commands that show what a running broker does: `hmb state`, `hmb top` and `hmb ui`.

A broker that was started with `--state PORT` serves its state over HTTP (hmb/monitoring). `source.py` finds and fetches
the state. With -b, it reads the state of any broker through the broker's APIs. `views.py` makes tables of the state.
`hmb state` prints these tables (`state.py`), and `top.py` draws them again and again. `rates.py` computes how fast the
counters of two states have grown. `hmb ui` (`ui.py`) opens the page of a broker that was
started with `--ui`. With -b, it serves the page itself.
"""
