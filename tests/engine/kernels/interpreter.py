"""Where tests run kernels: on a GPU, or on a CPU under Triton's interpreter, with its slowest parts replaced.

Its results stay the same. It patches its language once per device function, not again for every call. The
exclusive or used in sorting is NumPy's, not a loop over numbers. NumPy's types and tensors' shapes are cached,
not rebuilt each time, and equal shapes are not compared element by element. Sums are not computed twice to
detect overflows, which it reports only in debug mode. Without these changes, drawing a token takes eight times as
long.
"""

from __future__ import annotations

import math
import os
from importlib.util import find_spec
from typing import Any

import numpy as np
import torch

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


def hasten() -> None:
    """Replace the slow parts in this process's interpreter."""
    import triton.language as tl
    from triton.language import semantic
    from triton.runtime import interpreter

    plain_reduction, plain_type = interpreter.ReduceOps.apply_impl, interpreter._get_np_dtype

    def call(self: Any, *arguments: Any, **named: Any) -> Any:
        if self.fn not in self.rewritten_fn:
            interpreter._patch_lang(self.fn)  # its patches for a device function are never undone
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

    sizes: dict[Any, Any] = {}
    blocks: dict[Any, Any] = {}
    plain_block = tl.block_type.__init__

    def tensor(self: Any, handle: Any, kind: Any) -> None:
        self.handle, self.type, self.dtype = handle, kind, kind.scalar
        shape = (*kind.shape.values,) if kind.is_block() else ()
        if shape not in sizes:
            sizes[shape] = tl.constexpr(math.prod(shape)), tl.tuple([tl.constexpr(size) for size in shape])
        self.numel, self.shape = sizes[shape]

    def block(self: Any, element: Any, shape: Any) -> None:
        values = shape.values if isinstance(shape, tl.tuple) else shape
        key = element.name, *[size.value if isinstance(size, tl.constexpr) else size for size in values]
        if key not in blocks:
            plain_block(self, element, shape)
            blocks[key] = self.shape, self.numel, self.name
        self.element_ty, (self.shape, self.numel, self.name) = element, blocks[key]

    plain_broadcast = semantic.TritonSemantic.broadcast_impl_value

    def broadcast(self: Any, one: Any, other: Any) -> Any:
        if one.type.is_block() and other.type.is_block() and one.type.shape.values == other.type.shape.values:
            return one, other
        return plain_broadcast(self, one, other)

    tl.tensor.__init__, tl.block_type.__init__ = tensor, block
    semantic.TritonSemantic.broadcast_impl_value = broadcast
    interpreter.interpreter_builder.options = interpreter.InterpreterOptions(sanitize_overflow=False)
    interpreter.InterpretedFunction.__call__ = call
    interpreter.ReduceOps.apply_impl = reduced
    interpreter._get_np_dtype = numpy_type


if DEVICE == "cpu":
    os.environ["TRITON_INTERPRET"] = "1"  # read when Triton is first imported
    if find_spec("triton"):
        hasten()
