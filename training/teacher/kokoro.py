"""The teacher: Kokoro-82M's published int8 ONNX graph, converted to float32 and run in plain torch on a CPU or a GPU.

    python -m training.teacher.kokoro KOKORO.onnx OUT.pt

converts the graph once; `Kokoro(OUT.pt, device)` speaks. The packages that contain the graph are listed in
training/README.md. The graph's own names are kept; integers that only define shapes stay on the CPU.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from training.teacher.kokoro_graph import Node, read_graph

SAMPLE_RATE = 24000
LENGTHS = "/encoder/Clip_output_0"
"""The node that returns each token's duration in units of 600 samples."""
_ANGLE = "/decoder/decoder/generator/Greater"
_PITCH = "/encoder/F0_proj/Conv_output_0"
"""The pitch in hertz from which the teacher generates its harmonics."""
_RATIO = "/decoder/decoder/generator/Div"
MIXED = {
    "Add", "And", "Concat", "Div", "Equal", "Greater", "GreaterOrEqual", "Less", "MatMul", "Mul", "Pow", "Sub", "Where",
}  # fmt: skip
"""Operations whose inputs may be on two devices: constants that define shapes stay on the CPU."""
_TYPES = {1: torch.float32, 6: torch.int32, 7: torch.int64, 9: torch.bool, 10: torch.float16, 11: torch.float64}


@dataclass(frozen=True, eq=False, slots=True)
class Spoken:
    """audio (samples,) float32 at 24 kHz on the CPU, and each token's duration in units of 600 samples."""

    audio: np.ndarray
    lengths: np.ndarray


class Kokoro:
    """The graph, its weights on a device, and one method: `speak`."""

    def __init__(self, path: Path, device: torch.device) -> None:
        saved = torch.load(path, map_location="cpu", weights_only=False, mmap=True)
        self.device = device
        self.nodes: list[Node] = [Node(*fields) for fields in saved["nodes"]]
        self.weights: dict[str, Tensor] = {
            name: value.to(device) if value.dtype == torch.float32 or value.dim() >= 2 else value
            for name, value in saved["weights"].items()
        }
        self._lstms: dict[str, nn.LSTM] = {}
        self._last_used = self._find_last_uses()

    def _find_last_uses(self) -> list[list[str]]:
        last = {name: index for index, node in enumerate(self.nodes) for name in node.inputs}
        uses: list[list[str]] = [[] for _ in self.nodes]
        for name, index in last.items():
            if name and name not in self.weights:
                uses[index].append(name)
        return uses

    @torch.inference_mode()
    def speak(self, tokens: np.ndarray, style: np.ndarray, speed: float = 1.0, pitch: float = 1.0) -> Spoken:
        """Speak tokens (n,), without padding, in a style (256,); speed 2 is twice as fast, pitch 2 an octave up."""
        values: dict[str, Any] = {
            "tokens": torch.tensor([[0, *tokens.tolist(), 0]]),
            "style": torch.from_numpy(style.astype(np.float32))[None].to(self.device),
            "speed": torch.tensor([speed], dtype=torch.float32, device=self.device),
        }
        constants: dict[str, np.ndarray] = {}
        for node, done in zip(self.nodes, self._last_used, strict=True):
            inputs = [(values.get(n) if n in values else self.weights[n]) if n else None for n in node.inputs]
            outputs = self._run(node, inputs)
            values.update(zip(node.outputs, outputs, strict=False))
            if node.outputs[0] == _PITCH:
                values[_PITCH] = values[_PITCH] * pitch
            if node.outputs[0] in (LENGTHS, "audio"):
                constants[node.outputs[0]] = values[node.outputs[0]].reshape(-1).cpu().numpy()
            for name in done:
                values.pop(name, None)
        return Spoken(constants["audio"].astype(np.float32), constants[LENGTHS].astype(np.int64))

    def _run(self, node: Node, x: list[Any]) -> tuple[Tensor, ...]:
        if node.kind == "LSTM":
            return (self._lstm(node, x),)
        if node.kind in MIXED:
            x = self._on_one_device(x)
        y = OPERATORS[node.kind](node, x, self.device)
        if node.name == _RATIO:
            y = y.nan_to_num(nan=0.0)  # 0/0 if the harmonic source is silent
        return y if isinstance(y, tuple) else (y,)

    def _on_one_device(self, x: list[Any]) -> list[Any]:
        if len({tensor.device for tensor in x}) > 1:
            return [tensor.to(self.device) for tensor in x]
        return x

    def _lstm(self, node: Node, x: list[Any]) -> Tensor:
        """ONNX orders gates input, output, forget, cell; torch input, forget, cell, output."""
        hidden = int(node.attributes["hidden_size"])
        sequence, weight, recurrent, bias = x[:4]
        if node.name not in self._lstms:
            order = torch.cat([torch.arange(hidden) + part * hidden for part in (0, 2, 3, 1)])
            lstm = nn.LSTM(sequence.shape[-1], hidden, bidirectional=weight.shape[0] == 2).to(self.device)
            state = {}
            for direction in range(weight.shape[0]):
                suffix = "l0_reverse" if direction else "l0"
                state[f"weight_ih_{suffix}"] = weight[direction][order.to(weight.device)]
                state[f"weight_hh_{suffix}"] = recurrent[direction][order.to(weight.device)]
                state[f"bias_ih_{suffix}"] = bias[direction][: 4 * hidden][order.to(bias.device)]
                state[f"bias_hh_{suffix}"] = bias[direction][4 * hidden :][order.to(bias.device)]
            lstm.load_state_dict(state)
            self._lstms[node.name] = lstm.eval()
        y, _ = self._lstms[node.name](sequence)
        steps, rows, _ = y.shape
        return y.view(steps, rows, weight.shape[0], hidden).permute(0, 2, 1, 3)


def _integers(x: Tensor) -> list[int]:
    return [int(v) for v in x.reshape(-1).tolist()]


def _unsqueeze(node: Node, x: list[Any], device: torch.device) -> Tensor:
    y = x[0]
    for axis in sorted(_integers(x[1])):
        y = y.unsqueeze(axis)
    return y


def _squeeze(node: Node, x: list[Any], device: torch.device) -> Tensor:
    if len(x) < 2 or x[1] is None:
        return x[0].squeeze()
    y = x[0]
    for axis in sorted((axis % y.dim() for axis in _integers(x[1])), reverse=True):
        y = y.squeeze(axis)
    return y


def _gather(node: Node, x: list[Any], device: torch.device) -> Tensor:
    axis, data, index = node.attributes.get("axis", 0) % x[0].dim(), x[0], x[1].to(x[0].device)
    if index.dim() == 0:
        return data.select(axis, int(index))
    index = torch.where(index < 0, index + data.shape[axis], index)
    shape = data.shape[:axis] + index.shape + data.shape[axis + 1 :]
    return data.index_select(axis, index.reshape(-1)).reshape(shape)


def _reduce(over: Callable[..., Tensor]) -> Callable[[Node, list[Any], torch.device], Tensor]:
    def run(node: Node, x: list[Any], device: torch.device) -> Tensor:
        axes = node.attributes.get("axes") or (_integers(x[1]) if len(x) > 1 else None)
        return over(x[0], dim=axes, keepdim=bool(node.attributes.get("keepdims", 1)))

    return run


def _pow(node: Node, x: list[Any], device: torch.device) -> Tensor:
    return x[0] * x[0] if x[1].numel() == 1 and x[1].device.type == "cpu" and float(x[1]) == 2 else x[0] ** x[1]


def _greater(node: Node, x: list[Any], device: torch.device) -> Tensor:
    # A negative real number's phase is +π in torch.angle; the graph gives −π, which its STFT's rounding hides.
    return x[0] >= x[1] if node.name == _ANGLE else x[0] > x[1]


def _divide(node: Node, x: list[Any], device: torch.device) -> Tensor:
    return x[0] / x[1] if x[0].is_floating_point() else torch.div(x[0], x[1], rounding_mode="trunc")


def _clip(node: Node, x: list[Any], device: torch.device) -> Tensor:
    low, high = (float(x[i]) if len(x) > i and x[i] is not None else None for i in (1, 2))
    return x[0].clamp(low, high)


def _fused_matmul(node: Node, x: list[Any], device: torch.device) -> Tensor:
    a = x[0].mT if node.attributes.get("transA") else x[0]
    b = x[1].mT if node.attributes.get("transB") else x[1]
    return a @ b * node.attributes.get("alpha", 1.0)


def _layer_norm(node: Node, x: list[Any], device: torch.device) -> Tensor:
    return F.layer_norm(x[0], x[1].shape, x[1], x[2], node.attributes.get("epsilon", 1e-5))


def _skip_layer_norm(node: Node, x: list[Any], device: torch.device) -> Tensor:
    total = x[0] + x[1] + (x[4] if len(x) > 4 and x[4] is not None else 0)
    return F.layer_norm(total, x[2].shape, x[2], x[3], node.attributes.get("epsilon", 1e-12))


def _conv(node: Node, x: list[Any], device: torch.device) -> Tensor:
    at = node.attributes
    left, right = at.get("pads", [0, 0])
    padded = F.pad(x[0], (left, right)) if left != right else x[0]
    bias = x[2] if len(x) > 2 else None
    return F.conv1d(
        padded,
        x[1],
        bias,
        at.get("strides", [1]),
        left if left == right else 0,
        at.get("dilations", [1]),
        at.get("group", 1),
    )


def _conv_transpose(node: Node, x: list[Any], device: torch.device) -> Tensor:
    at = node.attributes
    return F.conv_transpose1d(
        x[0], x[1], x[2] if len(x) > 2 else None, at.get("strides", [1]), at.get("pads", [0])[0],
        at.get("output_padding", [0])[0], at.get("group", 1), at.get("dilations", [1]),
    )  # fmt: skip


def _split(node: Node, x: list[Any], device: torch.device) -> tuple[Tensor, ...]:
    sizes = (
        _integers(x[1])
        if len(x) > 1 and x[1] is not None
        else x[0].shape[node.attributes.get("axis", 0)] // len(node.outputs)
    )
    return torch.split(x[0], sizes, node.attributes.get("axis", 0))


def _reshape(node: Node, x: list[Any], device: torch.device) -> Tensor:
    return x[0].reshape([x[0].shape[i] if size == 0 else size for i, size in enumerate(_integers(x[1]))])


def _slice(node: Node, x: list[Any], device: torch.device) -> Tensor:
    starts, ends = _integers(x[1]), _integers(x[2])
    axes = _integers(x[3]) if len(x) > 3 and x[3] is not None else list(range(len(starts)))
    steps = _integers(x[4]) if len(x) > 4 and x[4] is not None else [1] * len(starts)
    y = x[0]
    for start, end, axis, step in zip(starts, ends, axes, steps, strict=True):
        picked = [slice(None)] * y.dim()
        picked[axis] = slice(start, end, step)
        y = y[tuple(picked)]
    return y


def _cast(node: Node, x: list[Any], device: torch.device) -> Tensor:
    wanted = _TYPES[node.attributes["to"]]
    y = x[0].to(wanted)
    if wanted == torch.int64 and y.dim() < 1:
        return y.cpu()
    return y.to(device) if wanted == torch.float32 and y.dim() > 0 else y


def _constant_of_shape(node: Node, x: list[Any], device: torch.device) -> Tensor:
    value = torch.as_tensor(node.attributes["value"])
    place = device if value.dtype == torch.float32 else torch.device("cpu")
    return torch.full(_integers(x[0]), value.reshape(-1)[0].item(), dtype=value.dtype, device=place)


def _resize(node: Node, x: list[Any], device: torch.device) -> Tensor:
    scale = float(x[2].tolist()[2])
    if node.attributes["mode"] == "nearest" and scale == int(scale):
        return x[0].repeat_interleave(int(scale), dim=2)
    mode = node.attributes["mode"]
    options = {} if mode == "nearest" else {"align_corners": False}
    return F.interpolate(x[0], scale_factor=scale, mode=mode, recompute_scale_factor=False, **options)


def _expand(node: Node, x: list[Any], device: torch.device) -> Tensor:
    return x[0].expand(torch.broadcast_shapes(x[0].shape, tuple(_integers(x[1]))))


def _pad(node: Node, x: list[Any], device: torch.device) -> Tensor:
    pads = _integers(x[1])
    half = len(pads) // 2
    pairs = [side for axis in reversed(range(half)) for side in (pads[axis], pads[axis + half])]
    if node.attributes.get("mode") != "reflect":
        return F.pad(x[0], pairs)
    rows = x[0].unsqueeze(0) if x[0].dim() < 2 else x[0]
    return F.pad(rows, pairs[:2], mode="reflect").reshape((*x[0].shape[:-1], -1))


def _stft(node: Node, x: list[Any], device: torch.device) -> Tensor:
    signal = x[0].squeeze(-1) if x[0].dim() == 3 else x[0]
    window = x[2].to(device) if x[2] is not None else None
    size = int(x[3]) if x[3] is not None else x[2].shape[0]
    spectrum = torch.stft(
        signal,
        size,
        int(x[1]),
        size,
        window,
        center=False,
        onesided=bool(node.attributes.get("onesided", 1)),
        return_complex=True,
    )
    return torch.view_as_real(spectrum).permute(0, 2, 1, 3)


def _scatter(node: Node, x: list[Any], device: torch.device) -> Tensor:
    y, index = x[0].clone(), x[1].to(x[0].device)
    y[tuple(index[..., axis] for axis in range(index.shape[-1]))] = x[2].to(y.device)
    return y


OPERATORS: dict[str, Callable[[Node, list[Any], torch.device], Any]] = {
    "Add": lambda node, x, device: x[0] + x[1],
    "And": lambda node, x, device: x[0] & x[1],
    "Atan": lambda node, x, device: x[0].atan(),
    "Cast": _cast,
    "Clip": _clip,
    "Concat": lambda node, x, device: torch.cat(x, node.attributes["axis"]),
    "ConstantOfShape": _constant_of_shape,
    "Conv": _conv,
    "ConvTranspose": _conv_transpose,
    "Cos": lambda node, x, device: x[0].cos(),
    "CumSum": lambda node, x, device: x[0].cumsum(int(x[1])),
    "DequantizeLinear": lambda node, x, device: (
        (x[0].float() - x[2].float().to(x[0].device)) * x[1].to(x[0].device)
    ).to(device),
    "Div": _divide,
    "Equal": lambda node, x, device: x[0] == x[1],
    "Exp": lambda node, x, device: x[0].exp(),
    "Expand": _expand,
    "FastGelu": lambda node, x, device: F.gelu(x[0] + (x[1] if len(x) > 1 else 0), approximate="tanh"),
    "Floor": lambda node, x, device: x[0].floor(),
    "FusedMatMul": _fused_matmul,
    "Gather": _gather,
    "Greater": _greater,
    "GreaterOrEqual": lambda node, x, device: x[0] >= x[1],
    "LayerNormalization": _layer_norm,
    "LeakyRelu": lambda node, x, device: F.leaky_relu(x[0], node.attributes.get("alpha", 0.01)),
    "Less": lambda node, x, device: x[0] < x[1],
    "MatMul": lambda node, x, device: x[0] @ x[1],
    "Mul": lambda node, x, device: x[0] * x[1],
    "NonZero": lambda node, x, device: torch.nonzero(x[0]).T,
    "Pad": _pad,
    "Pow": _pow,
    "Range": lambda node, x, device: torch.arange(int(x[0]), int(x[1]), int(x[2])),
    "ReduceMean": _reduce(torch.mean),
    "ReduceSum": _reduce(torch.sum),
    "Reshape": _reshape,
    "Resize": _resize,
    "Round": lambda node, x, device: x[0].round(),
    "STFT": _stft,
    "ScatterND": _scatter,
    "Shape": lambda node, x, device: torch.tensor(x[0].shape),
    "Sigmoid": lambda node, x, device: x[0].sigmoid(),
    "Sin": lambda node, x, device: x[0].sin(),
    "SkipLayerNormalization": _skip_layer_norm,
    "Slice": _slice,
    "Softmax": lambda node, x, device: x[0].softmax(node.attributes.get("axis", -1)),
    "Split": _split,
    "Sqrt": lambda node, x, device: x[0].sqrt(),
    "Squeeze": _squeeze,
    "Sub": lambda node, x, device: x[0] - x[1],
    "Tanh": lambda node, x, device: x[0].tanh(),
    "Transpose": lambda node, x, device: x[0].permute(node.attributes["perm"]) if "perm" in node.attributes else x[0].T,
    "Unsqueeze": _unsqueeze,
    "Where": lambda node, x, device: torch.where(*x),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("onnx", type=Path, help="kokoro-v1.0.int8.onnx")
    parser.add_argument("out", type=Path)
    arguments = parser.parse_args()
    nodes, weights = read_graph(arguments.onnx)
    torch.save({"nodes": [tuple(node) for node in nodes], "weights": weights}, arguments.out)
    print(f"{len(nodes)} operations, {sum(w.numel() for w in weights.values()) / 1e6:.1f} M parameters")


if __name__ == "__main__":
    main()
