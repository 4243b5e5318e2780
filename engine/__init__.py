"""The S2 engine: text and reference codes in, audio out. This module lists its public names."""

from engine.checking.forced_logits import Agreement
from engine.checking.model_check import CheckedTake, ModelReport, check_model
from engine.checking.model_survey import ModelSurvey, Need, survey_model
from engine.checkpoint import check_files, is_hub_id
from engine.config import EngineConfig
from engine.cores import available_cores
from engine.direct_engine import DirectEngine
from engine.engine import Engine
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
from engine.model.prompt import refuse_control_tokens
from engine.model_card import ModelCard
from engine.protocol import SpeechEngine
from engine.runtime.memory import freeze_heap, release_memory, trim_heap
from engine.types import (
    MAX_SEED,
    MAX_TOP_K,
    AudioChunk,
    EngineInfo,
    EngineStats,
    Gpu,
    Reference,
    Sampling,
    Timing,
    Utterance,
)

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
    "refuse_control_tokens",
    "release_memory",
    "survey_model",
    "trim_heap",
]
