"""One interface to stored checkpoints: a folder of files, or a file of weights with its companions."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

import torch

from engine.checkpoint import speech_tokenizer, tokenizer_files
from engine.checkpoint.checkpoint_names import flat_key, is_adapter, is_unused, model_key, published_key
from engine.checkpoint.families import Family, Tree, family_of
from engine.checkpoint.gguf_file import open_gguf
from engine.checkpoint.gguf_layouts import GgufParts, shaped, unpacked
from engine.checkpoint.lazy_tensors import LazyTensor, first_rows, with_joined_qkv, with_scales
from engine.checkpoint.locate import GGUF
from engine.checkpoint.weight_files import stored_weights, weight_file
from engine.codec import Codec, CodecConfig
from engine.codec.load import build_codec, check_codec, read_codec
from engine.codec.voice_vector import VoiceEncoder
from engine.config import ModelConfig
from engine.engine_errors import CheckpointError, InvalidUtterance
from engine.files import read_bounded, read_json
from engine.model.dual_ar import only_shapes
from engine.model.prompt import spoken_languages
from engine.model.tokenizer import Tokenizer
from engine.model_card import CARD, ModelCard
from engine.types import Sampling

_TOKENIZER_BYTES = 64 * 2**20


class Source:
    """A checkpoint folder, or a file with other weights in it; all is read on request, and raises CheckpointError."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.folder = path if path.is_dir() else path.parent

    @property
    def config_path(self) -> Path:
        """The file named in messages about sizes."""
        return self.folder / "config.json"

    @property
    def weights_path(self) -> Path:
        """The file named in messages about tensors."""
        return weight_file(self.path)

    @cached_property
    def tree(self) -> Tree:
        """The config.json or its equivalent."""
        return read_json(self.config_path)

    @cached_property
    def family(self) -> Family:
        try:
            return family_of(self.tree)
        except ValueError as error:
            raise CheckpointError(f"{self.config_path}: {error}") from error

    @cached_property
    def config(self) -> ModelConfig:
        family = self.family
        try:
            return replace(family.read(self.tree, self._special_ids), family=family.name)
        except KeyError as error:
            raise CheckpointError(f"{self.config_path} lacks the key {error}") from error
        except (TypeError, ValueError, OverflowError, AttributeError) as error:
            raise CheckpointError(f"{self.config_path} has a value of the wrong kind: {error}") from error

    @cached_property
    def codec_config(self) -> CodecConfig:
        path, family = self.folder / "codec.yaml", self.family
        if family.codec_folder:
            return speech_tokenizer.read_codec_config(self.folder / family.codec_folder)
        if path.is_file():
            return CodecConfig.read(path)
        try:
            return family.codec(self.tree)
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise CheckpointError(f"{self.config_path} has invalid codec sizes: {error}") from error

    def voice_encoder(self) -> VoiceEncoder | None:
        """On the CPU, in float32; None where the checkpoint has none."""
        if not self.family.codec_folder:
            return None
        return speech_tokenizer.load_voice_encoder(self.path, self.tree, "cpu")

    def card(self) -> ModelCard:
        """What the folder says; a talker without a card.json obeys no tags, and reads numbers badly."""
        card = ModelCard.read(self.folder)
        if self.config.talker is None or (self.folder / CARD).is_file():
            return card
        languages = card.languages or spoken_languages(self.config.talker)
        return replace(card, tags=(), normalize=True, languages=languages)

    def sampling(self) -> Sampling:
        """What takes are usually sampled with: a talker's generation_config.json, else the values published with it."""
        if self.config.talker is None:
            return Sampling()
        path, usual = self.folder / "generation_config.json", {"temperature": 0.9, "top_p": 1.0, "top_k": 50}
        found = read_json(path) if path.is_file() else {}
        try:
            return Sampling(**{name: found.get(name, value) for name, value in usual.items()})
        except (TypeError, InvalidUtterance) as error:
            raise CheckpointError(f"{path}: {error}") from error

    def tokenizer(self) -> Tokenizer:
        if self.config.talker is not None:
            vocabulary, merges = self._qwen_parts
            source = self._name(tokenizer_files.VOCABULARY)
            return Tokenizer(tokenizer_files.qwen_tokenizer(vocabulary, merges, source), self.config, source)
        data, source = self._file(tokenizer_files.TOKENIZER), self._name(tokenizer_files.TOKENIZER)
        if data is not None:
            return Tokenizer(tokenizer_files.hub_tokenizer(data, source), self.config, source)
        tokenizer = tokenizer_files.tiktoken_tokenizer(*self._tiktoken_parts)
        return Tokenizer(tokenizer, self.config, self._name(tokenizer_files.RANKS))

    def check_tokenizer(self) -> None:
        """Check that a tokenizer is here. A large one is not parsed, which holds Python's lock for 0.6 s."""
        if self.config.talker is not None:
            _ = self._qwen_parts
        elif self._file(tokenizer_files.TOKENIZER) is None:
            _ = self._tiktoken_parts

    def weights(self, stack: ExitStack) -> list[LazyTensor]:
        """Every tensor by the model's names; files stay open as long as ``stack``."""
        tensors_in_file = [tensor for tensor in self._lazy_tensors(stack) if not is_unused(tensor.name)]
        if adapter := next((tensor.name for tensor in tensors_in_file if is_adapter(tensor.name)), None):
            raise CheckpointError(
                f"{self.weights_path} holds a LoRA ({adapter}) beside or instead of the model's weights: merge it into "
                "the model that it was trained on with fish-speech's tools/llama/merge_lora.py, and load the folder "
                "that this writes"
            )
        try:
            if self.family.tensors is not None:
                return self.family.tensors(tensors_in_file, self.config)
            tensors_in_file = with_joined_qkv(with_scales(tensors_in_file))
        except ValueError as error:
            raise CheckpointError(f"{self.weights_path}: {error}") from error
        tensors: dict[str, LazyTensor] = {}
        for tensor in tensors_in_file:
            name = model_key(tensor.name)
            if name is None or name in tensors:
                raise CheckpointError(f"{self.weights_path}: unexpected tensor {tensor.name}")
            tensors[name] = replace(tensor, name=name)
        residual, head = self.config.residual_codes, "fast_output.weight"
        if residual and head in tensors:
            tensors[head] = first_rows(tensors[head], residual)
        return list(tensors.values())

    def file_key(self, name: str) -> str:
        """The model's tensor name → its name in these files, for messages."""
        if self.family.file_key is not None:
            return self.family.file_key(name)
        return published_key(name) if "text_config" in self.tree else flat_key(name)

    def codec(self) -> Codec:
        """On the CPU, in float32."""
        if self.family.codec_folder:
            return speech_tokenizer.load_qwen_codec(self.folder / self.family.codec_folder, "cpu")
        return build_codec(self.codec_config, read_codec(self.folder), self.folder / "codec.pth", "cpu")

    def check_codec(self) -> None:
        """Check the names and shapes of the codec's tensors, without reading their values."""
        if self.family.codec_folder:
            return speech_tokenizer.check_qwen_codec(self.folder / self.family.codec_folder)
        return check_codec(self.codec_config, read_codec(self.folder), self.folder / "codec.pth")

    def _lazy_tensors(self, stack: ExitStack) -> list[LazyTensor]:
        return stored_weights(self.path, stack)

    def _name(self, file: str) -> str:
        return str(self.folder / file)

    def _file(self, name: str) -> bytes | None:
        path = self.folder / name
        return read_bounded(path, _TOKENIZER_BYTES) if path.is_file() else None

    def _special_ids(self) -> dict[str, int]:
        data = self._file(tokenizer_files.TOKENIZER)
        if data is not None:
            return tokenizer_files.token_ids(data, self._name(tokenizer_files.TOKENIZER))
        return self._tiktoken_parts[1]

    @property
    def _qwen_parts(self) -> tuple[bytes, bytes]:
        vocabulary, merges = (self._file(name) for name in (tokenizer_files.VOCABULARY, tokenizer_files.MERGES))
        if vocabulary is None or merges is None:
            missing = tokenizer_files.MERGES if vocabulary else tokenizer_files.VOCABULARY
            raise CheckpointError(f"{self._name(missing)} is missing; copy it from where the model was published")
        return vocabulary, merges

    @cached_property
    def _tiktoken_parts(self) -> tuple[dict[bytes, int], dict[str, int]]:
        ranks, special = (self._file(name) for name in (tokenizer_files.RANKS, tokenizer_files.SPECIAL))
        if ranks is None or special is None:
            raise CheckpointError(
                f"{self._name(tokenizer_files.TOKENIZER)} is missing, and so is tokenizer.tiktoken with "
                "special_tokens.json; copy them from where the model was published"
            )
        by_token = tokenizer_files.read_ranks(ranks, self._name(tokenizer_files.RANKS))
        return by_token, tokenizer_files.read_special(special, by_token, self._name(tokenizer_files.SPECIAL))


class GgufSource(Source):
    """A GGUF file; parts that it lacks, such as a tokenizer.json, are read from beside it."""

    @property
    def config_path(self) -> Path:
        return self.path

    @cached_property
    def tree(self) -> Tree:
        return self._packed.tree

    def codec(self) -> Codec:
        if not self._packed.codec:
            return super().codec()
        tensors = {tensor.name: tensor.read() for tensor in self._codec_tensors()}
        return build_codec(self.codec_config, tensors, self.path, "cpu")

    def check_codec(self) -> None:
        if not self._packed.codec:
            return super().check_codec()
        shapes = {tensor.name: torch.empty(tensor.shape, device="meta") for tensor in self._codec_tensors()}
        return check_codec(self.codec_config, shapes, self.path)

    def card(self) -> ModelCard:
        card = super().card()
        return replace(card, licence=card.licence or self._packed.licence)

    @cached_property
    def _packed(self) -> GgufParts:
        return unpacked(open_gguf(self.path))

    def _codec_tensors(self) -> list[LazyTensor]:
        with only_shapes():
            shapes = {name: tuple(value.shape) for name, value in Codec(self.codec_config).state_dict().items()}
        tensors = with_joined_qkv([tensor for tensor in self._packed.codec if not is_unused(tensor.name)])
        return [shaped(tensor, shapes.get(tensor.name, tensor.shape)) for tensor in tensors]

    def _lazy_tensors(self, stack: ExitStack) -> list[LazyTensor]:
        return self._packed.weights

    def _name(self, file: str) -> str:
        return f"{file} in {self.path}" if file in self._packed.files else super()._name(file)

    def _file(self, name: str) -> bytes | None:
        inside: Any = self._packed.files.get(name)
        return super()._file(name) if inside is None else inside


def open_source(path: Path) -> Source:
    """The checkpoint at a path that `find` returned."""
    return GgufSource(path) if path.suffix.lower() == GGUF else Source(path)
