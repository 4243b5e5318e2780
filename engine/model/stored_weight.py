"""Weights of products in their stored form: as published, in eight bits with a scale per row, or in six per group.

Both are symmetric and need no calibration: a weight is a whole number times its scale, which keeps the largest entry.
A row, and in six bits each group of it, is quantised by itself, so rows may be joined and split. A recogniser hears
5.8 % of the bundled model's words wrong with float32, 5.7 with eight bits and 6.3 with six (docs/log/page.md).

Packed, for a CPU's native code (`StoredWeight.packed`): eight rows that are multiplied at once lie together,
(outputs / 8, inputs / 4, 8 outputs, 4 inputs).

Pairs, for kernels (`StoredWeight.paired`): sixteen weights in eight bits take eight words of 16 bits; word i holds
weight i in its low byte and weight i + PAIR in its high byte.

Six bits: a group is 64 weights, and sixteen weights take three words of 32 bits. Word i holds weights 5 i to 5 i + 4,
the first in its lowest bits, and in its highest two bits two of the sixteenth weight; each weight plus 32.
"""

from __future__ import annotations

import functools
import platform
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from engine.config import Weights

BITS: dict[Weights, tuple[int, int]] = {"bf16": (16, 16), "int8": (8, 8), "int6": (6, 8)}
"""Bits of the slow and of the fast AR's layers; 16 stands for the model's own type."""
_FEW_ROWS, _SOME_ROWS = 16, 128
"""Up to so many are multiplied by eight bits faster than by what these are converted to: bfloat16, where the CPU has
products of it, else float32."""
GROUP = 64
"""Weights that share a scale in six bits."""
PAIR = 8
"""Distance of the two weights of a word: a thread of a matrix product then multiplies just those that it loads."""
_AT_ONCE = 2**21
"""Weights quantised at once, which takes some twenty bytes per weight."""
_PER_WORD = 5
"""Complete six-bit weights in a word."""


@dataclass(frozen=True, eq=False, slots=True)
class StoredWeight:
    """The weight (outputs, inputs) of a product."""

    values: Tensor
    """(outputs, inputs), in eight bits int8, packed uint8; in pairs int16 (outputs, inputs / 2); in six bits int32
    (outputs, 3, inputs / 16): first, second, third words"""
    scales: Tensor | None = None
    """float32 (outputs,) for eight bits, float16 (outputs, inputs / GROUP) for six"""

    @classmethod
    @torch.inference_mode()  # in which ``into`` may have been allocated, by another thread
    def of(cls, weight: Tensor, bits: int, into: StoredWeight | None = None) -> StoredWeight:
        """A weight (outputs, inputs), quantised, in the memory of ``into`` where that is given."""
        if bits == 16:
            return cls(weight)
        if into is None:
            outputs, inputs = weight.shape
            with weight.device:
                into = cls.empty(outputs, inputs, bits)
        assert into.scales is not None
        quantise, rows = _in_eight_bits if bits == 8 else _in_six_bits, max(1, _AT_ONCE // weight.shape[1])
        for part, *targets in zip(weight.split(rows), into.values.split(rows), into.scales.split(rows), strict=True):
            for target, result in zip(targets, quantise(part), strict=True):
                target.copy_(result)
        return into

    @classmethod
    def empty(cls, outputs: int, inputs: int, bits: int) -> StoredWeight:
        """A weight of this shape with uninitialised values."""
        if bits == 8:
            return cls(torch.empty(outputs, inputs, dtype=torch.int8), torch.empty(outputs))
        words = torch.empty(outputs, 3, inputs // 16, dtype=torch.int32)
        return cls(words, torch.empty(outputs, inputs // GROUP, dtype=torch.float16))

    @property
    def has_six_bits(self) -> bool:
        return self.values.dtype == torch.int32

    @property
    def is_paired(self) -> bool:
        return self.values.dtype == torch.int16

    @property
    def is_packed(self) -> bool:
        return self.values.dtype == torch.uint8

    @property
    def shape(self) -> tuple[int, int]:
        """Outputs and inputs."""
        outputs, inputs = self.values.shape[0], self.values.shape[-1]
        return outputs, inputs * (16 if self.has_six_bits else 2 if self.is_paired else 1)

    @torch.inference_mode()
    def paired(self) -> StoredWeight:
        """Eight bits as pairs, in the same memory, which this weight must no longer read; any other weight as it is.

        Raises ValueError if the inputs are not a multiple of 2 · PAIR, as in no published model.
        """
        if self.values.dtype != torch.int8:
            return self
        if self.shape[1] % (2 * PAIR):
            raise ValueError(f"kernels read weights in 8 bits by {2 * PAIR} inputs, not {self.shape[1]}: use 16 bits")
        for part in self.values.split(max(1, _AT_ONCE // self.values.shape[1])):
            part.copy_(part.unflatten(1, (-1, 2, PAIR)).mT.flatten(1))
        return StoredWeight(self.values.view(torch.int16), self.scales)

    @torch.inference_mode()
    def packed(self, empty: Callable[[int, int], Tensor]) -> StoredWeight:
        """Eight bits packed, for outputs in eights and inputs in fours; any other weight as it is.

        ``empty``: allocates uint8 (outputs, inputs).
        """
        if self.values.dtype != torch.int8:
            return self
        outputs, inputs = self.shape
        target = empty(outputs, inputs)
        lines = self.values.view(torch.int32).unflatten(0, (-1, 8))
        target.view(torch.int32).view(-1, inputs // 4, 8).copy_(lines.mT)
        return StoredWeight(target, self.scales)

    def _rows(self) -> Tensor:
        """Values of eight bits as int8 (outputs, inputs)."""
        if not self.is_packed:
            return self.values
        outputs, inputs = self.shape
        groups = self.values.view(torch.int32).view(-1, inputs // 4, 8)
        return groups.mT.contiguous().view(outputs, -1).view(torch.int8)

    def joined(self, other: StoredWeight) -> StoredWeight:
        """The rows of this weight followed by those of another in the same form."""
        scales = None
        if self.scales is not None and other.scales is not None:
            scales = torch.cat([self.scales, other.scales])
        return StoredWeight(torch.cat([self.values, other.values]), scales)

    def halves(self) -> Iterator[StoredWeight]:
        """Its first half of the rows and its second, sharing its memory."""
        scales = (None, None) if self.scales is None else self.scales.chunk(2)
        return map(StoredWeight, self.values.chunk(2), scales)

    def dequantised(self, dtype: torch.dtype) -> Tensor:
        """The weight (outputs, inputs) in this dtype."""
        if self.scales is None:
            return self.values.to(dtype)
        if not self.has_six_bits:
            values = self._rows()
            if self.is_paired:
                values = values.view(torch.int8).unflatten(1, (-1, PAIR, 2)).mT.flatten(1)
            return (values.float() * self.scales[:, None]).to(dtype)
        groups = _unpacked(self.values).unflatten(1, (-1, GROUP))
        return (groups * self.scales.float()[..., None]).flatten(1).to(dtype)

    def times(self, x: Tensor, out: Tensor | None = None) -> Tensor:
        """The product of quantised weights with x (…, inputs): (…, outputs) in x's type, or in ``out``.

        On a CPU eight bits are multiplied as they are, by bfloat16 activations; elsewhere weights are dequantised.
        """
        if self.values.dtype in (torch.int8, torch.uint8) and x.device.type == "cpu":
            assert self.scales is not None
            sums = _times_eight_bits(x.bfloat16().flatten(0, -2), self._rows()).view(*x.shape[:-1], self.shape[0])
            return torch.mul(sums, self.scales, out=torch.empty_like(sums, dtype=x.dtype) if out is None else out)
        return torch.matmul(x, self.dequantised(x.dtype).t(), out=out)


class QuantisedLinear(nn.Module):
    """A Linear whose weight is quantised."""

    weight: Tensor
    scales: Tensor

    def __init__(self, inputs: int, outputs: int, bits: int, bias: bool = False) -> None:
        super().__init__()
        self.bits, self.bias = bits, nn.Parameter(torch.empty(outputs)) if bias else None
        empty = StoredWeight.empty(outputs, inputs, bits)
        self.register_buffer("weight", empty.values)
        self.register_buffer("scales", empty.scales)

    def forward(self, x: Tensor) -> Tensor:
        product = weight_of(self).times(x)
        return product if self.bias is None else product + self.bias


def product(inputs: int, outputs: int, bits: int, bias: bool = False) -> nn.Linear | QuantisedLinear:
    """A layer's product in this many bits; rows that are not whole groups use eight bits instead of six."""
    if bits == 16:
        return nn.Linear(inputs, outputs, bias=bias)
    return QuantisedLinear(inputs, outputs, 8 if inputs % GROUP else bits, bias)


def weight_of(part: nn.Linear | QuantisedLinear) -> StoredWeight:
    """A product's weight, sharing its memory."""
    if isinstance(part, QuantisedLinear):
        return StoredWeight(part.weight, part.scales)
    return StoredWeight(part.weight.detach())


def set_weight(part: nn.Linear | QuantisedLinear, weight: StoredWeight) -> None:
    """Set a product's weight, sharing its memory."""
    if isinstance(part, QuantisedLinear):
        assert weight.scales is not None
        part.weight, part.scales = weight.values, weight.scales
    else:
        part.weight.data = weight.values


def multiplies_eight_bits() -> bool:
    """Whether torch has vector instructions for eight-bit products on this CPU; else they are slower than float32's."""
    has_neon = platform.machine().lower() in ("arm64", "aarch64")
    return sys.platform != "win32" and (has_neon or torch.backends.cpu.get_cpu_capability().startswith("AVX"))


class Quantiser:
    """Converts a checkpoint's tensors to entries of a model's state; any thread may call it."""

    def __init__(self, model: nn.Module, device: torch.device | None = None) -> None:
        """``model``: only its shapes count.

        ``device``: allocate the quantised weights there now. Allocated one by one, they would lie in what the full ones
        before them left, and GPU memory that is partly in use cannot be freed: a gibibyte of S2 Pro's.
        """
        self._parts = {
            f"{name}.weight": part for name, part in model.named_modules() if isinstance(part, QuantisedLinear)
        }
        self._memory: dict[str, StoredWeight] = {}
        if device is not None:
            with device:
                for name, part in self._parts.items():
                    self._memory[name] = StoredWeight.empty(*weight_of(part).shape, part.bits)

    def __call__(self, name: str, tensor: Tensor) -> dict[str, Tensor]:
        """The state's entries for a tensor; one that does not match the model's shapes is returned as it is."""
        part = self._parts.get(name)
        if part is None or tensor.shape != weight_of(part).shape:
            return {name: tensor}
        weight = StoredWeight.of(tensor, part.bits, self._memory.get(name))
        assert weight.scales is not None
        return {name: weight.values, name.removesuffix("weight") + "scales": weight.scales}


@functools.lru_cache
def _ones(count: int) -> Tensor:
    """Ones as the operator's scales: real ones would have to be rounded to bfloat16."""
    return torch.ones(count, dtype=torch.bfloat16)


def _times_eight_bits(x: Tensor, values: Tensor) -> Tensor:
    """The product of x (rows, inputs) bfloat16 and int8 values (outputs, inputs) on a CPU, summed in float32."""
    has_bfloat16 = torch.ops.mkldnn._is_mkldnn_bf16_supported()
    is_whole = x.shape[1] % 32 == 0  # else the operator reads beyond the rows' end; no published model has such
    if is_whole and len(x) <= (_FEW_ROWS if has_bfloat16 else _SOME_ROWS):
        # Here a row's result does not depend on the others.
        return torch._weight_int8pack_mm(x, values, _ones(len(values)))
    dtype = torch.bfloat16 if has_bfloat16 else torch.float32  # both hold all whole numbers up to 256
    return F.linear(x.to(dtype), values.to(dtype)).to(x.dtype)


def _in_eight_bits(weight: Tensor) -> tuple[Tensor, Tensor]:
    """Values and scales of rows, as in `StoredWeight`."""
    scales = weight.float().abs().amax(1).clamp(min=1e-12) / 127
    return (weight.float() / scales[:, None]).round_().to(torch.int8), scales


def _in_six_bits(weight: Tensor) -> tuple[Tensor, Tensor]:
    groups = weight.float().unflatten(1, (-1, GROUP))
    scales = (groups.abs().amax(2) / 31).clamp(min=1e-7).half()
    numbers = (groups / scales[..., None].float()).round_().clamp_(-32, 31).to(torch.int32) + 32
    return _packed(numbers.flatten(1)), scales


def _packed(numbers: Tensor) -> Tensor:
    """Numbers (outputs, inputs) from 0 to 63, int32, as words (outputs, 3, inputs / 16)."""
    sixteens = numbers.unflatten(1, (-1, 16))
    words = []
    for word in range(3):
        packed = sixteens[..., 15] >> 2 * word & 3
        packed <<= 30
        for index in range(_PER_WORD):
            packed |= sixteens[..., _PER_WORD * word + index] << 6 * index
        words.append(packed)
    return torch.stack(words, 1)


def _unpacked(words: Tensor) -> Tensor:
    """Words (outputs, 3, inputs / 16) as numbers (outputs, inputs) from -32 to 31, float32."""
    numbers = [words[:, word] >> 6 * index & 63 for word in range(3) for index in range(_PER_WORD)]
    sixteenth = sum((words[:, word] >> 30 & 3) << 2 * word for word in range(3))
    return (torch.stack([*numbers, torch.as_tensor(sixteenth)], 2) - 32).flatten(1).float()
