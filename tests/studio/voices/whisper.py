"""A Whisper model for faster-whisper that recognises the same words in every clip: real files and runs, small weights.

Its decoder says what its positions say: token embeddings are zero, the embedding of position n is the n-th unit vector,
and the output rows of the words to say are these vectors. All positions after the last word share one vector, because
rows with large weights side by side overflow in 8 bits on processors without VNNI. Only the queries and keys of the
attention to the sound, from which the times of words come, are random.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from ctranslate2.specs import WhisperSpec
from faster_whisper.tokenizer import _LANGUAGE_CODES
from tokenizers import Tokenizer, decoders, models, pre_tokenizers

WIDTH, MELS, FRAMES, POSITIONS = 64, 80, 1500, 448
TEXT_TOKENS = 50_257
TASKS = ["<|translate|>", "<|transcribe|>", "<|startoflm|>", "<|startofprev|>", "<|nospeech|>", "<|notimestamps|>"]
SPECIAL = ["<|endoftext|>", "<|startoftranscript|>", *(f"<|{code}|>" for code in _LANGUAGE_CODES[:99]), *TASKS]
TIMES = [f"<|{step * 0.02:.2f}|>" for step in range(1501)]
LOUD = 20.0
"""Logits of the spoken tokens, above those of all others."""


def write_model(folder: Path, words: list[str], seconds: float, language: str = "en") -> None:
    """A model folder; the words are recognised from the beginning to ``seconds``."""
    bytes_ = sorted(pre_tokenizers.ByteLevel.alphabet())
    word_tokens = [f"Ġ{word}" for word in words]
    text = [*bytes_, *word_tokens]
    text += [*(f"unused{number}" for number in range(TEXT_TOKENS - len(text) - 1)), ""]  # "" says: of many languages
    tokenizer = Tokenizer(models.BPE({token: number for number, token in enumerate(text)}, []))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens(SPECIAL)
    spec = WhisperSpec(1, 1, 1, 1)
    vocabulary = [*text, *SPECIAL, *TIMES]
    script = [f"<|{language}|>", "", "<|0.00|>", *word_tokens, f"<|{seconds:.2f}|>", "<|endoftext|>"]
    _fill(spec, len(vocabulary), len(script))
    for position, token in enumerate(script):  # after <|startoftranscript|> comes the language, after the task a time
        if token:
            spec.decoder.projection.weight[vocabulary.index(token), position] = LOUD
    spec.register_vocabulary(vocabulary)
    spec.config.lang_ids = [vocabulary.index(f"<|{code}|>") for code in _LANGUAGE_CODES[:99]]
    spec.config.alignment_heads = [(0, 0)]
    folder.mkdir()
    spec.validate()
    spec.save(str(folder))
    tokenizer.save(str(folder / "tokenizer.json"))


def _fill(spec: Any, vocabulary: int, steps: int) -> None:
    chance = np.random.default_rng(0)
    encoder, decoder = spec.encoder, spec.decoder
    encoder.conv1.weight, encoder.conv1.bias = _random(chance, WIDTH, MELS, 3), _zeros(WIDTH)
    encoder.conv2.weight, encoder.conv2.bias = _random(chance, WIDTH, WIDTH, 3), _zeros(WIDTH)
    encoder.position_encodings.encodings = _random(chance, FRAMES, WIDTH)
    decoder.embeddings.weight = _zeros(vocabulary, WIDTH)
    decoder.position_encodings.encodings = np.eye(WIDTH, dtype=np.float32)[np.minimum(np.arange(POSITIONS), steps - 1)]
    decoder.projection.weight = _zeros(vocabulary, WIDTH)
    for norm in (encoder.layer_norm, decoder.layer_norm):
        _neutral(norm)
    for layer in (*encoder.layer, *decoder.layer):
        _attention(layer.self_attention, [3 * WIDTH, WIDTH])
        _neutral(layer.ffn.layer_norm)
        _linear(layer.ffn.linear_0, WIDTH, WIDTH)
        _linear(layer.ffn.linear_1, WIDTH, WIDTH)
    across = decoder.layer[0].attention
    _attention(across, [WIDTH, 2 * WIDTH, WIDTH])
    across.linear[0].weight = _random(chance, WIDTH, WIDTH)
    across.linear[1].weight[:WIDTH] = _random(chance, WIDTH, WIDTH)


def _attention(attention: Any, widths: list[int]) -> None:
    _neutral(attention.layer_norm)
    for linear, width in zip(attention.linear, widths, strict=True):
        _linear(linear, width, WIDTH)


def _neutral(norm: Any) -> None:
    norm.gamma, norm.beta = np.ones(WIDTH, np.float32), _zeros(WIDTH)


def _linear(linear: Any, to: int, of: int) -> None:
    linear.weight, linear.bias = _zeros(to, of), _zeros(to)


def _zeros(*shape: int) -> np.ndarray:
    return np.zeros(shape, np.float32)


def _random(chance: np.random.Generator, *shape: int) -> np.ndarray:
    return chance.normal(size=shape).astype(np.float32)
