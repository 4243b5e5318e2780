"""Assembles an engine from an EngineConfig: devices, memory, checkpoint, and the fastest path that runs here."""

from __future__ import annotations

import contextlib
import functools
import logging
import shutil
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from engine import checkpoint as checkpoints
from engine.checkpoint import Checkpoint, Source
from engine.codec import ONLY_ENCODES, Codec, CodecConfig, Precision, part_on
from engine.config import (
    EngineConfig,
    ModelConfig,
    TwelveBits,
    available_cores,
    container_limit,
    default_threads,
    physical_cores,
)
from engine.engine_errors import ConfigError
from engine.model.prompt import spoken_languages
from engine.model_card import ModelCard
from engine.native import decoder, encoder
from engine.native import library as native
from engine.native.encoder import NativeEncoder
from engine.runtime.clip_encoder import AT_ONCE, ClipEncoder, Encode, idle_cores
from engine.runtime.codec_streams import CodecStreams, GraphStreams, NativeStreams, PlainStreams
from engine.runtime.graphs import COMPACT_PREFILL_SIZES, PREFILL_SIZES, ClipGraphs, GraphSet, capture, capture_missing
from engine.runtime.loop import Loop
from engine.runtime.memory import drop_file_pages, release_memory, trim_heap
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
    from engine.kernels.compilation import CachedKernels

log = logging.getLogger(__name__)

Progress = Callable[[str, float], None]
"""Called with the current step and its progress, 0 to 1, while the engine starts."""

PCI_DEVICES = Path("/sys/bus/pci/devices")
_VENDORS = {"0x10de": ("NVIDIA", "CUDA"), "0x1002": ("AMD", "ROCm"), "0x8086": ("Intel", "XPU")}
"""Names of GPUs' makers and of what PyTorch needs for them, by PCI vendor; the likeliest to be meant first."""
_DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}


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
        is_fused = place.fallback_reason is None and place.codec_device.type == "cuda"
        self.precision: Precision | None = (config.codec_dtype or "tf32") if is_fused else None
        """Precision of the fused codec decoder; None if plain torch decodes."""
        self._config, self._place, self._model, self._codec = config, place, model, codec
        on_gpu = place.device.type == "cuda"
        compact = is_fused and not any(codec.encoder_transformer_layers[:-1])  # as `FusedEncoder` reads
        rows = config.rows_on(place.device.type)
        weights = config.weights
        if weights is None and place.device.type == "cpu" and place.dtype == torch.float32:
            weights = weights_on_cpu(model)
        self._tries = sizes(config.max_rows, config.max_context, weights, rows, model.max_context, on_gpu, compact)

    def plan(self, size: EngineSize, twelve_bits: TwelveBits = "none") -> MemoryPlan:
        place, prefix_bytes = self._place, self._config.prefix_bytes
        arguments = self._model, self._codec, place.dtype, size, prefix_bytes, self.precision
        return plan_memory(*arguments, twelve_bits, on_gpu=place.device.type == "cuda")

    def largest(self, budget: int | None, below: MemoryPlan | None = None) -> tuple[EngineSize, MemoryPlan]:
        """The best size within a budget, in bytes, and its plan. Raises ConfigError.

        ``below``: a plan that needed more memory than it says; only smaller ones are tried.
        """
        config = self._config
        is_set = bool(config.max_rows and config.max_context) or self._place.device.type == "cpu"
        tries = [size for size in self._tries if below is None or self.plan(size).total < below.total]
        if not tries:
            raise ConfigError(f"memory ran out with {below}; there is no smaller size to try")
        return largest(tries, self.plan, budget, is_set)

    def smallest(self) -> tuple[EngineSize, MemoryPlan]:
        """The size that needs the least memory, and its plan."""
        size = self._tries[-1]
        return size, self.plan(size)


@dataclass(frozen=True, slots=True)
class _Plan:
    """The result of applying a config to this machine."""

    source: Source
    place: Place
    size: EngineSize
    kernel: bool
    """Whether attention reads the KV cache through its kernel."""
    precision: Precision | None
    """Precision of the codec's fused decoder; None where plain torch decodes."""
    twelve_bits: TwelveBits
    memory: MemoryPlan
    kernel_settings: str
    """Everything that determines the set of kernels, beside the GPU."""


Assembled = tuple[Checkpoint, EngineInfo, Loop, ClipEncoder, Iterator[int]]


def assemble(config: EngineConfig, report: Progress) -> Assembled:
    """Load the config's checkpoint; the loop is not started yet. Raises CheckpointError, ConfigError.

    The last item makes the engine faster; run it once the engine is ready: see `Loop.run_in_gaps`. A plan leaves out
    the memory of the allocator, the driver and other programs; if the GPU's memory runs out, the next smaller size that
    fits the memory that is free then is loaded.
    """
    plan = _plan(config, report)
    while True:
        try:
            return _load(config, plan, report)
        except torch.OutOfMemoryError:
            pass
        release_memory()  # here, because the exception refers to the loaded tensors
        failed_plan = plan.memory
        try:
            plan = _plan(config, report, failed_plan)
        except ConfigError:
            raise ConfigError(
                f"the GPU's memory ran out, although this plan fitted: {failed_plan}; "
                "close other programs that use the GPU, or lower max_rows or max_context"
            ) from None
        report(f"memory ran out, loading again with {plan.memory.total / GIB:.1f} GiB", 0.0)


def _load(config: EngineConfig, plan: _Plan, report: Progress) -> Assembled:
    card, place = plan.source.card(), plan.place
    report(f"memory: {plan.memory}", 0.0)
    with _cached_kernels(plan) as kernels:  # the compiler processes start while weights load
        codec_device = torch.device("cpu") if plan.size.compact else place.codec_device
        text_device = torch.device("cpu") if plan.size.text_on_host else place.device
        path, weights = plan.source.path, plan.size.weights
        checkpoint = checkpoints.load(path, place.device, codec_device, place.dtype, report, weights, text_device)
        codec, prefix_bytes = checkpoint.codec, prefix_cache_bytes(config.prefix_bytes, plan.size)
        runner = Runner(checkpoint.model, plan.size.rows, plan.size.context, prefix_bytes, repeats=config.reproducible)
        sets: list[GraphSet[Any]] = []
        if place.fallback_reason is None:
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
    info = _info(config, plan, checkpoint, card, runner)
    is_exact = config.reproducible or place.device.type == "cpu"
    frame_seconds = None if is_exact else 1 / info.frame_rate
    if isinstance(streams, NativeStreams) and not config.threads:
        native.set_threads(physical_cores())  # one pool for frames and sound; torch's threads are another
    loop = Loop(runner, streams, place.codec_device, plan.size.rows, info.max_waiting, frame_seconds)
    if encode == codec.encode and place.codec_device.type == "cpu" and not config.threads:
        around_piece = functools.partial(idle_cores, lambda: loop.is_idle, available_cores())
        encode = functools.partial(codec.encode, around_piece=around_piece)
    is_fused = isinstance(encode, ClipGraphs)  # plain torch is not faster if clips are encoded together
    at_once, stop_reason = AT_ONCE if is_fused else 1, lambda: loop.stop_reason
    when_idle = None
    if place.codec_device.type == "cpu":
        from_files = [*codec.parameters(), checkpoint.model.slow.embeddings.weight]
        when_idle = functools.partial(_free_clips_memory, encode, from_files)
    clip_encoder = ClipEncoder(encode, codec.config, place.codec_device, at_once, stop_reason, when_idle)
    if is_fused:
        clip_encoder.prepare().result()
    if plan.precision is not None:
        longest = max(GraphStreams.FRAMES) * codec.config.frame_samples
        reserve(plan.size.rows * longest * 4)  # one decode of all rows, in float32
    return checkpoint, info, loop, clip_encoder, _missing_graphs(sets, clip_encoder if is_fused else None)


def _free_clips_memory(encode: Encode, from_files: Sequence[Tensor]) -> None:
    """Return what encoding a clip took; weights that are views of files are read again for the next one."""
    if isinstance(encode, NativeEncoder):
        encode.release()
    trim_heap()  # the activations of five seconds take 600 MiB in torch, which would stay in the thread's heap
    drop_file_pages(from_files)  # 790 MiB with S2 Pro's codec, read again in a tenth of a second


def _missing_graphs(sets: Sequence[GraphSet[Any]], clip_encoder: ClipEncoder | None) -> Iterator[int]:
    """Capture missing graphs, one per step, and then free the memory of their trial runs."""
    yield from capture_missing(*sets)
    if sets:
        torch.cuda.empty_cache()
    if clip_encoder:
        clip_encoder.prepare()  # its reserve was freed too


def _plan(config: EngineConfig, report: Progress, below: MemoryPlan | None = None) -> _Plan:
    place = place_of(config)
    _set_up_torch(place.device, config.threads)
    report("finding the checkpoint", 0.0)
    source = checkpoints.open_source(checkpoints.find(config.model))
    kernel = place.fallback_reason is None and config.kv_attention != "off"
    model, codec = source.config, source.codec_config
    _check(config, place, model, codec, kernel)
    sizing = Sizing(config, place, model, codec)
    size, memory = sizing.largest(_budget(config, place.device), below)
    twelve_bits: TwelveBits = "none"
    for copies in _twelve_bits(config, place, size) if below is None else ():
        if (larger_plan := sizing.plan(size, copies)).fits(_budget(config, place.device), spare=GIB):
            twelve_bits, memory = copies, larger_plan
    precision = sizing.precision
    settings = model.family, model, codec, place.dtype, size, kernel, precision, twelve_bits, config.reproducible
    return _Plan(source, place, size, kernel, precision, twelve_bits, memory, repr(settings))


def _frame_path(fallback_reason: str | None, runner: Runner) -> str:
    """What generates frames, and why not something faster."""
    if fallback_reason is None:
        return "CUDA graphs over fused kernels"
    if runner.is_native:
        share = container_limit()
        return native.described() + (f", on {share:g} of a core: allow its container more" if share < 1 else "")
    reasons = [fallback_reason]
    if runner.device.type == "cpu" and (problem := native.problem()):
        reasons.append(f"native code: {problem}")
    return f"plain torch ({'; '.join(reasons)})"


def _info(config: EngineConfig, plan: _Plan, checkpoint: Checkpoint, card: ModelCard, runner: Runner) -> EngineInfo:
    codec, fallback_reason = checkpoint.codec.config, plan.place.fallback_reason
    talker = checkpoint.config.talker
    return EngineInfo(
        model=config.model,
        device=str(plan.place.device),
        dtype=str(plan.place.dtype).removeprefix("torch."),
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
        frame_path=_frame_path(fallback_reason, runner),
        kv_attention="on" if plan.kernel else f"off: {fallback_reason or 'switched off'}",
        card=card,
        family=checkpoint.config.family,
        clones=talker is None or talker.kind == "base",
        speakers=tuple(talker.speakers) if talker else (),
        languages=spoken_languages(talker) if talker else (),
        instructs=talker is not None and talker.takes_instructions,
        designs=talker is not None and talker.kind == "voice_design",
        remembers=talker is None,
        sampling=plan.source.sampling(),
        gpu=_gpu(plan.place.device),
    )


@contextmanager
def _cached_kernels(plan: _Plan) -> Iterator[CachedKernels | None]:
    """The kernels in Triton's cache; None if none are used."""
    if plan.place.fallback_reason is not None:
        yield None
        return
    from engine.kernels.compilation import cached_kernels  # imported only here because it needs Triton

    with torch.cuda.device(plan.place.device), cached_kernels(plan.kernel_settings) as kernels:
        yield kernels


def _check(config: EngineConfig, place: Place, model: ModelConfig, codec: CodecConfig, kernel: bool) -> None:
    """Raise ConfigError if the config requires what this machine or the checkpoint lacks."""
    fallback_reason = place.fallback_reason
    if config.kv_attention == "required" and not kernel:
        raise ConfigError(f"the KV-cache attention kernel is required, but cannot be used: {fallback_reason}")
    if config.reproducible and place.device.type == "cuda" and not kernel:
        reason = fallback_reason or "it is switched off"
        raise ConfigError(f"reproducible takes need the KV-cache attention kernel: {reason}")
    if config.codec_dtype == "tf32" and (fallback_reason is not None or place.codec_device.type != "cuda"):
        reason = fallback_reason or f"the codec is on {place.codec_device}"
        raise ConfigError(f"codec_dtype tf32 needs CUDA graphs: {reason}")
    check_context(config, model)


def check_context(config: EngineConfig, model: ModelConfig) -> None:
    """Raise ConfigError if the config asks for more positions than the checkpoint has."""
    if config.max_context and config.max_context > model.max_context:
        raise ConfigError(f"max_context {config.max_context} is more than the checkpoint's {model.max_context}")


def _twelve_bits(config: EngineConfig, place: Place, size: EngineSize) -> tuple[TwelveBits, ...]:
    """The ways to copy weights in twelve bits, memory permitting, each with more copies than the previous one."""
    is_fused = place.dtype == torch.bfloat16 and place.fallback_reason is None
    if not is_fused or config.reproducible or size.weights != "bf16":
        return ()
    return ("words", "tiles") if size.rows > 2 else ("words",)


def _streams(codec: Codec, plan: _Plan, precision: Precision) -> CodecStreams:
    """The codec's decoder. The fused and the native one copy the weights and free the plain one's."""
    if plan.precision is None:
        if precision == "float32" and decoder.runs(codec):
            return NativeStreams(codec, plan.size.rows)
        return PlainStreams(codec, precision)
    from engine.fused.codec_decoder import FusedDecoder  # imported only here because it needs Triton

    part = part_on(codec, plan.place.codec_device, without=ONLY_ENCODES) if plan.size.compact else codec
    fused = FusedDecoder(part, plan.size.rows, plan.precision, max(GraphStreams.FRAMES))
    codec.forget_decoder()
    return GraphStreams(fused, plan.size.rows)


def _encode(codec: Codec, plan: _Plan) -> Encode | ClipGraphs:
    """The codec's encoder: fused kernels, native code, or plain torch."""
    if plan.precision is not None:
        from engine.fused.codec_encoder import FusedEncoder, OnDemandEncoder  # only here, as they need Triton

        if plan.size.compact:
            return OnDemandEncoder(codec, plan.memory.on_demand)
        if FusedEncoder.reads(codec):
            fused = FusedEncoder(codec, AT_ONCE)
            torch.cuda.empty_cache()  # memory freed by converting weights
            return ClipGraphs(fused, codec.config.frame_samples, plan.place.codec_device)
    return NativeEncoder(codec) if encoder.runs(codec) else codec.encode


def _budget(config: EngineConfig, device: torch.device) -> int | None:
    """Bytes that the engine may use: as set, and no more than the GPU's free memory; None: unknown."""
    free = torch.cuda.mem_get_info(device)[0] if device.type == "cuda" else None
    return min((limit for limit in (config.memory_bytes, free) if limit is not None), default=None)


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
        native.set_threads(threads or default_threads())
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
        with warnings.catch_warnings(record=True) as caught:  # torch warns of a driver that is too old
            warnings.simplefilter("always")
            has_gpu = torch.cuda.is_available()
        if not has_gpu and (reason := _unused_gpu([str(warning.message) for warning in caught])):
            _warn_once(f"the CPU is used: {reason}")
        return torch.device("cuda" if has_gpu else "cpu")
    try:
        device = torch.device(name)
        torch.empty(1, device=device)
    except (RuntimeError, AssertionError) as error:  # NotImplementedError too, whose text is a page of backends
        usable = ["cpu"] + [f"cuda:{number}" for number in range(torch.cuda.device_count())]
        usable += [kind] if (kind := _other_accelerator()) else []
        reason = f": {str(error).splitlines()[0]}" if name.startswith("cuda") else ""
        raise ConfigError(f"device {name!r} cannot be used here{reason}; usable are {', '.join(usable)}") from error
    return device


@functools.cache
def _warn_once(message: str) -> None:
    log.warning(message)


def _unused_gpu(warned: list[str]) -> str:
    """Why a GPU that seems to be there is not used, with the remedy; blank if there seems to be none."""
    if warned:
        return " ".join(warned[0].split())
    if kind := _other_accelerator():
        return f"STUDIO_DEVICE={kind} uses this machine's GPU; the studio was not tested with it"
    is_nvidia = bool(shutil.which("nvidia-smi"))  # Windows lists no devices in files
    if not (found := {_VENDORS["0x10de"]} if is_nvidia else _gpus()):
        return ""
    make, computing = next(vendor for vendor in _VENDORS.values() if vendor in found)
    if {"CUDA": torch.version.cuda, "ROCm": torch.version.hip}.get(computing):
        return (
            f"PyTorch finds no driver for the {make} GPU here: install the driver, or start the container with it, "
            "in Docker with --gpus all"
        )
    tested = "" if make == "NVIDIA" else "; the studio was not tested with it"
    return (
        f"PyTorch is installed without {computing}, which the {make} GPU here needs: "
        f"install it for this GPU, see https://pytorch.org/get-started/locally{tested}"
    )


def _other_accelerator() -> str:
    """PyTorch's name of a GPU that is used only on request; blank without one."""
    if not torch.accelerator.is_available():
        return ""
    kind = str(torch.accelerator.current_accelerator())
    return kind if kind in ("mps", "xpu") else ""


def _gpus() -> set[tuple[str, str]]:
    """The vendors of this machine's GPUs, with or without a driver; empty outside Linux."""
    found = set()
    for device in PCI_DEVICES.glob("*"):
        with contextlib.suppress(OSError):
            kind, vendor = (device.joinpath(name).read_text("ascii").strip() for name in ("class", "vendor"))
            draws_only = vendor == "0x8086" and device.name.startswith("0000:00:")  # Intel's, within its processor
            if kind.startswith(("0x03", "0x12")) and vendor in _VENDORS and not draws_only:  # displays, accelerators
                found.add(_VENDORS[vendor])
    return found


def _dtype(name: str | None, device: torch.device) -> torch.dtype:
    if name is None:
        return torch.float32 if device.type == "cpu" else torch.bfloat16
    if name not in _DTYPES:
        raise ConfigError(f"dtype {name!r} is not one of {', '.join(_DTYPES)}")
    return _DTYPES[name]
