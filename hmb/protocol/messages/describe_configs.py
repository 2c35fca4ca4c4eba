"""DescribeConfigs (32): return the settings of topics, brokers and groups, and the source of each value."""

from hmb.protocol import fields as t
from hmb.protocol.api_keys import ApiKey
from hmb.protocol.schema import Request, Response, Struct


class DescribeConfigsRequest(Request, api_key=ApiKey.DESCRIBE_CONFIGS, versions="0-4", flexible="4+"):
    """The resources whose settings the client asks for.

    If `configuration_keys` is null, the client asks for all settings of the resource.

    - Version 1 adds the flag `include_synonyms` (KIP-226). A client sets this flag to get several values of a
      setting, for example the topic's value and the broker's value.
    - Version 2 has the same layout as version 1.
    - Version 3 adds `include_documentation`, which asks for the documentation of each setting (KIP-569).
    - Version 4 uses the flexible encoding (KIP-482).
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

    A setting can have values from several sources, for example from the topic and from the broker. Kafka calls
    these values the *synonyms* of the setting. The first synonym is the value in use.

    - Version 0 has the flag `is_default`, which shows whether the value in use is the default.
    - Version 1 adds the synonyms. It replaces `is_default` with `config_source`, the source of the value in use.
    - Version 2 has the same layout as version 1.
    - Version 3 adds the type and the documentation of each setting.
    - Version 4 uses the flexible encoding (KIP-482).
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
