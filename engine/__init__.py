"""The S2 engine: text and reference codes in, audio out. This module lists its public names.

Those that need torch are imported on first use: a program that lists voices or reads a document starts without it.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from engine.config import EngineConfig, available_cores
from engine.engine_errors import (
    CannotAlign,
    CheckpointError,
    ConfigError,
    EngineError,
    EngineFull,
    EngineStopped,
    InvalidReference,
    InvalidUtterance,
    PromptTooLong,
)
from engine.files import open_regular
from engine.model_card import ModelCard
from engine.types import (
    MAX_SEED,
    MAX_TOP_K,
    AudioChunk,
    EngineInfo,
    EngineStats,
    Gpu,
    Reference,
    Sampling,
    SpeechEngine,
    Timing,
    Utterance,
)

if TYPE_CHECKING:
    from engine.checkpoint import check_files, is_hub_id, offline_by
    from engine.direct_engine import DirectEngine
    from engine.engine import Engine
    from engine.forced_logits import Agreement
    from engine.model.prompt import refuse_control_tokens
    from engine.model_check import CheckedTake, ModelReport, check_model
    from engine.model_survey import ModelSurvey, Need, survey_model
    from engine.runtime.memory import freeze_heap, release_memory, trim_heap

__all__ = [
    "MAX_SEED",
    "MAX_TOP_K",
    "Agreement",
    "AudioChunk",
    "CannotAlign",
    "CheckedTake",
    "CheckpointError",
    "ConfigError",
    "DirectEngine",
    "Engine",
    "EngineConfig",
    "EngineError",
    "EngineFull",
    "EngineInfo",
    "EngineStats",
    "EngineStopped",
    "Gpu",
    "InvalidReference",
    "InvalidUtterance",
    "ModelCard",
    "ModelReport",
    "ModelSurvey",
    "Need",
    "PromptTooLong",
    "Reference",
    "Sampling",
    "SpeechEngine",
    "Timing",
    "Utterance",
    "available_cores",
    "check_files",
    "check_model",
    "freeze_heap",
    "is_hub_id",
    "offline_by",
    "open_regular",
    "refuse_control_tokens",
    "release_memory",
    "survey_model",
    "trim_heap",
]

_MODULES = {
    "checkpoint": ("check_files", "is_hub_id", "offline_by"),
    "direct_engine": ("DirectEngine",),
    "engine": ("Engine",),
    "forced_logits": ("Agreement",),
    "model.prompt": ("refuse_control_tokens",),
    "model_check": ("CheckedTake", "ModelReport", "check_model"),
    "model_survey": ("ModelSurvey", "Need", "survey_model"),
    "runtime.memory": ("freeze_heap", "release_memory", "trim_heap"),
}


def __getattr__(name: str) -> Any:
    for module, names in _MODULES.items():
        if name in names:
            return getattr(import_module(f"{__name__}.{module}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
