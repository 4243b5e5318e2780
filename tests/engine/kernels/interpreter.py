"""Where tests run kernels: on a GPU, or on a CPU under Triton's interpreter, with its slowest parts replaced.

Its results stay the same. It patches its language once per device function, not again for every call. The
exclusive or used in sorting is NumPy's, not a loop over numbers. NumPy's types and tensors' shapes are cached,
not rebuilt each time, and equal shapes are not compared element by element; nor are equal types converted, or integers
made anew. Sums are not computed twice to detect overflows, which it reports only in debug mode. Without these changes,
drawing a token takes ten times as long.
"""

from __future__ import annotations

import math
import os
from importlib.util import find_spec
from typing import Any

import numpy as np
import torch

SIGNED = {"int32", "int64"}
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

    plain_operands = semantic.TritonSemantic.binary_op_type_checking_impl

    def operands(
        self: Any, one: Any, other: Any, one_may_point: bool = False, other_may_point: bool = False,
        is_arithmetic: bool = True, div_or_mod: bool = False,
    ) -> Any:  # fmt: skip
        if type(one) is tl.tensor and not div_or_mod:
            if type(other) is int and -(2**31) <= other < 2**31:
                if one.dtype.name in SIGNED:
                    return broadcast(self, one, constant(self, other, one.dtype))
                if one_may_point and one.dtype.is_ptr():
                    return broadcast(self, one, constant(self, other, tl.int32))
            if type(other) is tl.tensor:
                is_same = one.dtype is other.dtype and not one.dtype.is_ptr()
                if is_same or (one_may_point and one.dtype.is_ptr() and other.dtype.name in SIGNED):
                    return broadcast(self, one, other)
        is_small = type(one) is int and -(2**31) <= one < 2**31
        if is_small and type(other) is tl.tensor and other.dtype.name in SIGNED and not div_or_mod:
            return broadcast(self, constant(self, one, other.dtype), other)
        return plain_operands(self, one, other, one_may_point, other_may_point, is_arithmetic, div_or_mod)

    integers: dict[Any, Any] = {}
    plain_constant = semantic.TritonSemantic.scalar_constant

    def constant(self: Any, value: Any, dtype: Any) -> Any:
        if type(value) is not int or dtype is None:
            return plain_constant(self, value, dtype)
        if (value, dtype.name) not in integers:
            integers[value, dtype.name] = plain_constant(self, value, dtype)
        return integers[value, dtype.name]

    def patch(owner: Any, name: str, member: Any, builder: Any, scope: Any) -> None:
        member = getattr(member, "__wrapped__", member)  # which only checks that it has what is added here

        def with_semantic(*values: Any, **named: Any) -> Any:
            named["_semantic"] = interpreter.interpreter_semantic
            return member(*values, **named)

        scope.set_attr(owner, name, with_semantic)

    tl.tensor.__init__, tl.block_type.__init__ = tensor, block
    semantic.TritonSemantic.broadcast_impl_value = broadcast
    semantic.TritonSemantic.binary_op_type_checking_impl = operands
    semantic.TritonSemantic.scalar_constant = constant
    interpreter._patch_attr = patch
    interpreter.interpreter_builder.options = interpreter.InterpreterOptions(sanitize_overflow=False)
    interpreter.InterpretedFunction.__call__ = call
    interpreter.ReduceOps.apply_impl = reduced
    interpreter._get_np_dtype = numpy_type


if DEVICE == "cpu":
    os.environ["TRITON_INTERPRET"] = "1"  # read when Triton is first imported
    if find_spec("triton"):
        hasten()
