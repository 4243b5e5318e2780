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


def hasten() -> None:
    """Cache FastAPI's analysis of functions in this process."""
    plain_dependant, plain_signature = utils.get_dependant, utils._get_signature
    dependants: dict[Hashable, Dependant] = {}
    signatures: dict[Hashable, inspect.Signature] = {}
    kept: dict[int, object] = {}  # objects compared by identity must not be freed

    def code_of(call: Any) -> Hashable:
        """A key shared by functions with the same parameters; None for anything but a function."""
        key: list[Hashable] = []
        while call is not None:
            function = getattr(call, "__func__", call)
            if not inspect.isfunction(function):
                return None
            defaults = [*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()]
            kept.update((id(default), default) for default in defaults)
            key += [function.__code__, inspect.ismethod(call), *map(id, defaults)]
            call = getattr(function, "__wrapped__", None)
        return tuple(key)

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
