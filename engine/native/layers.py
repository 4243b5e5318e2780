"""The codec's layers for the C code: weights in its order, buffers between layers, and streams' states.

The numbers are float32, the seven-tap convolutions by Winograd's F(4, 7) where a frame is long enough. A decoder's
long frames use F(8, 7), and F(3, 2) for upsampling convolutions of two taps. A decoder's weights that a frame reads for
a few rows only are whole numbers of 16 bits with a scale per output, which are half as much to read. Chunks of any
sizes give what the whole gives bit for bit, for any number of threads.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from engine.codec.codec_config import TransformerConfig
from engine.model.layers import rope_angles
from engine.native.library import (
    BufferFields,
    ConvolutionFields,
    LargePages,
    Layer,
    LayersFields,
    Matrix,
    StepsFields,
    TransformerFields,
    library,
)

PANEL = 16
"""Outputs that are computed together; a buffer's channels are a multiple of it."""
TAPS = 7
_TILED = 5120
"""Products of Winograd tiles with one of the widest layer's inputs, for which there is memory."""
_FEW_ROWS = 4
"""Rows of a frame for which reading float32 weights takes longer than the products."""
_MANY_ROWS = 128
"""Rows of a frame for which larger tiles are faster, though their weights are more to read."""
_POINTS = {4: (1.0,), 10: (1.0, 2.0, 0.5, 1.5), 14: (0.3, 0.6, 0.85, 1.15, 1.65, 3.2)}
"""Of Winograd's rules, by their number of points; each with its negative, besides 0 and ∞. Those of 14 were searched
for the least error of float32, 1.5e-5 a layer, where simple fractions give 4e-5."""
_CONVOLUTION, _WINOGRAD, _DEPTHWISE, _TRANSFORMER = range(4)
PLAIN, _SNAKE, GELU, TANH = range(4)


def winograd_matrices(outputs: int, taps: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Matrices for inputs (points, points), weights (points, taps) and outputs (outputs, points), in float64."""
    points = outputs + taps - 1
    finite = [0.0, *(point for each in _POINTS[points] for point in (each, -each))]

    def powers(count: int) -> np.ndarray:
        rows = [[point**power for power in range(count)] for point in finite]
        return np.array([*rows, [0.0] * (count - 1) + [1.0]])

    inputs = np.linalg.inv(powers(points)).T
    largest = abs(inputs).max(1, keepdims=True)
    return inputs / largest, powers(taps) * largest, powers(outputs).T


def runs_transformer(config: TransformerConfig) -> bool:
    """Whether native code can run this transformer."""
    sizes = config.head_dim, config.intermediate_size, config.n_head * config.head_dim
    return (
        all(size % 8 == 0 for size in sizes)
        and config.head_dim <= 256
        and all(size % PANEL == 0 for size in (config.dim, config.input_dim))
    )


def padded(channels: int) -> int:
    return -(-channels // PANEL) * PANEL


@dataclass
class Plan:
    """The layers so far, and the buffers and weights that they use."""

    frames: int
    """At most, of one call. Memory for activations grows with it."""
    streams: int
    decodes: bool
    """Whether weights may be of 16 bits, and transformers' are copied too, so that the codec may forget its own."""
    layers: list[ConvolutionFields] = field(default_factory=list)
    buffers: list[BufferFields] = field(default_factory=list)
    places: list[str] = field(default_factory=list)
    """The memory of each buffer, by name: two sets of names take turns, so that a layer never reads what it writes."""
    transformers: list[WindowSteps] = field(default_factory=list)
    kept: list[object] = field(default_factory=list)
    memory: LargePages = field(default_factory=LargePages)
    state_size: int = 0

    def buffer(self, place: str, rows: int, channels: int, context: int = 0) -> int:
        """A new buffer with room for this many rows a frame; one channel is not padded."""
        width = 1 if channels == 1 else padded(channels)
        self.buffers.append(BufferFields(None, self.state_size, rows, width, context))
        self.places.append(place)
        self.state_size += context * width
        return len(self.buffers) - 1

    def joined(self, index: int, stride: int) -> int:
        """The same buffer, each `stride` rows as one: a strided convolution then is one without a stride."""
        of = self.buffers[index]
        assert of.rows % stride == 0 and of.context % stride == 0
        width = of.channels * stride
        self.buffers.append(BufferFields(None, of.state, of.rows // stride, width, of.context // stride))
        self.places.append(self.places[index])
        return len(self.buffers) - 1

    def pointer(self, array: Tensor | np.ndarray) -> int:
        """The address of a contiguous float32 copy of a tensor, or of an array."""
        if isinstance(array, Tensor):
            array = self.memory.copy(array.detach().float()).numpy()
        array = np.ascontiguousarray(array)
        self.kept.append(array)
        return array.ctypes.data

    def matrix(self, weight: Tensor) -> Matrix:
        if self.decodes:
            values, scales = self.shorts(weight.unflatten(0, (-1, 8)).transpose(1, 2), 1)
            return Matrix(values, scales, *weight.shape, 16)
        if weight.dtype != torch.float32 or not weight.is_contiguous():
            return Matrix(self.pointer(weight), None, *weight.shape, 32)
        self.kept.append(weight)
        return Matrix(weight.data_ptr(), None, *weight.shape, 32)

    def shorts(self, weight: Tensor, *summed: int) -> tuple[int, int]:
        """The addresses of a weight in 16 bits and of its scales; ``summed``: the dimensions of an output's inputs."""
        scales = weight.detach().abs().amax(summed, keepdim=True).clamp(min=1e-30) / 32767
        values = self.memory.copy((weight / scales).round().short())
        self.kept.append(values)
        return values.data_ptr(), self.pointer(scales)

    def allocate(self) -> None:
        sizes: dict[str, int] = {}
        for place, buffer in zip(self.places, self.buffers, strict=True):
            size = (buffer.context + buffer.rows * self.frames) * buffer.channels
            sizes[place] = max(sizes.get(place, 0), size)
        memory = {place: self.pointer(np.zeros(size + 16, np.float32)) for place, size in sizes.items()}
        for place, buffer in zip(self.places, self.buffers, strict=True):
            buffer.memory = memory[place]
        tiled = [layer for layer in self.layers if layer.kind == _WINOGRAD]
        if tiled:
            size = _TILED * max(layer.inputs for layer in tiled)
            tiles = self.pointer(np.zeros(size, np.float32))
            for layer in tiled:
                layer.memory, layer.most_tiles = tiles, size // (layer.points * layer.inputs) - 1


class WindowSteps:
    """A window transformer's weights, and the keys and values of all streams."""

    def __init__(self, plan: Plan, module: Any, rows: int) -> None:
        """``rows``: steps of a frame."""
        config = self._config = module.config
        self._rows = rows
        capacity = config.window + plan.frames * rows
        shape = (2, config.n_layer, plan.streams, capacity, config.n_head, config.head_dim)
        self._caches = np.zeros(shape, np.float32)
        layers = (Layer * config.n_layer)()
        for index, (layer, block) in enumerate(zip(layers, module.layers, strict=True)):
            attention, ffn = block.attention, block.feed_forward
            layer.attention_norm = plan.pointer(block.attention_norm.weight)
            layer.ffn_norm = plan.pointer(block.ffn_norm.weight)
            layer.attention_scale = plan.pointer(block.attention_layer_scale.gamma)
            layer.ffn_scale = plan.pointer(block.ffn_layer_scale.gamma)
            layer.qkv, layer.output = plan.matrix(attention.wqkv.weight), plan.matrix(attention.wo.weight)
            layer.gate, layer.up, layer.down = (plan.matrix(part.weight) for part in (ffn.w1, ffn.w3, ffn.w2))
            layer.keys, layer.values = (cache[index].ctypes.data for cache in self._caches)
        self.fields = TransformerFields(
            layers, plan.pointer(module.norm.weight), Matrix(), capacity * config.n_head * config.head_dim,
            config.n_layer, config.dim, config.n_head, config.n_head, config.head_dim, config.intermediate_size,
            config.window, capacity, config.norm_eps,
        )  # fmt: skip
        self.steps = StepsFields()
        self._angles = torch.empty(0)

    def move(self, slot: int, frame: int, frames: int) -> None:
        """The next call's steps are those of these frames of a stream."""
        config, first, count = self._config, frame * self._rows, frames * self._rows
        if first + count > len(self._angles):  # twice as many: computing them takes as long as a small layer
            positions = torch.arange(2 * (first + count))
            angles = rope_angles(positions, config.head_dim, config.rope_base, config.exact_rope)
            self._angles = angles.contiguous()
        self._places = np.empty((2, count), np.int32)
        self._places[0], self._places[1] = slot, np.arange(first, first + count)
        steps, address = self.steps, self._places.ctypes.data
        steps.angles, steps.steps, steps.slots = self._angles.data_ptr(), count, address
        steps.positions = steps.rotations = address + self._places.strides[0]


class NativeLayers:
    """Runs the layers of a plan over the next frames of one stream at a time. For one thread only."""

    def __init__(self, plan: Plan, first: int, last: int, width: int, lane: int) -> None:
        """``first``, ``last``: the buffers of inputs and outputs; ``width``: channels of an output row."""
        plan.allocate()
        self._plan, self._lane = plan, lane
        layers = (ConvolutionFields * len(plan.layers))(*plan.layers)
        buffers = (BufferFields * len(plan.buffers))(*plan.buffers)
        self._fields = LayersFields(layers, buffers, len(layers), first, last, width)
        self._shape = plan.buffers[last].rows, width
        self._states = np.zeros((plan.streams, max(plan.state_size, 1)), np.float32)
        self._frames = [0] * plan.streams

    def reset(self, slot: int) -> None:
        """Start a new stream in this slot."""
        self._states[slot] = 0
        self._frames[slot] = 0

    def __call__(self, slot: int, inputs: np.ndarray) -> np.ndarray:
        """The next inputs (frames, floats of a frame) float32 → outputs (rows, width)."""
        frames = len(inputs)
        assert frames <= self._plan.frames and inputs.flags.c_contiguous
        rows, width = self._shape
        outputs = np.empty((frames * rows, width), np.float32)
        for transformer in self._plan.transformers:
            transformer.move(slot, self._frames[slot], frames)
        native = library()
        assert native is not None
        state = self._states[slot].ctypes.data
        native.native_codec_frames(
            ctypes.byref(self._fields), inputs.ctypes.data, state, frames, outputs.ctypes.data, self._lane
        )
        self._frames[slot] += frames
        return outputs


class LayerBuilder:
    """Adds layers to a plan."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self._turn = self._side = 0

    def raw(self, rows: int, channels: int, context: int = 0) -> int:
        """A buffer in the other set of places; the buffers of its readers, added next, are in the same set."""
        self._turn ^= 1
        return self.plan.buffer(f"raw {self._turn}", rows, channels, context)

    def ahead(self, rows: int, channels: int, context: int) -> int:
        """A buffer for an activation, not in the place of the one before, which the same layer may read."""
        self._side ^= 1
        return self.plan.buffer(f"in {self._side}", rows, channels, context)

    def convolve(
        self,
        x: int,
        weight: Tensor,
        bias: Tensor,
        output: int = -1,
        activated: int = -1,
        snake: Any | None = None,
        activation: int = PLAIN,
        is_added: bool = False,
        dilation: int = 1,
        repeats: int = 1,
        tile: int = 0,
        is_exact: bool = False,
    ) -> None:
        """A convolution with weight (outputs, inputs, taps); repeats: how often the Snake's periods repeat.

        tile: rows of a Winograd tile, if not 0. is_exact: its weights are float32.
        """
        outputs, inputs, taps = weight.shape
        plan, width, rows = self.plan, padded(outputs), self.plan.buffers[x].rows
        full = torch.zeros(width, inputs, taps)
        full[:outputs] = weight
        fields = self._fields(_WINOGRAD if tile else _CONVOLUTION, x, bias, outputs, output, activated, snake, repeats)
        fields.taps, fields.dilation, fields.inputs, fields.is_added = taps, dilation, inputs, is_added
        fields.activation = activation or fields.activation
        if tile:
            matrices, starts = winograd_matrices(tile, taps), _starts(rows, dilation, tile)
            full = full.double() @ torch.from_numpy(matrices[1]).t()
            fields.points, fields.tiles, fields.starts = tile + taps - 1, len(starts), plan.pointer(starts)
            fields.in_, fields.out = (plan.pointer(matrix.astype(np.float32)) for matrix in matrices[::2])
        panels = full.unflatten(0, (-1, PANEL)).permute(0, 3, 2, 1)  # (panels, taps or points, inputs, PANEL)
        if plan.decodes and not is_exact and rows <= _FEW_ROWS:
            fields.weights, fields.scales = plan.shorts(panels, 1, 2)
        else:
            fields.weights = plan.pointer(panels)
        plan.layers.append(fields)

    def convolve_up(self, x: int, layer: Any, output: int, activated: int = -1, snake: Any | None = None) -> None:
        """An upsampling convolution as one of taps = context + 1, whose outputs are `stride` rows."""
        conv, stride, taps = layer.conv, layer.stride, layer.context + 1
        inputs, outputs, kernel = conv.weight.shape
        width = padded(outputs)
        weight = conv.weight.new_zeros(stride, width, inputs, taps)
        whole = torch.zeros(inputs, outputs, taps * stride)
        whole[..., :kernel] = conv.weight
        # Output row j of an input's share at distance k is kernel entry k · stride + j; taps go from the past on.
        shares = whole.unflatten(2, (taps, stride)).permute(3, 1, 0, 2).flip(3)
        weight[:, :outputs] = shares
        bias = torch.zeros(stride, width)
        bias[:, :outputs] = conv.bias
        tile = self._tile(self.plan.buffers[x].rows, inputs, taps, 1)
        self.convolve(x, weight.flatten(0, 1), bias.flatten(), output, activated, snake, repeats=stride, tile=tile)

    def convolve_down(self, x: int, layer: Any, output: int, activated: int = -1, snake: Any | None = None) -> None:
        """A strided convolution, whose taps are a multiple of the stride."""
        conv, (stride,) = layer.conv, layer.conv.stride
        joined = self.plan.joined(x, stride)
        outputs, inputs, taps = conv.weight.shape
        weight = torch.zeros(outputs, stride, padded(inputs), taps // stride)
        weight[:, :, :inputs] = conv.weight.unflatten(2, (-1, stride)).permute(0, 3, 1, 2)
        self.convolve(joined, weight.flatten(1, 2), conv.bias, output, activated, snake)

    def convolve_joined(self, x: int, layer: Any, count: int, activated: int, activation: int) -> None:
        """A convolution with one output, of which a row holds those of `count` rows of x: panels are full then."""
        conv, joined, width = layer.conv, self.plan.joined(x, count), self.plan.buffers[x].channels
        _, inputs, taps = conv.weight.shape
        past = layer.context + -layer.context % count
        weight = torch.zeros(count, past + count, width)
        for row in range(count):
            last = past + row + 1
            weight[row, last - taps : last, :inputs] = conv.weight[0].t()
        weight = weight.view(count, -1, count * width).transpose(1, 2)
        self.convolve(joined, weight, conv.bias.expand(count), activated=activated, activation=activation)

    def project(self, x: int, layer: nn.Module, rows: int) -> int:
        """A transformer's projection; returns its output, which is x if there is none."""
        if not isinstance(layer, nn.Linear):
            return x
        y = self.plan.buffer("mid", rows, layer.out_features)
        self.convolve(x, layer.weight[..., None], layer.bias, output=y)
        return y

    def transformer(self, x: int, module: Any, output: int, activated: int = -1, snake: Any | None = None) -> None:
        """A window transformer without its projections."""
        plan, rows, width = self.plan, self.plan.buffers[x].rows, module.config.dim
        steps = WindowSteps(plan, module, rows)
        plan.transformers.append(steps)
        fields = self._fields(_TRANSFORMER, x, torch.zeros(width), width, output, activated, snake)
        fields.transformer, fields.steps = ctypes.pointer(steps.fields), ctypes.pointer(steps.steps)
        plan.layers.append(fields)

    def before(self, unit: Any, rows: int) -> int:
        """A buffer for the input of a residual unit after its first Snake."""
        conv = unit.block[1].conv
        tile, context = self._unit_tile(unit, rows), (TAPS - 1) * conv.dilation[0]
        earliest = int(_starts(rows, conv.dilation[0], tile)[:, 0].min()) if tile else 0
        return self.ahead(rows, conv.in_channels, context - min(0, earliest))

    def units(self, raw: int, ahead: int, units: list[Any], rows: int, following: tuple[Any, int]) -> int:
        """Residual units of what is in `raw`, and its Snake in `ahead`; returns the input of what follows: a Snake and
        its context."""
        plan = self.plan
        for index, unit in enumerate(units):
            _, dilated, snake, last = unit.block
            width = last.conv.out_channels
            middle = plan.buffer("mid", rows, width)
            conv, tile = dilated.conv, self._unit_tile(unit, rows)
            self.convolve(
                ahead, conv.weight, conv.bias, activated=middle, snake=snake, dilation=conv.dilation[0], tile=tile
            )
            if index + 1 < len(units):
                after, ahead = units[index + 1].block[0], self.before(units[index + 1], rows)
            else:
                after, ahead = following[0], self.ahead(rows, width, following[1])
            self.convolve(
                middle, last.conv.weight, last.conv.bias, output=raw, activated=ahead, snake=after, is_added=True
            )
        return ahead

    def around_block(self, rows: int, block: Any, later: int = 0, stride: int = 1) -> tuple[int, int]:
        """Buffers for the input and the output of a ConvNeXt block, of which the next layer reads the output.

        They are the same rows, before and after the block's output is added, with different rows before them.
        ``later``, ``stride``: the next layer's context and stride.
        """
        width, context = block.pwconv1.in_features, max(block.dwconv.context, later)
        context += -context % stride
        raw = self.raw(rows, width, context)
        return raw, self.plan.buffer(self.plan.places[raw], rows, width, context)

    def add_block(self, raw: int, result: int, block: Any) -> None:
        """A ConvNeXt block."""
        plan, rows, width = self.plan, self.plan.buffers[raw].rows, block.pwconv1.in_features
        normed = plan.buffer("mid", rows, width)
        dw = block.dwconv.conv
        plan.layers.append(
            ConvolutionFields(
                kind=_DEPTHWISE, input=raw, output=-1, activated=normed, taps=TAPS, dilation=1, inputs=width,
                outputs=padded(width), weights=plan.pointer(dw.weight[:, 0].t()), bias=plan.pointer(dw.bias),
            )
        )  # fmt: skip
        first, second = block.pwconv1, block.pwconv2
        wide = plan.buffer("wide", rows, first.out_features)
        weight, bias = first.weight * block.norm.weight, first.bias + first.weight @ block.norm.bias
        self.convolve(normed, weight[..., None], bias, activated=wide, activation=GELU)
        weight, bias = second.weight * block.gamma[:, None], second.bias * block.gamma
        self.convolve(wide, weight[..., None], bias, output=result, is_added=True)

    def _unit_tile(self, unit: Any, rows: int) -> int:
        conv = unit.block[1].conv
        return self._tile(rows, conv.in_channels, TAPS, conv.dilation[0])

    def _tile(self, rows: int, channels: int, taps: int, dilation: int) -> int:
        """Rows of a Winograd tile for frames of this many rows; 0: no tiles."""
        if channels % PANEL:
            return 0
        if self.plan.decodes and rows >= _MANY_ROWS:
            return {2: 3, TAPS: 8}.get(taps, 0)
        return 4 if taps == TAPS and rows >= 2 * dilation else 0

    def _fields(
        self, kind: int, x: int, bias: Tensor, outputs: int, output: int, activated: int, snake: Any | None,
        repeats: int = 1,
    ) -> ConvolutionFields:  # fmt: skip
        plan, width = self.plan, padded(outputs)
        full = torch.zeros(width)
        full[:outputs] = bias
        fields = ConvolutionFields(kind=kind, input=x, output=output, activated=activated, outputs=width)
        fields.bias = plan.pointer(full)
        if snake is not None:
            alpha, inverse = torch.ones(2, repeats, width // repeats)
            alpha[:, : snake.alpha.shape[1]], inverse[:, : snake.alpha.shape[1]] = (
                part.flatten() for part in (snake.alpha, snake.inverse)
            )
            fields.activation, fields.alpha, fields.inverse = _SNAKE, plan.pointer(alpha), plan.pointer(inverse)
        return fields


def _starts(rows: int, dilation: int, tile: int) -> np.ndarray:
    """The Winograd tiles of a frame, each as its first row and the first of its outputs that is stored."""
    starts = []
    for phase in range(min(dilation, rows)):
        count = -(-(rows - phase) // dilation)
        starts += [(phase + at * dilation, 0) for at in range(0, count - tile + 1, tile)]
        if left := count % tile:  # a last tile that ends with the frame
            starts.append((phase + (count - tile) * dilation, tile - left))
    return np.array(sorted(starts), np.int32)  # a thread's tiles then are of the rows that it wrote before
