"""From an EngineConfig to an engine's parts: devices, memory, checkpoint, and the fastest path that runs here."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial

import torch

from engine import checkpoint as checkpoints
from engine.card import ModelCard
from engine.checkpoint import Checkpoint
from engine.codec import Codec, CodecConfig, Precision
from engine.config import EngineConfig, ModelConfig, Weights
from engine.errors import ConfigError
from engine.runtime.clip_encoder import AT_ONCE, ClipEncoder
from engine.runtime.codec_streams import CodecStreams, GraphStreams, PlainStreams
from engine.runtime.graphs import ClipGraphs
from engine.runtime.loop import Loop
from engine.runtime.memory_plan import GIB, plan_memory
from engine.runtime.runner import Runner
from engine.types import EngineInfo, Gpu

Progress = Callable[[str, float], None]
"""Called with what is being done and how far it is, 0 to 1, while the engine starts."""

DEFAULT_MAX_CONTEXT = 4096
_DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}


def assemble(config: EngineConfig, tell: Progress) -> tuple[Checkpoint, EngineInfo, Loop, ClipEncoder]:
    """Load what the config names; the loop is not started yet. Raises CheckpointError, ConfigError."""
    device = _device(config.device)
    codec_device = _device(config.codec_device) if config.codec_device else device
    _set_up_torch(device, config.threads)
    dtype = _dtype(config.dtype, device)
    tell("finding the checkpoint", 0.0)
    folder = checkpoints.find(config.model)
    missing = _missing_kernels(device, config)
    kernel = missing is None and config.kv_attention != "off"
    _check(config, device, codec_device, missing, kernel)
    rows = config.rows_on(device.type)
    sizes = ModelConfig.read(folder)
    context = _context(config, sizes)
    precision = config.codec_dtype if missing is None and codec_device.type == "cuda" else None
    plan = partial(
        plan_memory, sizes, CodecConfig.of(folder), dtype, rows, context, config.prefix_bytes, precision, config.weights
    )
    card = ModelCard.read(folder)
    memory, budget = plan(), _budget(config, device)
    memory.check(budget)
    packed12 = _twelve_bits(config, dtype, missing)
    if packed12:
        more = plan(packed12=True)
        packed12 = more.fits(budget, spare=GIB)
        memory = more if packed12 else memory
    tell(f"memory: {memory}", 0.0)
    checkpoint = checkpoints.load(folder, device, codec_device, dtype, tell)
    codec = checkpoint.codec
    info = EngineInfo(
        model=config.model,
        device=str(device),
        dtype=str(dtype).removeprefix("torch."),
        sample_rate=codec.config.sample_rate,
        frame_samples=codec.config.frame_samples,
        num_codebooks=codec.config.num_codebooks,
        max_context=context,
        max_rows=rows,
        max_waiting=config.max_waiting,
        codec_fingerprint=checkpoint.codec_fingerprint,
        parameters=sum(p.numel() for part in (checkpoint.model, codec) for p in part.parameters()),
        fingerprint=checkpoint.fingerprint(),
        memory=str(memory),
        frame_path="CUDA graphs over fused kernels" if missing is None else f"plain torch ({missing})",
        kv_attention="on" if kernel else f"off: {missing or 'switched off'}",
        card=card,
        cannot_align=_cannot_align(config.weights),
        gpu=_gpu(device),
    )
    streams = _streams(codec, rows, config.codec_dtype, precision is not None)
    runner = Runner(checkpoint.model, rows, context, config.prefix_bytes, repeats=config.reproducible)
    if missing is None:
        runner.use_graphs(
            kernel, lambda done: tell("capturing frame graphs", done), config.reproducible, config.weights, packed12
        )
    if isinstance(streams, GraphStreams):
        streams.capture(lambda done: tell("capturing codec graphs", done))
    is_exact = config.reproducible or device.type == "cpu"
    frame_seconds = None if is_exact else 1 / info.frame_rate
    loop = Loop(runner, streams, codec_device, rows, info.max_waiting, frame_seconds)
    return checkpoint, info, loop, _clip_encoder(codec, codec_device, precision is not None, lambda: loop.death)


def _check(
    config: EngineConfig, device: torch.device, codec_device: torch.device, missing: str | None, kernel: bool
) -> None:
    """Raise ConfigError where the config asks for what this machine lacks. missing: why there are no fused kernels."""
    if config.kv_attention == "required" and not kernel:
        raise ConfigError(f"the KV-cache attention kernel is required, but cannot be used: {missing}")
    for wanted, asked in (
        ("reproducible takes", config.reproducible and device.type == "cuda"),
        (f"{config.weights} weights", config.weights != "dtype"),
    ):
        if asked and not kernel:
            raise ConfigError(f"{wanted} need the KV-cache attention kernel: {missing or 'it is switched off'}")
    if config.codec_dtype == "tf32" and (missing is not None or codec_device.type != "cuda"):
        raise ConfigError(f"codec_dtype tf32 needs CUDA graphs: {missing or f'the codec is on {codec_device}'}")


def _cannot_align(weights: Weights) -> str | None:
    if weights == "dtype":
        return None
    return f"the times of words are found with weights as they were published, and this engine holds them as {weights}"


def _twelve_bits(config: EngineConfig, dtype: torch.dtype, missing: str | None) -> bool:
    """Whether any rows would read weights in twelve bits, were there memory for them."""
    return config.twelve_bits and dtype == torch.bfloat16 and missing is None and not config.reproducible


def _streams(codec: Codec, rows: int, precision: Precision, graphs: bool) -> CodecStreams:
    """The codec's side of the engine. The fused decoder copies the weights; the plain decoder's are freed."""
    if not graphs:
        return PlainStreams(codec, precision)
    from engine.codec.fused.decoder import FusedDecoder  # only here, for it needs Triton

    decoder = FusedDecoder(codec, rows, precision, max(GraphStreams.FRAMES))
    codec.forget_decoder()
    return GraphStreams(decoder, rows)


def _clip_encoder(codec: Codec, device: torch.device, kernels: bool, death: Callable[[], str | None]) -> ClipEncoder:
    """The encoder's side; where plain torch encodes, nothing is gained by encoding several clips together."""
    if kernels:
        from engine.codec.fused.encoder import FusedEncoder  # only here, for it needs Triton

        if FusedEncoder.reads(codec):
            encoder = FusedEncoder(codec, AT_ONCE)
            encoder.prepare()
            torch.cuda.empty_cache()  # what laying weights out anew has left free
            graphs = ClipGraphs(encoder, codec.config.frame_samples, device)
            graphs.capture()
            clip_encoder = ClipEncoder(graphs, codec.config, device, AT_ONCE, death)
            clip_encoder.prepare()
            return clip_encoder
    return ClipEncoder(codec.encode, codec.config, device, 1, death)


def _context(config: EngineConfig, sizes: ModelConfig) -> int:
    context = config.max_context or min(sizes.max_context, DEFAULT_MAX_CONTEXT)
    if context > sizes.max_context:
        raise ConfigError(f"max_context {context} is more than the checkpoint's {sizes.max_context}")
    return context


def _budget(config: EngineConfig, device: torch.device) -> int | None:
    """Bytes that the engine may take: as set, else what is free on the GPU; None: no limit is known."""
    if config.memory_bytes is None and device.type == "cuda":
        return torch.cuda.mem_get_info(device)[0]
    return config.memory_bytes


def _gpu(device: torch.device) -> Gpu | None:
    if not torch.cuda.is_available():
        return None
    found = torch.cuda.get_device_properties(device if device.type == "cuda" else 0)
    return Gpu(found.name, found.total_memory)


def _set_up_torch(device: torch.device, threads: int | None) -> None:
    """Process-wide settings of torch.

    On a CPU the engine's and the codec's thread work side by side, so each gets half of the cores: on two cores
    that is 30 % faster than two threads for both. Convolutions keep float32: TF32 would change a reference's codes.
    """
    if threads or device.type == "cpu":
        torch.set_num_threads(threads or max(1, _cores() // 2))
    torch.backends.cudnn.allow_tf32 = False


def _cores() -> int:
    """Cores that this process may use, which can be fewer than the machine has."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _missing_kernels(device: torch.device, config: EngineConfig) -> str | None:
    """Why the fused kernels are not used; None when they are."""
    if not config.graphs:
        return "graphs are switched off"
    if device.type != "cuda":
        return f"it needs a CUDA device, not {device.type}"
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
        return torch.bfloat16 if device.type == "cuda" else torch.float32
    if name not in _DTYPES:
        raise ConfigError(f"dtype {name!r} is not one of {', '.join(_DTYPES)}")
    return _DTYPES[name]
