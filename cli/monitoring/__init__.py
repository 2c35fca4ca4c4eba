"""Commands that show what a running broker does: `hmb state`, `hmb top` and `hmb ui`.

A broker that was started with `--state PORT` serves its state over HTTP (hmb/monitoring). `source.py` finds and fetches
the state. With -b, `source.py` reads the state of any broker through the broker's APIs. `views.py` makes tables of the
state, and `opened.py` makes the tables of one row, for example of one group. `hmb state` (`state.py`) prints these
tables. `hmb ui` (`ui.py`) opens the page of a broker that was started with `--ui`. With -b, `hmb ui` serves the page
itself.

`hmb top` draws the tables again and again. Read its modules in this order:
1. `rates.py`     how fast the counters of two states have grown
2. `trends.py`    whether the lag of a group is growing or shrinking
3. `screen.py`    the choices that the user makes with keys
4. `keyboard.py`  the keys of the terminal
5. `top.py`       the command, which fetches, reads keys and draws
"""
