"""A benchmark of security: what TLS, logins and ACLs cost a broker.

Security costs processor time. With TLS, both sides encrypt and decrypt each byte, and the broker cannot send a file
with `sendfile`. For a login with SCRAM, the broker computes several hashes to check the password. An authorizer
compares each request with the ACLs. The command `hmb bench security` measures these three costs, and compares them with
goals.

For TLS and logins, the benchmark measures HMB and Kafka 4.3.0, one after the other. For TLS, the result is HMB's rate
divided by Kafka's rate. Both rates are measured over TLS. For logins, the result is the CPU time of one login.

For ACLs, the benchmark measures only HMB. It compares a broker with 1,000 ACLs and a broker without ACLs.

To measure TLS and logins, the benchmark starts brokers with three listeners each. One listener uses TLS,
and another requires a login. The third listener has no security. It serves tasks that are not measured, such as
creating topics.

A change to HMB must not make a broker without security slower. To check a change, run `hmb bench produce
--versus CHECKOUT` and `hmb bench consume --versus CHECKOUT`. CHECKOUT is a folder with HMB's code without the
change. In each round, these commands measure HMB with the change and HMB without the change, one after the
other.

Read in this order:
1. `brokers`   brokers with three listeners
2. `tls`       producers and consumers that use TLS
3. `logins`    logins of known and unknown users
4. `acls`      a broker with 1,000 ACLs and a broker without ACLs
5. `command`   `hmb bench security`, which compares measured costs with goals
"""
