"""How an engine is set up: one frozen record, its defaults resolved once by `EngineConfig.resolve`."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class EngineConfig:
    """Set-up of one engine. ``None`` means "choose by device"; the choice is shown in EngineInfo."""

    model: str
    """A folder, or a hub id such as fishaudio/s2-pro."""
    device: str | None = None
    """cpu, cuda, cuda:1 …; None takes a GPU when there is one."""
    codec_device: str | None = None
    """None: the same device."""
    dtype: str | None = None
    """float32 or bfloat16 for the autoregressive models; None: bfloat16 on CUDA, float32 elsewhere."""
    max_rows: int | None = None
    """Utterances spoken at the same time."""
    max_waiting: int = 64
    """Utterances that may wait for a row; beyond it EngineFull."""
    max_context: int | None = None
    """Positions a row, prompt and frames together; None: the checkpoint's own, at most 4096."""
    threads: int | None = None
    """CPU threads for torch; None leaves torch's choice."""
