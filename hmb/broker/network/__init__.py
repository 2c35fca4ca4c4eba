"""The network layer of the broker: it accepts connections, reads requests and sends responses.

A *frame* is the unit that clients and the broker send: a length in four bytes, and then one message of this length. A
frame from the client contains a request, and a frame to the client contains a response. This layer reads and writes
frames. It does not decode the messages in the frames.

Read in this order:
1. `server.py`           one thread for each listener accepts connections
2. `connection.py`       one thread for each connection reads requests and sends responses
3. `sending.py`          sends bytes and regions of files, within a time limit

You can skip these modules in a first reading:
- `requests.py`          reads requests before they are handled, with limits for memory and time
- `gathering.py`         sends several responses together
- `request_memory.py`    a limit for the memory of all requests together
- `connection_limits.py`  how many clients may connect, and how fast
- `descriptors.py`       limits for the file descriptors of logs and of connections
- `listeners.py`         addresses from the settings `listeners` and `advertised.listeners`
- `connection_login.py`  limits for a client that has not logged in yet
- `request_log.py`       one log line for each request (`hmb broker -vv`)
- `staged.py`            several threads share the work on one request, as in the thesis
"""
