"""The broker: network, dispatch, handlers, topics.  The way of a request is told in `hmb`."""

from hmb.broker.broker import Broker

__all__ = ["Broker"]
