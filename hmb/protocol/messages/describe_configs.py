"""DescribeConfigs (32): the settings of topics, brokers and groups, and the source of each value."""

from hmb.protocol import schema as t
from hmb.protocol.api_keys import ApiKey
from hmb.protocol.schema import Request, Response, Struct


class DescribeConfigsRequest(Request, api_key=ApiKey.DESCRIBE_CONFIGS, versions="0-4", flexible="4+"):
    """The resources to describe. Null keys stand for all settings of a resource.

    Version 1 can ask for synonyms (KIP-226). Version 3 can ask for documentation (KIP-569). Version 4 is flexible.
    Version 2 equals version 1.
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

    Version 0 only has a flag that is set if a value is the default. Version 1 adds the source of the value and its
    synonyms. Synonyms are all sources that define the setting, in order of precedence. Version 3 adds the type and the
    documentation. Version 4 is flexible.
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
