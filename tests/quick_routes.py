"""A cache for FastAPI: a test's studio has the same routes as the previous test's.

The routes stay the same: each path is compiled once, and parameters are read once for all closures and bound methods
with the same code and defaults. Reading them every time would take half the time of a short test.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Hashable
from dataclasses import replace
from functools import cache
from typing import Any

import fastapi.routing
import starlette.routing
from fastapi.dependencies import models, utils
from fastapi.dependencies.models import Dependant

KINDS = "_is_gen_callable_cached", "_is_async_gen_callable_cached", "_is_coroutine_callable_cached"
LISTS = "path_params", "query_params", "header_params", "cookie_params", "body_params", "dependencies"


class Codes:
    """Keys of functions, equal for those with the same parameters."""

    def __init__(self) -> None:
        self._kept: dict[int, object] = {}  # objects compared by identity must not be freed
        self._methods: dict[object, Hashable] = {}  # by function: those of routes are the same in every studio

    def of(self, call: Any) -> Hashable:
        """The key; None for anything but a function."""
        function, is_method = getattr(call, "__func__", call), inspect.ismethod(call)
        if not inspect.isfunction(function):
            return None
        if is_method and function in self._methods:
            return self._methods[function]
        inner = getattr(function, "__wrapped__", None)
        if inner is not None and (inner := self.of(inner)) is None:
            return None
        defaults = [*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()]
        self._kept.update((id(default), default) for default in defaults)
        key = function.__code__, is_method, *map(id, defaults), inner
        if is_method:
            self._methods[function] = key
        return key


def hasten() -> None:
    """Cache FastAPI's analysis of functions in this process."""
    plain_dependant, plain_signature = utils.get_dependant, utils._get_signature
    dependants: dict[Hashable, Dependant] = {}
    signatures: dict[Hashable, inspect.Signature] = {}
    code_of = Codes().of

    def dependant(*, call: Callable[..., Any], **how: Any) -> Dependant:
        code = code_of(call)
        if code is None:
            return plain_dependant(call=call, **how)
        key = code, repr(sorted(how.items()))
        if key not in dependants:
            dependants[key] = replace(plain_dependant(call=call, **how), call=None)  # a call may hold a whole studio
        copy = replace(dependants[key], call=call)
        for name in LISTS:  # routes add to these
            setattr(copy, name, [*getattr(copy, name)])
        return copy

    def signature(call: Callable[..., Any]) -> inspect.Signature:
        code = code_of(call)
        if code is None:
            return plain_signature(call)
        if code not in signatures:
            signatures[code] = plain_signature(call)
        return signatures[code]

    def kind_by_code(kind: Any) -> Callable[[Any], bool]:
        """Like FastAPI's own cache of whether a function is a coroutine, but without keeping twenty studios."""
        known: dict[Hashable, bool] = {}

        def cached(identity: Any) -> bool:
            if (code := code_of(identity.call)) is None:
                return bool(kind.__wrapped__(identity))
            if code not in known:
                known[code] = kind.__wrapped__(identity)
            return known[code]

        return cached

    for name in KINDS:
        setattr(models, name, kind_by_code(getattr(models, name)))
    starlette.routing.compile_path = fastapi.routing.compile_path = cache(starlette.routing.compile_path)
    utils.get_dependant = fastapi.routing.get_dependant = dependant
    utils._get_signature = signature
