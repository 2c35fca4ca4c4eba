"""Selects the part of a broker's state that one user may read.

A user who reads the page or the broker's state over HTTP needs the same rights (ACLs) as a Kafka client:
    to see                                       the user needs
    a topic, and a group's position in it        DESCRIBE on the topic
    settings of a topic                          DESCRIBE_CONFIGS on the topic
    batches, values and producers of a topic     READ on the topic
    a group                                      DESCRIBE on the group
    a transactional id                           DESCRIBE on the transactional id
    counts of requests, memory, data directory   DESCRIBE on the cluster
    connections, events and single requests      CLUSTER_ACTION on the cluster

The connections, events and requests of a broker show the clients, topics and groups of all users. To see this
data, a user needs the right CLUSTER_ACTION. In Kafka, brokers use this right to copy topics from each other, so
a user with this right can read all topics anyway.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from http import HTTPStatus

from hmb.broker.security.acls.authorizer import Access
from hmb.monitoring.logins import Reader
from hmb.monitoring.refusal import Refused
from hmb.monitoring.state import BrokerState, GroupInfo, TopicInfo
from hmb.protocol.enums import CLUSTER_NAME
from hmb.protocol.enums import AclOperation as Op
from hmb.protocol.enums import AclResourceType as Kind


def visible(state: BrokerState, reader: Reader) -> BrokerState:
    """Return the part of a broker's state that a user (the reader) may see.

    For each hidden part, the field `missing` of the result contains the reason, for example a right that the user
    does not have.
    """
    # The code below checks rights with `access.decision`, because `access.may` would log each refusal.
    access = reader.access
    state = replace(state, user=reader.user)
    if access is None or access.principal in access.authorizer.super_users:
        return state
    who = access.principal
    missing = {"topics": f"only topics, groups and transactional ids that {who} may describe are shown"}
    if not access.decision(Op.DESCRIBE, Kind.CLUSTER, CLUSTER_NAME):
        reason = f"{who} does not have the right DESCRIBE on the cluster"
        missing |= dict.fromkeys(("requests", "process"), reason)
        state = replace(state, requests=[], process=None, data_dir=None)
    if not access.decision(Op.CLUSTER_ACTION, Kind.CLUSTER, CLUSTER_NAME):
        reason = f"{who} does not have the right CLUSTER_ACTION on the cluster"
        missing |= dict.fromkeys(("connections", "events", "single requests"), reason)
        state = replace(state, connections=[], events=[])
    topics = [_topic(topic, access) for topic in state.topics if access.decision(Op.DESCRIBE, Kind.TOPIC, topic.name)]
    if not all(access.decision(Op.READ, Kind.TOPIC, topic.name) for topic in topics):
        missing["producers"] = f"only the producers of topics that {who} may read are shown"
    shown = {topic.name for topic in topics}
    return replace(
        state,
        missing=state.missing | missing,
        topics=topics,
        groups=[_group(it, shown) for it in state.groups if access.decision(Op.DESCRIBE, Kind.GROUP, it.group_id)],
        transactions=[
            replace(it, partitions=_of_topics(it.partitions, shown))
            for it in state.transactions
            if access.decision(Op.DESCRIBE, Kind.TRANSACTIONAL_ID, it.transactional_id)
        ],
    )


def check_may_read(reader: Reader, topic: str) -> None:
    """Raise Refused if the reader may not read the records of a topic.

    If the reader may not even see the topic's name, the error is the same as for a topic that does not exist.
    """
    access = reader.access
    if access is None or access.decision(Op.READ, Kind.TOPIC, topic):
        return
    if not access.decision(Op.DESCRIBE, Kind.TOPIC, topic):
        raise Refused(HTTPStatus.NOT_FOUND, f"the broker has no topic {topic}")
    raise Refused(HTTPStatus.FORBIDDEN, f"{access.principal} does not have the right READ on topic {topic}")


def check_may_see_requests(reader: Reader) -> None:
    """Raise Refused if the reader may not see the requests of other clients."""
    access = reader.access
    if access is not None and not access.decision(Op.CLUSTER_ACTION, Kind.CLUSTER, CLUSTER_NAME):
        why = f"{access.principal} does not have the right CLUSTER_ACTION on the cluster"
        raise Refused(HTTPStatus.FORBIDDEN, f"{why}, so the broker does not show individual requests")


def _topic(topic: TopicInfo, access: Access) -> TopicInfo:
    if not access.decision(Op.DESCRIBE_CONFIGS, Kind.TOPIC, topic.name):
        topic = replace(topic, configs={})
    if not access.decision(Op.READ, Kind.TOPIC, topic.name):
        topic = replace(topic, partitions=[replace(each, producers=[]) for each in topic.partitions])
    return topic


def _group(group: GroupInfo, shown: set[str]) -> GroupInfo:
    members = [replace(member, partitions=_of_topics(member.partitions, shown)) for member in group.members]
    hides = any(each.topic not in shown for each in group.positions)
    return replace(
        group,
        members=members,
        positions=[each for each in group.positions if each.topic in shown],
        lags=[] if hides else group.lags,  # The sums in `group.lags` include the lags of hidden topics.
    )


def _of_topics(partitions: Iterable[str], topics: set[str]) -> list[str]:
    """Return the partitions whose topics are in `topics`. A partition is a text such as "orders-3"."""
    return [each for each in partitions if each.rpartition("-")[0] in topics]
