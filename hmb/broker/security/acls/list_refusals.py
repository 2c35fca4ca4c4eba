"""Creates the responses with which the broker refuses to change ACLs, quotas, users or log directories.

The function `refuse` (refusal.py) cannot create correct responses for five APIs. For example, it cannot copy a
user's name into the response: the field is called `name` in the request, but `user` in the response. This
module therefore contains one function for each of the five APIs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from hmb.protocol.api_keys import ApiKey
from hmb.protocol.errors import ErrorCode
from hmb.protocol.messages.alter_client_quotas import AlterClientQuotasRequest, AlterClientQuotasResponse
from hmb.protocol.messages.alter_replica_log_dirs import AlterReplicaLogDirsRequest, AlterReplicaLogDirsResponse
from hmb.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
)
from hmb.protocol.messages.create_acls import CreateAclsRequest, CreateAclsResponse
from hmb.protocol.messages.delete_acls import DeleteAclsRequest, DeleteAclsResponse
from hmb.protocol.schema import Response

Moved = AlterReplicaLogDirsResponse.AlterReplicaLogDirTopicResult
MovedPartition = Moved.AlterReplicaLogDirPartitionResult
Quotas = AlterClientQuotasResponse.EntryData
User = AlterUserScramCredentialsResponse.AlterUserScramCredentialsResult


def _creations(request: CreateAclsRequest, code: ErrorCode) -> Response:
    result = CreateAclsResponse.AclCreationResult(error_code=code, error_message=code.message)
    return CreateAclsResponse(results=[result] * len(request.creations))


def _deletions(request: DeleteAclsRequest, code: ErrorCode) -> Response:
    result = DeleteAclsResponse.DeleteAclsFilterResult(error_code=code, error_message=code.message)
    return DeleteAclsResponse(filter_results=[result] * len(request.filters))


def _quotas(request: AlterClientQuotasRequest, code: ErrorCode) -> Response:
    response = AlterClientQuotasResponse()
    for entry in request.entries:
        entity = [Quotas.EntityData(entity_type=it.entity_type, entity_name=it.entity_name) for it in entry.entity]
        response.entries.append(Quotas(error_code=code, error_message=code.message, entity=entity))
    return response


def _users(request: AlterUserScramCredentialsRequest, code: ErrorCode) -> Response:
    names = dict.fromkeys([each.name for each in request.deletions] + [each.name for each in request.upsertions])
    results = [User(user=name, error_code=code, error_message=code.message) for name in names]
    return AlterUserScramCredentialsResponse(results=results)


def _log_dirs(request: AlterReplicaLogDirsRequest, code: ErrorCode) -> Response:
    response = AlterReplicaLogDirsResponse()
    for topic in (topic for directory in request.dirs for topic in directory.topics):
        partitions = [MovedPartition(partition_index=number, error_code=code) for number in topic.partitions]
        response.results.append(Moved(topic_name=topic.name, partitions=partitions))
    return response


REFUSALS: Mapping[ApiKey, Callable[[Any, ErrorCode], Response]] = {
    ApiKey.CREATE_ACLS: _creations,
    ApiKey.DELETE_ACLS: _deletions,
    ApiKey.ALTER_CLIENT_QUOTAS: _quotas,
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: _users,
    ApiKey.ALTER_REPLICA_LOG_DIRS: _log_dirs,
}
