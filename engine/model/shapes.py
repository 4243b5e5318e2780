"""Modules of which only names and shapes are wanted so far: on the meta device, and without first values."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch.overrides import TorchFunctionMode


@contextmanager
def only_shapes() -> Iterator[None]:
    """Modules made here hold no numbers: give them tensors by ``load_state_dict(…, assign=True)`` or ``to_empty``.

    The meta device alone would still go through drawing them, for which torch imports its whole compiler: 2 to 3 s of
    an engine's start.
    """
    with torch.device("meta"), _NoFirstValues():
        yield


class _NoFirstValues(TorchFunctionMode):
    """Whatever torch.nn.init is asked for has been done."""

    def __torch_function__(
        self, func: Callable[..., Any], types: Sequence[type], args: Sequence[Any] = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        if getattr(func, "__module__", None) == "torch.nn.init":
            return args[0] if args else kwargs["tensor"]
        return func(*args, **kwargs)
