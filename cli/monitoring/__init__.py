"""Commands that show what a running broker does: `hmb state`, `hmb top` and `hmb ui`.

A broker that was started with `--state PORT` serves its state over HTTP (hmb/monitoring). `hmb state` and `hmb top`
show this state as tables. A broker that was started with `--ui` also serves a page, which `hmb ui` opens. With the
option -b, the three commands read the state of any broker through the broker's APIs instead. Read the modules in this
order:
1. `source.py`    finds the state, and fetches it
2. `views.py`     makes tables of the state
3. `opened.py`    makes the table of one opened row, for example of one group
4. `state.py`     `hmb state`, which prints the tables
5. `ui.py`        `hmb ui`, which opens the page of a broker; with -b, it serves the page itself

`hmb top` draws the tables again and again. Its modules are:
1. `rates.py`     how fast each counter has grown from one state to the next
2. `trends.py`    whether the lag of a group is growing or shrinking
3. `screen.py`    the choices that the user makes with keys
4. `keyboard.py`  the keys of the terminal
5. `top.py`       the command, which fetches, reads keys and draws
"""
