"""DescribeConfigs (32): settings of topics, brokers and groups, and where each value comes from."""

from hmb.protocol import schema as t
from hmb.protocol.api_keys import ApiKey
from hmb.protocol.schema import Request, Response, Struct


class DescribeConfigsRequest(Request, api_key=ApiKey.DESCRIBE_CONFIGS, versions="0-4", flexible="4+"):
    """Describe these resources; null keys mean all settings.

    v1: synonyms (KIP-226).  v3: documentation (KIP-569).  v4: flexible.  v2: no change.
    """

    class DescribeConfigsResource(Struct):
        resource_type:      int              = t.int8()
        resource_name:      str              = t.string()
        configuration_keys: list[str] | None = t.array(t.string, nullable="0+")

    resources:             list[DescribeConfigsResource] = t.array(DescribeConfigsResource)
    include_synonyms:      bool                          = t.boolean("1+")
    include_documentation: bool                          = t.boolean("3+")


class DescribeConfigsResponse(Response, api_key=ApiKey.DESCRIBE_CONFIGS, versions="0-4", flexible="4+"):
    """The settings of each resource.

    v0 only says whether a value is the default.  v1: its source, and its synonyms: all places where it could come
    from, the one that holds first.  v3: type and documentation.  v4: flexible.
    """

    class DescribeConfigsResult(Struct):
        class DescribeConfigsResourceResult(Struct):
            class DescribeConfigsSynonym(Struct):
                name:   str        = t.string("1+")
                value:  str | None = t.string("1+", nullable="0+")
                source: int        = t.int8("1+")

            name:          str                          = t.string()
            value:         str | None                   = t.string(nullable="0+")
            read_only:     bool                         = t.boolean()
            is_default:    bool                         = t.boolean("0", ignorable=True)
            config_source: int                          = t.int8("1+", default=-1, ignorable=True)
            is_sensitive:  bool                         = t.boolean()
            synonyms:      list[DescribeConfigsSynonym] = t.array(DescribeConfigsSynonym, "1+", ignorable=True)
            config_type:   int                          = t.int8("3+", ignorable=True)
            documentation: str | None                   = t.string("3+", nullable="0+", ignorable=True)

        error_code:    int                                 = t.int16()
        error_message: str | None                          = t.string(nullable="0+")
        resource_type: int                                 = t.int8()
        resource_name: str                                 = t.string()
        configs:       list[DescribeConfigsResourceResult] = t.array(DescribeConfigsResourceResult)

    throttle_time_ms: int                         = t.int32()
    results:          list[DescribeConfigsResult] = t.array(DescribeConfigsResult)
