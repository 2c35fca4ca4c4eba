"""Tests of the setting for compression: the accepted names are exactly the names of the codecs."""

from __future__ import annotations

from hmb.defaults import CODEC_NAMES
from hmb.records import Codec


def test_each_codec_has_a_name() -> None:
    assert tuple(codec.name.lower() for codec in Codec) == CODEC_NAMES
