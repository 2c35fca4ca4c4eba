r"""Commands for bytes of Kafka's protocol: `hmb decode` explains them, and `hmb sniff` records them.

A client and a broker exchange frames: a length of 4 bytes, then a request or a response. A request contains the number
of its API, its version and a correlation id. A response contains only the correlation id. A reader of a response
therefore needs the request. For example, a Metadata request and the beginning of its response::

    00 00 00 16   00 03    00 01     00 00 00 07      00 02 6d 65 ...
    size 22       api 3    version 1  correlation 7   client id "me" ...

    00 00 00 5a   00 00 00 07        ...
    size 90       correlation 7      the layout of Metadata response v1

The bytes go through these modules:

    hex dump, file     -> hex_input  -> bytes  \
                                                 frames  -> fields, JSON, one line  -> decode, sniff
    network            -> proxy -> frame_streams /
                                   readdressing: the addresses in responses become those of the proxy

Read in this order:

1. `frames`         a frame, its fields, and the three ways to show it
2. `hex_input`      bytes from digits, hex dumps and captured packets
3. `decode`         the command: which message the bytes are
4. `frame_streams`  the two directions of a connection, divided into frames
5. `readdressing`   addresses in responses, so that clients stay with the proxy
6. `proxy`          sockets and threads between clients and brokers
7. `sniff`          the command: one line for each frame
"""
