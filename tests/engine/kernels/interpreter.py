"""Where tests run kernels: on a GPU, or on a CPU under Triton's interpreter, which is spared the slowest of its ways.

What it computes stays the same: it patches its language once a device function, not anew for every call of one; the
exclusive or that Triton sorts with is NumPy's, not a loop over numbers; and NumPy's types are kept, not listed anew.
Without this a drawn token takes four times as long.
"""

from __future__ import annotations

import os
from importlib.util import find_spec
from typing import Any

import numpy as np
import torch

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


def hasten() -> None:
    """Replace those ways in this process's interpreter."""
    import triton.language as tl
    from triton.runtime import interpreter

    plain_reduction, plain_type = interpreter.ReduceOps.apply_impl, interpreter._get_np_dtype

    def call(self: Any, *arguments: Any, **named: Any) -> Any:
        if self.fn not in self.rewritten_fn:
            interpreter._patch_lang(self.fn)  # it takes nothing back of what it patches for a device function
        return self.rewrite()(*arguments, **named)

    def reduced(self: Any, operands: Any) -> Any:
        if self.combine_fn is not tl.standard._xor_combine:
            return plain_reduction(self, operands)
        (numbers,) = operands
        result = np.bitwise_xor.reduce(numbers.handle.data, axis=self.axis, keepdims=self.keep_dims)
        return self.to_tensor(result, numbers.dtype)

    types: dict[str, Any] = {}

    def numpy_type(kind: Any) -> Any:
        name = kind.scalar.name
        if name not in types:
            types[name] = plain_type(kind.scalar)
        return types[name]

    interpreter.InterpretedFunction.__call__ = call
    interpreter.ReduceOps.apply_impl = reduced
    interpreter._get_np_dtype = numpy_type


if DEVICE == "cpu":
    os.environ["TRITON_INTERPRET"] = "1"  # read when Triton is first imported
    if find_spec("triton"):
        hasten()
