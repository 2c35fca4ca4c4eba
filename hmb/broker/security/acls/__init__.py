"""Authorization: the broker decides whether a user may perform an operation on a topic, a group or the cluster.

An *access control entry* (ACL) permits or forbids one operation, for example: `User:alice` may READ the topic
`orders`. The broker stores the ACLs of all users. An ACL that forbids an operation overrides all ACLs that permit
it. If no ACL matches, the operation is forbidden. (For a resource without any ACL, the setting
`allow.everyone.if.no.acl.found` decides.) A super user may perform every operation.

Before a handler runs, a guard asks the authorizer about the resources that the request names. The guard refuses the
forbidden part of the request with an error code, and the handler gets the rest:
    request -> guard (guards.py) -> the permitted part -> handler -> response
                  |                                                    ^
                  `-> the forbidden part -> error codes (refusal.py) --'

A broker has ACLs only if the setting `authorizer.class.name` names an authorizer. Without an authorizer, no guard runs,
so requests take no additional time.

Read in this order:
1. `authorizer.py`     the decision whether ACLs permit an operation, with an index of the ACLs
2. `rules.py`          the table of authorization: API -> operation and resource
3. `guards.py`         the guard of each API, which runs before the handler
4. `rule_guards.py`    the guards that apply the table of authorization to requests
5. `special_guards.py` the guards of APIs that no rule describes; `topic_guards.py`, `group_guards.py` and
                       `transaction_guards.py` contain most of them
6. `bindings.py`       the creation, the search and the deletion of ACLs
7. `splitting.py`      divides a request of any API into the forbidden part and the permitted part
8. `refusal.py`        responses with error codes for any API; `identities.py` finds out which item of the response
                       belongs to which item of the request
9. `list_refusals.py`  responses with error codes for APIs that change lists of ACLs, quotas, users or log directories

Source: KIP-11, KIP-290, KIP-801; `StandardAuthorizer` of Kafka.
"""
