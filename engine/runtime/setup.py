"""Assembles an engine from an EngineConfig: devices, memory, checkpoint, and the fastest path that runs here."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import torch

from engine import checkpoint as checkpoints
from engine.checkpoint import Checkpoint, Source
from engine.codec import ONLY_ENCODES, Codec, CodecConfig, Precision, part_on
from engine.config import EngineConfig, ModelConfig, TwelveBits
from engine.cores import default_threads
from engine.engine_errors import ConfigError
from engine.model_card import ModelCard
from engine.runtime.clip_encoder import AT_ONCE, ClipEncoder, Encode
from engine.runtime.codec_streams import CodecStreams, GraphStreams, PlainStreams
from engine.runtime.graphs import COMPACT_PREFILL_SIZES, PREFILL_SIZES, ClipGraphs, GraphSet, capture, capture_missing
from engine.runtime.loop import Loop
from engine.runtime.memory import release_memory
from engine.runtime.memory_plan import (
    GIB,
    EngineSize,
    MemoryPlan,
    largest,
    plan_memory,
    prefix_cache_bytes,
    sizes,
    weights_on_cpu,
)
from engine.runtime.runner import Runner
from engine.transfer import reserve
from engine.types import EngineInfo, Gpu

if TYPE_CHECKING:
    from engine.kernels.compilation.processes import CachedKernels

Progress = Callable[[str, float], None]
"""Called with the current step and its progress, 0 to 1, while the engine starts."""

_DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}


@dataclass(frozen=True, slots=True)
class _Plan:
    """The result of applying a config to this machine."""

    source: Source
    device: torch.device
    codec_device: torch.device
    dtype: torch.dtype
    size: EngineSize
    fallback_reason: str | None
    """Why the fused kernels are not used; None if they are."""
    kernel: bool
    """Whether attention reads the KV cache through its kernel."""
    precision: Precision | None
    """Precision of the codec's fused decoder; None where plain torch decodes."""
    twelve_bits: TwelveBits
    memory: MemoryPlan
    kernel_settings: str
    """Everything that determines the set of kernels, beside the GPU."""


@dataclass(frozen=True, slots=True)
class Place:
    """The device on which an engine with this config would run on this machine, with any model."""

    device: torch.device
    codec_device: torch.device
    dtype: torch.dtype
    fallback_reason: str | None
    """Why the fused kernels are not used; None when they are."""


def place_of(config: EngineConfig) -> Place:
    """Raises ConfigError for a device that this machine lacks."""
    device = _device(config.device)
    codec_device = _device(config.codec_device) if config.codec_device else device
    return Place(device, codec_device, _dtype(config.dtype, device), _missing_kernels(device, config))


class Sizing:
    """The sizes that an engine of a model may have at a place, and what each needs."""

    def __init__(self, config: EngineConfig, place: Place, model: ModelConfig, codec: CodecConfig) -> None:
        is_fused = place.fallback_reason is None and place.codec_device.type == "cuda" and codec.timbre is None
        self.precision: Precision | None = (config.codec_dtype or "tf32") if is_fused else None
        """Of the codec's fused decoder; None where plain torch decodes."""
        self._config, self._place, self._model, self._codec = config, place, model, codec
        on_gpu = place.device.type == "cuda"
        compact = is_fused and not any(codec.encoder_transformer_layers[:-1])  # as `FusedEncoder` reads
        rows = config.rows_on(place.device.type)
        weights = config.weights
        if weights is None and place.device.type == "cpu" and place.dtype == torch.float32:
            weights = weights_on_cpu(model, codec)
        self._tries = sizes(config.max_rows, config.max_context, weights, rows, model.max_context, on_gpu, compact)

    def plan(self, size: EngineSize, twelve_bits: TwelveBits = "none") -> MemoryPlan:
        place, prefix_bytes = self._place, self._config.prefix_bytes
        arguments = self._model, self._codec, place.dtype, size, prefix_bytes, self.precision
        return plan_memory(*arguments, twelve_bits, on_gpu=place.device.type == "cuda")

    def largest(self, budget: int | None) -> tuple[EngineSize, MemoryPlan]:
        """The best size within a budget, in bytes, and its plan. Raises ConfigError."""
        config = self._config
        is_set = bool(config.max_rows and config.max_context) or self._place.device.type == "cpu"
        return largest(self._tries, self.plan, budget, is_set)

    def smallest(self) -> tuple[EngineSize, MemoryPlan]:
        """The size that needs the least memory, and its plan."""
        size = self._tries[-1]
        return size, self.plan(size)


Assembled = tuple[Checkpoint, EngineInfo, Loop, ClipEncoder, Iterator[int]]


def assemble(config: EngineConfig, report: Progress) -> Assembled:
    """Load the config's checkpoint; the loop is not started yet. Raises CheckpointError, ConfigError.

    The last item makes the engine faster; run it once the engine is ready: see `Loop.run_in_gaps`. A plan leaves out
    the memory of the allocator, the driver and other programs; if the GPU's memory runs out, the next smaller size is
    loaded.
    """
    plan = _plan(config, report)
    while True:
        try:
            return _load(config, plan, report)
        except torch.OutOfMemoryError:
            pass
        release_memory()  # here, because the exception refers to the loaded tensors
        failed_plan = plan.memory
        config = replace(config, memory_bytes=failed_plan.total - 1)
        try:
            plan = _plan(config, report)
        except ConfigError:
            raise ConfigError(
                f"the GPU's memory ran out, although this plan fitted: {failed_plan}; "
                "close other programs that use the GPU, or lower max_rows or max_context"
            ) from None
        report(f"memory ran out, loading again with {plan.memory.total / GIB:.1f} GiB", 0.0)


def _load(config: EngineConfig, plan: _Plan, report: Progress) -> Assembled:
    card = plan.source.card()
    report(f"memory: {plan.memory}", 0.0)
    with _cached_kernels(plan) as kernels:  # the compiler processes start while weights load
        codec_device = torch.device("cpu") if plan.size.compact else plan.codec_device
        text_device = torch.device("cpu") if plan.size.text_on_host else plan.device
        path, weights = plan.source.path, plan.size.weights
        checkpoint = checkpoints.load(path, plan.device, codec_device, plan.dtype, report, weights, text_device)
        codec, prefix_bytes = checkpoint.codec, prefix_cache_bytes(config.prefix_bytes, plan.size)
        runner = Runner(checkpoint.model, plan.size.rows, plan.size.context, prefix_bytes, repeats=config.reproducible)
        sets: list[GraphSet[Any]] = []
        if plan.fallback_reason is None:
            prefills = COMPACT_PREFILL_SIZES if plan.size.compact else PREFILL_SIZES
            sets += runner.use_graphs(plan.kernel, config.reproducible, plan.twelve_bits, prefills)
        streams = _streams(codec, plan, config.codec_dtype or "float32")
        encode = _encode(codec, plan)
        sets += streams.graphs if isinstance(streams, GraphStreams) else []
        sets += [encode] if isinstance(encode, ClipGraphs) else []
        if kernels and sets:
            report("looking kernels up" if kernels.are_complete else "compiling kernels", 0.0)
            # A reproducible take must not depend on when it is generated either, and an encoder on demand frees
            # memory, which is impossible during a capture.
            all_first = config.reproducible or plan.size.compact
            progress = functools.partial(report, "capturing graphs")
            capture(*sets, progress=progress, kernels=kernels, only_first=not all_first)
    info = _info(config, plan, checkpoint, card)
    is_exact = config.reproducible or plan.device.type == "cpu"
    frame_seconds = None if is_exact else 1 / info.frame_rate
    loop = Loop(runner, streams, plan.codec_device, plan.size.rows, info.max_waiting, frame_seconds)
    is_fused = isinstance(encode, ClipGraphs)  # plain torch is not faster if clips are encoded together
    read_timbre = None if codec.timbre is None else codec.timbre.encoder
    clip_encoder = ClipEncoder(
        encode, codec.config, plan.codec_device, AT_ONCE if is_fused else 1, lambda: loop.stop_reason, read_timbre
    )
    if is_fused:
        clip_encoder.prepare().result()
    if plan.precision is not None:
        longest = max(GraphStreams.FRAMES) * codec.config.frame_samples
        reserve(plan.size.rows * longest * 4)  # one decode of all rows, in float32
    return checkpoint, info, loop, clip_encoder, _missing_graphs(sets, clip_encoder if is_fused else None)


def _missing_graphs(sets: Sequence[GraphSet[Any]], clip_encoder: ClipEncoder | None) -> Iterator[int]:
    """Capture missing graphs, one per step, and then free the memory of their trial runs."""
    yield from capture_missing(*sets)
    if sets:
        torch.cuda.empty_cache()
    if clip_encoder:
        clip_encoder.prepare()  # its reserve was freed too


def _plan(config: EngineConfig, report: Progress) -> _Plan:
    place = place_of(config)
    device, fallback_reason = place.device, place.fallback_reason
    _set_up_torch(device, config.threads)
    report("finding the checkpoint", 0.0)
    source = checkpoints.open_source(checkpoints.find(config.model))
    kernel = fallback_reason is None and config.kv_attention != "off"
    model, codec = source.config, source.codec_config
    _check(config, device, place.codec_device, fallback_reason, kernel)
    if config.codec_dtype == "tf32" and codec.timbre is not None:
        raise ConfigError("codec_dtype tf32 needs CUDA graphs, and a codec with a timbre vector has none; set float32")
    if config.max_context and config.max_context > model.max_context:
        raise ConfigError(f"max_context {config.max_context} is more than the checkpoint's {model.max_context}")
    sizing = Sizing(config, place, model, codec)
    size, memory = sizing.largest(_budget(config, device))
    twelve_bits: TwelveBits = "none"
    for copies in _twelve_bits(config, place.dtype, fallback_reason, size):
        if (larger_plan := sizing.plan(size, copies)).fits(_budget(config, device), spare=GIB):
            twelve_bits, memory = copies, larger_plan
    precision = sizing.precision
    settings = model.family, model, codec, place.dtype, size, kernel, precision, twelve_bits, config.reproducible
    return _Plan(
        source,
        device,
        place.codec_device,
        place.dtype,
        size,
        fallback_reason,
        kernel,
        precision,
        twelve_bits,
        memory,
        repr(settings),
    )


def _info(config: EngineConfig, plan: _Plan, checkpoint: Checkpoint, card: ModelCard) -> EngineInfo:
    codec, fallback_reason = checkpoint.codec.config, plan.fallback_reason
    return EngineInfo(
        model=config.model,
        device=str(plan.device),
        dtype=str(plan.dtype).removeprefix("torch."),
        sample_rate=codec.sample_rate,
        frame_samples=codec.frame_samples,
        num_codebooks=codec.num_codebooks,
        max_context=plan.size.context,
        max_rows=plan.size.rows,
        max_waiting=config.max_waiting,
        codec_fingerprint=checkpoint.codec_fingerprint.result(),
        parameters=checkpoint.parameters,
        fingerprint=checkpoint.fingerprint,
        weights=plan.size.weights,
        memory=str(plan.memory),
        memory_bytes=plan.memory.total,
        frame_path="CUDA graphs over fused kernels" if fallback_reason is None else f"plain torch ({fallback_reason})",
        kv_attention="on" if plan.kernel else f"off: {fallback_reason or 'switched off'}",
        card=card,
        family=checkpoint.config.family,
        gpu=_gpu(plan.device),
        timbre_dim=None if codec.timbre is None else codec.timbre.dim,
    )


@contextmanager
def _cached_kernels(plan: _Plan) -> Iterator[CachedKernels | None]:
    """The kernels in Triton's cache; None if none are used."""
    if plan.fallback_reason is not None:
        yield None
        return
    from engine.kernels.compilation.processes import cached_kernels  # imported only here because it needs Triton

    with torch.cuda.device(plan.device), cached_kernels(plan.kernel_settings) as kernels:
        yield kernels


def _check(
    config: EngineConfig, device: torch.device, codec_device: torch.device, fallback_reason: str | None, kernel: bool
) -> None:
    """Raise ConfigError if the config requires what this machine lacks.

    fallback_reason: why there are no fused kernels.
    """
    if config.kv_attention == "required" and not kernel:
        raise ConfigError(f"the KV-cache attention kernel is required, but cannot be used: {fallback_reason}")
    if config.reproducible and device.type == "cuda" and not kernel:
        reason = fallback_reason or "it is switched off"
        raise ConfigError(f"reproducible takes need the KV-cache attention kernel: {reason}")
    if config.codec_dtype == "tf32" and (fallback_reason is not None or codec_device.type != "cuda"):
        reason = fallback_reason or f"the codec is on {codec_device}"
        raise ConfigError(f"codec_dtype tf32 needs CUDA graphs: {reason}")


def _twelve_bits(
    config: EngineConfig, dtype: torch.dtype, fallback_reason: str | None, size: EngineSize
) -> tuple[TwelveBits, ...]:
    """The ways to copy weights in twelve bits, memory permitting, each with more copies than the previous one."""
    if not config.twelve_bits or dtype != torch.bfloat16 or fallback_reason is not None or config.reproducible:
        return ()
    if size.weights != "bf16":
        return ()
    return ("words", "tiles") if size.rows > 2 else ("words",)


def _streams(codec: Codec, plan: _Plan, precision: Precision) -> CodecStreams:
    """The codec's decoder. The fused one copies the weights and frees the plain one's."""
    if plan.precision is None:
        return PlainStreams(codec, precision)
    from engine.codec.fused.decoder import FusedDecoder  # imported only here because it needs Triton

    part = part_on(codec, plan.codec_device, without=ONLY_ENCODES) if plan.size.compact else codec
    decoder = FusedDecoder(part, plan.size.rows, plan.precision, max(GraphStreams.FRAMES))
    codec.forget_decoder()
    return GraphStreams(decoder, plan.size.rows)


def _encode(codec: Codec, plan: _Plan) -> Encode | ClipGraphs:
    """The codec's encoder: fused kernels, or plain torch."""
    if plan.precision is not None:
        from engine.codec.fused.encoder import FusedEncoder  # imported only here because it needs Triton
        from engine.codec.fused.on_demand import OnDemandEncoder

        if plan.size.compact:
            return OnDemandEncoder(codec, plan.memory.on_demand)
        if FusedEncoder.reads(codec):
            encoder = FusedEncoder(codec, AT_ONCE)
            torch.cuda.empty_cache()  # memory freed by converting weights
            return ClipGraphs(encoder, codec.config.frame_samples, plan.codec_device)
    return codec.encode


def _budget(config: EngineConfig, device: torch.device) -> int | None:
    """Bytes that the engine may use: as set, else the GPU's free memory; None: unknown."""
    if config.memory_bytes is None and device.type == "cuda":
        return torch.cuda.mem_get_info(device)[0]
    return config.memory_bytes


def _gpu(device: torch.device) -> Gpu | None:
    if not torch.cuda.is_available():
        return None
    properties = torch.cuda.get_device_properties(device if device.type == "cuda" else 0)
    return Gpu(properties.name, properties.total_memory)


def _set_up_torch(device: torch.device, threads: int | None) -> None:
    """Process-wide settings of torch.

    On a CPU the engine's and the codec's threads work side by side, so each gets half of the cores: on two cores
    that is 30 % faster than two threads for both. Convolutions keep float32: TF32 would change a reference's codes.
    """
    if threads or device.type == "cpu":
        torch.set_num_threads(threads or default_threads())
    torch.backends.cudnn.allow_tf32 = False


def _missing_kernels(device: torch.device, config: EngineConfig) -> str | None:
    """Why the fused kernels are not used; None if they are."""
    if not config.graphs:
        return "graphs are switched off"
    if device.type != "cuda":
        return f"it needs a CUDA device, not {device.type}"
    if torch.version.hip is not None:  # whose compute capabilities look like NVIDIA's
        return "its kernels are for NVIDIA's GPUs, and this torch is for AMD's"
    if torch.cuda.get_device_capability(device) < (8, 0):
        return f"{torch.cuda.get_device_name(device)} is older than compute capability 8.0"
    try:
        import triton  # noqa: F401
    except ImportError as error:
        return f"Triton cannot be loaded: {error}"
    return None


def _device(name: str | None) -> torch.device:
    if name is None:
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
        torch.empty(1, device=device)
    except (RuntimeError, AssertionError) as error:
        raise ConfigError(f"device {name!r} cannot be used here: {error}") from error
    return device


def _dtype(name: str | None, device: torch.device) -> torch.dtype:
    if name is None:
        return torch.float32 if device.type == "cpu" else torch.bfloat16
    if name not in _DTYPES:
        raise ConfigError(f"dtype {name!r} is not one of {', '.join(_DTYPES)}")
    return _DTYPES[name]
