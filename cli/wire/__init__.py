"""Commands for Kafka's protocol: `hmb decode` explains the bytes of a message, and `hmb sniff` prints messages.

A client and a broker exchange frames. A frame is a length of 4 bytes, followed by a request or a response. A request
contains the number of its API, the version, and a correlation id. A response contains only the same correlation id. A
program that decodes a response must therefore know the request. For example, these are a Metadata request and the
beginning of its response, with the meaning of the bytes below them:
    00 00 00 16   00 03    00 01     00 00 00 07      00 02 6d 65 ...
    size 22       api 3    version 1  correlation 7   client id "me" ...
    00 00 00 5a   00 00 00 07        ...
    size 90       correlation 7      the layout of Metadata response v1

Several modules process the bytes of a message, from left to right:
    hmb decode    digits, hex dump or file -> `hex_input` -> `frames` -> text or JSON
    hmb sniff     network -> `proxy` -> `frame_streams` -> `frames` -> text or JSON
In the proxy, the module `readdressing` replaces the addresses of brokers in responses by addresses of the proxy.
If the clients use TLS, the proxy needs the broker's private key and certificate (`opened_tls`).

Read in this order:
1. `frames`         a frame, and the three ways to show it: its fields, JSON, one line
2. `hex_input`      reads bytes from digits, hex dumps and captured packets
3. `decode`         the command: recognizes the message in the bytes, and explains it
4. `frame_streams`  divides the bytes of each direction of a connection into frames
5. `readdressing`   changes addresses in responses, so that clients connect to the proxy and not to the brokers
6. `opened_tls`     decrypts the bytes of a connection with TLS, and encrypts them again
7. `proxy`          the sockets and threads between clients and brokers
8. `sniff`          the command: prints one line for each frame
"""
