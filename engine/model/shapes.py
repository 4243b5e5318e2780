"""Builds modules with names and shapes but no values: on the meta device, without initialisation."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch.overrides import TorchFunctionMode


@contextmanager
def only_shapes() -> Iterator[None]:
    """Modules built here have no values: assign tensors with ``load_state_dict(…, assign=True)`` or ``to_empty``.

    The meta device alone would still run the initialisers, for which torch imports its whole compiler: 2 to 3 s of an
    engine's start.
    """
    with torch.device("meta"), _NoFirstValues():
        yield


class _NoFirstValues(TorchFunctionMode):
    """Skips every call of torch.nn.init."""

    def __torch_function__(
        self, func: Callable[..., Any], types: Sequence[type], args: Sequence[Any] = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        if getattr(func, "__module__", None) == "torch.nn.init":
            return args[0] if args else kwargs["tensor"]
        return func(*args, **kwargs)
