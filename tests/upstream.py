"""The independent reference: fish-speech's own codec and dual AR classes, imported from its PyPI wheel.

The wheel (fish-speech 0.1.0 with descript-audio-codec 1.0.0) is installed without its dependencies.
Packages that its modules import at the top but never use in the code called here are replaced by empty
stand-ins; every tensor operation below runs in fish-speech's, dac's or torch's own code.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import sys
from functools import partial
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import torch
import yaml
from safetensors.torch import load_file
from torch import Tensor, nn


def _stand_in(name: str, **names: Any) -> None:
    """Register an importable module that holds only the given names, unless the real one is installed."""
    if name in sys.modules or importlib.util.find_spec(name.partition(".")[0]) is not None:
        return
    module = ModuleType(name)
    module.__spec__ = ModuleSpec(name, None)  # other libraries ask for it
    module.__dict__.update(names)
    sys.modules[name] = module


def _bare_package(name: str, folder: Path) -> None:
    """Register a package by its folder without running its ``__init__``, which imports training code."""
    package = ModuleType(name)
    package.__path__ = [str(folder)]
    sys.modules[name] = package


def _prepare_imports() -> None:
    for name in ("hydra", "librosa", "loralib", "tiktoken"):
        _stand_in(name)
    _stand_in("omegaconf", OmegaConf=object)
    _stand_in("transformers", AutoTokenizer=object)
    _stand_in("audiotools.ml", BaseModel=nn.Module)
    _stand_in("audiotools", AudioSignal=object, ml=sys.modules.get("audiotools.ml"))
    spec = importlib.util.find_spec("dac")
    if spec is None or not spec.submodule_search_locations:
        raise ImportError("the reference is missing: pip install --no-deps -r requirements-reference.txt")
    folder = Path(next(iter(spec.submodule_search_locations)))
    for name in ("", "model", "nn"):
        _bare_package(f"dac.{name}".rstrip("."), folder / name)


_prepare_imports()

from fish_speech.content_sequence import ContentSequence, TextPart, VQPart  # noqa: E402
from fish_speech.models.dac import modded_dac  # noqa: E402
from fish_speech.models.text2semantic.llama import (  # noqa: E402
    BaseTransformer,
    BaseTransformerForwardResult,
    DualARModelArgs,
    DualARTransformer,
)
from fish_speech.tokenizer import ALL_SPECIAL_TOKENS, FishTokenizer  # noqa: E402

__all__ = [
    "ALL_SPECIAL_TOKENS",
    "ContentSequence",
    "DualARModelArgs",
    "DualARTransformer",
    "FishTokenizer",
    "TextPart",
    "VQPart",
]


def build(node: Any) -> Any:
    """Instantiate a ``_target_`` configuration (the format of codec.yaml) with the classes it names."""
    if isinstance(node, list):
        return [build(item) for item in node]
    if not isinstance(node, dict):
        return node
    arguments = {key: build(value) for key, value in node.items() if not key.startswith("_")}
    if "_target_" not in node:
        return arguments
    module, _, name = node["_target_"].rpartition(".")
    target = getattr(importlib.import_module(module), name)
    return partial(target, **arguments) if node.get("_partial_") else target(**arguments)


def build_codec(config: dict[str, Any]) -> nn.Module:
    """fish-speech's DAC, in float32 and evaluation mode."""
    return build(config).float().eval()


def flatten_codec_state(state: dict[str, Any]) -> dict[str, Tensor]:
    """The tensors of a codec.pth, however they are nested in it."""
    for key in ("state_dict", "generator"):
        state = state.get(key, state)
    return {key.removeprefix("generator."): value for key, value in state.items()}


def load_codec(folder: Path) -> nn.Module:
    """fish-speech's DAC with the tensors of ``folder``/codec.pth, every one of them used."""
    codec = build_codec(yaml.safe_load((folder / "codec.yaml").read_text()))
    state = torch.load(folder / "codec.pth", map_location="cpu", weights_only=True)
    codec.load_state_dict(
        {
            key: value.float() if value.is_floating_point() else value
            for key, value in flatten_codec_state(state).items()
        }
    )
    return codec


def extend_positions(codec: Any, frames: int) -> None:
    """Extend the decoder's position tables by the same formula."""
    for module in codec.quantizer.modules():
        if isinstance(module, modded_dac.Transformer):
            config = module.config
            module.freqs_cis = modded_dac.precompute_freqs_cis(frames, config.head_dim, config.rope_base)


@torch.inference_mode()
def encode(codec: Any, pcm: Tensor) -> Tensor:
    """Samples (samples,) at the codec's rate to codes (codebooks, frames)."""
    return codec.encode(pcm[None])[0][0]


@torch.inference_mode()
def decode(codec: Any, codes: Tensor) -> Tensor:
    """Codes (codebooks, frames) to samples (samples,)."""
    lengths = torch.tensor([codes.shape[1]])
    return codec.decode(codes[None].long(), lengths)[0][0, 0]


class ReferenceAR(DualARTransformer):
    """The S2 form of fish-speech's dual AR: the fast AR reads the **normed** slow hidden state.

    The 0.1.0 wheel predates that switch (norm_fastlayer_input); everything else is its own.
    """

    def forward_generate(
        self,
        x: Tensor,
        input_pos: Tensor | None = None,
        audio_masks: Tensor | None = None,
        audio_parts: Tensor | None = None,
    ) -> BaseTransformerForwardResult:
        result = BaseTransformer.forward_generate(self, x, input_pos, audio_masks, audio_parts)
        result.hidden_states = self.fast_project_in(self.norm(result.hidden_states))
        return result


def _arguments(config: dict[str, Any]) -> DualARModelArgs:
    slow, fast = config["text_config"], config["audio_decoder_config"]
    shared = (
        "vocab_size",
        "n_layer",
        "n_head",
        "n_local_heads",
        "head_dim",
        "dim",
        "intermediate_size",
        "rope_base",
        "norm_eps",
        "max_seq_len",
        "tie_word_embeddings",
        "attention_qk_norm",
    )
    own = ("dim", "n_head", "n_local_heads", "head_dim", "intermediate_size", "attention_qk_norm")
    return DualARModelArgs(
        **{key: slow[key] for key in shared},
        **{f"fast_{key}": fast[key] for key in own},
        n_fast_layer=fast["n_layer"],
        codebook_size=fast["vocab_size"],
        num_codebooks=fast["num_codebooks"],
        scale_codebook_embeddings=True,
    )


def own_name(key: str) -> str:
    """The name inside fish-speech's classes of a tensor in the published layout."""
    if key.startswith("text_model.model."):
        return key.removeprefix("text_model.model.")
    name = key.removeprefix("audio_decoder.")
    return name if name.startswith(("codebook_embeddings.", "fast_")) else f"fast_{name}"


def token_ids(first: int, last: int, stop: int) -> SimpleNamespace:
    """The tokenizer's attributes that the classes use."""
    return SimpleNamespace(
        semantic_id_to_token_id={i: first + i for i in range(last - first + 1)},
        semantic_begin_id=first,
        semantic_end_id=last,
        get_token_id=lambda token: stop,  # its own loop asks for <|im_end|> only
    )


def load_ar(
    folder: Path,
    device: torch.device | str = "cpu",
    dtype: torch.dtype = torch.float32,
    positions: int | None = None,
) -> ReferenceAR:
    """fish-speech's dual AR with the tensors of a published-layout folder, every one used.

    ``positions``: the size of its tables and of its own loop's caches; None: the config's.
    """
    config = json.loads((folder / "config.json").read_text())
    config["text_config"]["max_seq_len"] = positions or config["text_config"]["max_seq_len"]
    first, last = config["semantic_start_token_id"], config["semantic_end_token_id"]
    tokenizer = token_ids(first, last, config["eos_token_id"])
    with torch.device(device):
        model = ReferenceAR(_arguments(config), tokenizer=tokenizer).to(dtype).eval()
    tensors: dict[str, Tensor] = {}
    for shard in sorted(folder.glob("model*.safetensors")):
        tensors |= {own_name(key): value.to(dtype) for key, value in load_file(shard, str(device)).items()}
    model.load_state_dict(tensors)
    return model


@torch.inference_mode()
def forward(model: DualARTransformer, prompt: Tensor) -> tuple[Tensor, Tensor]:
    """Slow logits (T, vocabulary) and the fast AR's input (T, fast dim) for a prompt (1 + codebooks, T)."""
    for block in model.layers:
        block.attention.kv_cache = None
    model.max_seq_len = -1
    result = BaseTransformer.forward_generate(model, prompt[None], return_all=True)
    hidden = result.hidden_states[0]
    return result.logits[0], model.fast_project_in(model.norm(hidden) if isinstance(model, ReferenceAR) else hidden)


@torch.inference_mode()
def fast_logits(model: DualARTransformer, hidden: Tensor, codes: Tensor) -> Tensor:
    """Logits (codebooks - 1, codebook size) of the codes after the first, given hidden (fast dim,) and codes."""
    count = model.config.num_codebooks
    model.setup_caches(1, model.config.max_seq_len, dtype=torch.float32)
    model.forward_generate_fast(hidden[None], torch.tensor([0]))
    rows = []
    for position in range(1, count):
        embedded = model.fast_embeddings(codes[position - 1].long()[None])
        rows.append(model.forward_generate_fast(embedded, torch.tensor([position]))[0, 0])
    return torch.stack(rows)


@torch.inference_mode()
def generate_greedily(
    model: DualARTransformer, prompt: Tensor, frames: int, stop_id: int, residual: int | None = None
) -> Tensor:
    """Codes (codebooks, at most ``frames``) by taking the best legal token in every step.

    residual: how many residual codes are legal, as in the loop of S1's time; None: all.
    """
    first, last = model.tokenizer.semantic_begin_id, model.tokenizer.semantic_end_id
    illegal = torch.full((model.config.vocab_size,), -torch.inf)
    illegal[first : last + 1] = 0.0
    illegal[stop_id] = 0.0
    model.setup_caches(1, model.config.max_seq_len, dtype=torch.float32)
    step, start, drawn = prompt, 0, []
    for _ in range(frames):
        positions = torch.arange(start, start + step.shape[1])
        result = model.forward_generate(step[None], positions)
        start += step.shape[1]
        token = int((result.logits[0, -1] + illegal).argmax())
        if token == stop_id:
            break
        frame = torch.zeros(model.config.num_codebooks, dtype=torch.long)
        frame[0] = token - first
        model.forward_generate_fast(result.hidden_states[0, -1][None], torch.tensor([0]))
        for position in range(1, len(frame)):
            embedded = model.fast_embeddings(frame[position - 1][None])
            frame[position] = model.forward_generate_fast(embedded, torch.tensor([position]))[0, 0, :residual].argmax()
        drawn.append(frame)
        step = torch.cat([torch.tensor([token]), frame])[:, None]
    return torch.stack(drawn, dim=1) if drawn else torch.zeros(model.config.num_codebooks, 0, dtype=torch.long)
