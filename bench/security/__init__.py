"""A benchmark of security: what TLS, logins and ACLs cost a broker.

Security costs processor time. With TLS, both sides encrypt and decrypt each byte, and the broker cannot send a file
with `sendfile`. For a login with SCRAM, the broker computes several hashes to check the password. An authorizer
compares each request with the ACLs. The command `hmb bench security` measures these three costs, and compares them with
goals.

TLS and logins are measured with HMB and Kafka 4.3.0 alternately. Each broker has three listeners: one without
security, one with TLS, and one that requires a login. The benchmark itself uses the first listener, for example to
create topics. No run without security is measured: the result for TLS is HMB's rate over TLS divided by Kafka's rate
over TLS, and the result for logins is the CPU time of a login. ACLs are measured only with HMB: one of two brokers
has 1,000 ACLs.

A change to HMB must not make a broker without security slower. To check a change, run `hmb bench produce
--versus CHECKOUT` and `hmb bench consume --versus CHECKOUT`. CHECKOUT is a folder with HMB's code without the
change. In each round, these commands measure HMB with the change and HMB without the change, one after the
other.

Read in this order:
1. `brokers`   brokers with three listeners
2. `tls`       producers and consumers that use TLS
3. `logins`    logins of known and unknown users
4. `acls`      two brokers, of which one has 1,000 ACLs
5. `command`   the command, its tables and its goals
"""
