"""*Delegation*: a class has a public method, but the code of this method is a function in another module.

An `Admin` has more than twenty public methods. If one class contained the code of all methods, each method
would be hard to find. The code is therefore in functions, in one module for each task. `Admin` has only one
line for each method:
    create_topics = delegated("_brokers", topics.create_topics)

The function `delegated` creates the method `Admin.create_topics`. The call `admin.create_topics(["a"])` means
`topics.create_topics(admin._brokers, ["a"])`. The method takes its signature and its docstring from
`topics.create_topics`, so `Admin` does not repeat them. A type checker also knows the signature.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


def delegated(attribute: str, function: Callable[Concatenate[Any, P], R]) -> Callable[Concatenate[Any, P], R]:
    """Return a method that calls `function`, and passes `self.<attribute>` as its first argument."""

    @wraps(function)
    def method(self: Any, /, *arguments: P.args, **keywords: P.kwargs) -> R:
        return function(getattr(self, attribute), *arguments, **keywords)

    return method
