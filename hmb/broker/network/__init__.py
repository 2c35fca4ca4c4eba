"""The network layer: sockets and threads.

A *frame* is four bytes with a length, and so many bytes of one message. A frame from the client contains a request, a
frame to the client contains a response. This layer knows frames, but not what they contain.

Read in this order:

1. `server.py`           one thread for each listener accepts connections
2. `connection.py`       one thread for each connection reads frames and sends answers
3. `sending.py`          bytes and regions of files are sent, within a time limit

A first reading can skip the rest:

- `gathering.py`         several answers are sent together
- `request_memory.py`    a limit for the memory of all requests together
- `descriptors.py`       the descriptors of the process are divided between files and connections
- `listeners.py`         addresses from the settings `listeners` and `advertised.listeners`
- `request_log.py`       one log line for each request (`hmb broker -vv`)
- `staged.py`            the thesis's layout of threads, with a queue between stages
"""
