"""Commands that show what a running broker does: `hmb state`, `hmb top` and `hmb ui`.

A broker that was started with `--state PORT` serves its state over HTTP (hmb/monitoring). `hmb state` and
`hmb top` show this state as tables. A broker that was started with `--ui` also serves a web page, which `hmb ui`
opens. With the option -b, the three commands read the state of any broker through the broker's APIs instead.
This state has fewer parts, because no API describes, for example, the connections of a broker. Read the modules
in this order:
1. `source.py`    finds the broker's state, and fetches it
2. `views.py`     makes tables from the state: for example, a table of all groups
3. `opened.py`    makes the table that `hmb top` shows after Enter: for example, the members of the selected group
4. `state.py`     the command `hmb state`, which prints the tables
5. `ui.py`        the command `hmb ui`, which opens the broker's web page; with -b, it serves the page itself

`hmb top` fetches the broker's state and draws the tables again and again. Its modules are:
1. `rates.py`     calculates how fast each counter has grown since the previous fetch
2. `trends.py`    finds out whether the lag of a group grows or shrinks
3. `screen.py`    stores the choices that the user makes with keys
4. `keyboard.py`  reads the keys of the terminal
5. `top.py`       the command `hmb top`
"""
