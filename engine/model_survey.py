"""A model's requirements before it is loaded: memory by weight format, whether it fits here, the expected speed."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, get_args

from engine import checkpoint as checkpoints
from engine.checkpoint.families import family_of
from engine.codec import CodecConfig
from engine.config import EngineConfig, ModelConfig, Weights
from engine.engine_errors import CheckpointError, ConfigError
from engine.expected_speed import expected_frame_seconds
from engine.model_card import ModelCard
from engine.runtime.memory import free_memory
from engine.runtime.memory_plan import EngineSize, MemoryPlan, frame_cost
from engine.runtime.setup import Place, Sizing, check_context, place_of


@dataclass(frozen=True, slots=True)
class Need:
    """A model's requirements with its weights in one format."""

    weights: Weights
    dtype: str
    """The format by its name: float32, bfloat16, int8, int6."""
    fits: bool
    memory_bytes: int
    """Memory in the size that it would have here, or in the smallest size if it does not fit."""
    rows: int
    context: int
    real_time_factor: float | None
    """Estimate for one row, in seconds of work per second of audio; None for an unknown device."""


@dataclass(frozen=True, slots=True)
class ModelSurvey:
    """A model on this machine."""

    family: str
    device: str
    free_bytes: int | None
    """The memory it may use; None: unknown."""
    needs: tuple[Need, ...]
    chosen: Weights | None
    """The format in which it would be loaded; None: it does not fit."""
    card: ModelCard
    """The checkpoint's description of itself; empty for one that is not here."""

    @property
    def need(self) -> Need | None:
        """The requirements in the chosen format."""
        return next((need for need in self.needs if need.weights == self.chosen), None)


def survey_model(config: EngineConfig, tree: Mapping[str, Any] | None = None, held_bytes: int = 0) -> ModelSurvey:
    """Survey a checkpoint on this machine, or one that is not here by its config.json (``tree``, for S2 Pro's codec).

    held_bytes: memory of a CPU engine of this process, which will be free by then. Blocking: tenths of a second.
    Raises CheckpointError, ConfigError.
    """
    place = place_of(config)
    model, codec, card = _sizes(config.model, tree)
    budget = config.memory_bytes or free_memory(place.device, held_bytes)
    check_context(config, model)
    formats = get_args(Weights) if config.weights is None else (config.weights,)
    needs = tuple(_need(replace(config, weights=weights), place, model, codec, budget) for weights in formats)
    chosen: Weights | None = None
    with suppress(ConfigError):
        chosen = _fitting_size(config, place, model, codec, budget)[0].weights
    return ModelSurvey(model.family, str(place.device), budget, needs, chosen, card)


def _fitting_size(
    config: EngineConfig, place: Place, model: ModelConfig, codec: CodecConfig, budget: int | None
) -> tuple[EngineSize, MemoryPlan]:
    """The size that an engine would have. Raises ConfigError if it does not fit.

    On a CPU it does not depend on the free memory, unless a limit is set.
    """
    ignores_memory = place.device.type == "cpu" and config.memory_bytes is None
    size, memory = Sizing(config, place, model, codec).largest(None if ignores_memory else budget)
    memory.check(budget)
    return size, memory


def _sizes(model: str, tree: Mapping[str, Any] | None) -> tuple[ModelConfig, CodecConfig, ModelCard]:
    if tree is None:
        source = checkpoints.open_source(checkpoints.find(model))
        return source.config, source.codec_config, source.card()
    try:
        family = family_of(tree)
        config = replace(family.read(tree, dict), family=family.name)
        return config, family.codec(tree), ModelCard()
    except (KeyError, TypeError, ValueError) as error:
        raise CheckpointError(f"the sizes of {model} cannot be read: {error}") from error


def _need(config: EngineConfig, place: Place, model: ModelConfig, codec: CodecConfig, budget: int | None) -> Need:
    fits = True
    try:
        size, memory = _fitting_size(config, place, model, codec, budget)
    except ConfigError:
        size, memory = Sizing(config, place, model, codec).smallest()
        fits = False
    weights = size.weights
    cost = frame_cost(model, codec, place.dtype, weights)
    seconds = expected_frame_seconds(cost, place.device, config.threads)
    factor = None if seconds is None else seconds * codec.sample_rate / codec.frame_samples
    name = str(place.dtype).removeprefix("torch.") if weights == "bf16" else weights
    return Need(weights, name, fits, memory.total, size.rows, size.context, factor)
