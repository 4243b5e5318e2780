"""Converts an utterance to the slow AR's prompt in its family's layout, tokenising each part separately.

S2's chat:

    <|im_start|>system\\n … <|im_end|>\\n <|im_start|>user\\n TEXT <|im_end|>\\n <|im_start|>assistant\\n<|voice|>

Earlier turns of the conversation come before the last one, each with its frames. When a take is resumed, its own
frames so far come at the end.
With references, the system message contains their transcripts and their frames as semantic tokens. As upstream,
and unlike vLLM-Omni, the frames are not enclosed in <|audio_start|> and <|audio_end|>.

S1's interleave has no roles; each clip and each earlier turn is TEXT FRAMES <|im_end|>, and the text to speak is last:

    <|interleave|> <|speaker:0|>TEXT FRAMES <|im_end|> … <|speaker:0|>TEXT
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from engine.config import ModelConfig
from engine.engine_errors import InvalidUtterance
from engine.model.tokenizer import IM_END, IM_START, INTERLEAVE, VOICE, Tokenizer
from engine.types import Reference, Utterance

_CONTROL = re.compile(r"<\|(?!speaker:\d+\|>|phoneme_start\|>|phoneme_end\|>)[^|>]*\|>")
_SPEAKER = re.compile(r"<\|speaker:\d+\|>")


@dataclass(frozen=True, eq=False, slots=True)
class Prompt:
    """ids (steps,) int64 and codes (codebooks, steps) int64; codes are zero where the token is not a frame."""

    ids: np.ndarray
    codes: np.ndarray
    prefix: int = 0
    """Leading steps that are the same for any text in this voice: the references, up to the text."""
    delivered: int = 0
    """Trailing steps that are frames of the take itself, already delivered."""

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def delivered_from(self) -> int:
        """Steps before the take's own frames: the whole prompt of a new take."""
        return len(self.ids) - self.delivered


@dataclass(frozen=True, eq=False, slots=True)
class PrefillChunk:
    """Consecutive steps of a prompt, for a slot's positions from `start` on."""

    slot: int
    start: int
    ids: np.ndarray
    codes: np.ndarray
    one_by_one: bool = False
    """Whether each step is read alone, as in a frame, so that its keys are the same to the last bit."""

    @classmethod
    def of(cls, prompt: Prompt, slot: int, start: int, end: int, one_by_one: bool = False) -> PrefillChunk:
        """Steps start … end − 1 of the prompt."""
        return cls(slot, start, prompt.ids[start:end], prompt.codes[:, start:end], one_by_one)


def build_prompt(utterance: Utterance, tokenizer: Tokenizer, config: ModelConfig) -> Prompt:
    """Lay out an utterance. Raises InvalidUtterance for control tokens in text and for codes that do not fit."""
    writer = _Writer(tokenizer, config)
    refuse_control_tokens(utterance.text, "the text")
    for turn in utterance.history:
        refuse_control_tokens(turn.text, "an earlier turn")
    prefix = _LAYOUTS[config.prompt_layout](writer, utterance)
    if utterance.so_far is not None and utterance.frames_so_far:
        writer.frames(utterance.so_far, "so_far")
    return writer.prompt(prefix, utterance.frames_so_far)


def _chat(writer: _Writer, utterance: Utterance) -> int:
    """Write the chat layout; returns the number of steps of its prefix."""
    writer.control(IM_START).fixed_text("system\n")
    if utterance.references:
        writer.fixed_text("convert the provided text to speech reference to the following:\n\nText:\n")
        writer.clip_text(reference_text(utterance.references))
        writer.fixed_text("\n\nSpeech:\n")
        for reference in utterance.references:
            writer.frames(reference.codes)
    else:
        writer.fixed_text("convert the provided text to speech")
    writer.control(IM_END).fixed_text("\n")
    writer.control(IM_START).fixed_text("user\n")
    prefix = writer.steps
    for turn in utterance.history:
        writer.text(turn.text).control(IM_END).fixed_text("\n")
        writer.control(IM_START).fixed_text("assistant\n").control(VOICE).frames(turn.codes)
        writer.control(IM_END).fixed_text("\n").control(IM_START).fixed_text("user\n")
    writer.text(utterance.text).control(IM_END).fixed_text("\n")
    writer.control(IM_START).fixed_text("assistant\n").control(VOICE)
    return prefix


def _interleave(writer: _Writer, utterance: Utterance) -> int:
    """Write S1's layout, in which a clip and an earlier turn look the same; returns the steps of its prefix."""
    writer.control(INTERLEAVE)
    for reference in utterance.references:
        refuse_control_tokens(reference.text, "a reference's text")
        writer.turn(reference)
    prefix = writer.steps
    for turn in utterance.history:
        writer.turn(turn)
    writer.speaker(utterance.text)
    if not utterance.history:
        prefix = writer.steps
    writer.text(utterance.text)
    return prefix


_LAYOUTS = {"chat": _chat, "interleave": _interleave}


def reference_text(references: Sequence[Reference]) -> str:
    """The references' transcripts, one per line, each led by <|speaker:i|> unless it names its speakers itself."""
    lines = []
    for index, reference in enumerate(references):
        refuse_control_tokens(reference.text, "a reference's text")
        speaker_tag = _SPEAKER.search(reference.text)
        lines.append(reference.text if speaker_tag else f"<|speaker:{index}|>{reference.text}")
    return "\n".join(lines)


def refuse_control_tokens(text: str, source: str) -> None:
    """Raise InvalidUtterance if the text contains a token that could rewrite the prompt around it."""
    token = _CONTROL.search(text)
    if token:
        raise InvalidUtterance(
            f"{source} contains the control token {token.group()}; of these only <|speaker:N|>, "
            "<|phoneme_start|> and <|phoneme_end|> may be used"
        )


class _Writer:
    """Builds ids and codes in parallel."""

    def __init__(self, tokenizer: Tokenizer, config: ModelConfig) -> None:
        self._tokenizer, self._config = tokenizer, config
        self._ids: list[np.ndarray] = []
        self._codes: list[np.ndarray] = []

    def control(self, token: str) -> _Writer:
        return self._tokens([self._tokenizer.control(token)])

    def text(self, text: str) -> _Writer:
        return self._tokens(self._tokenizer.encode(self._tokenizer.as_read(text)))

    def clip_text(self, text: str) -> _Writer:
        """A voice's transcript, which occurs in other prompts too."""
        return self.fixed_text(self._tokenizer.as_read(text))

    def fixed_text(self, text: str) -> _Writer:
        """Fixed text of the layout."""
        return self._tokens(self._tokenizer.encode_again(text))

    def turn(self, turn: Reference) -> _Writer:
        """A text and its frames, in the interleave layout."""
        return self.speaker(turn.text).clip_text(turn.text).frames(turn.codes).control(IM_END)

    def speaker(self, text: str) -> _Writer:
        """The speaker tag of a text, unless it begins with one."""
        return self if _SPEAKER.match(text) else self.fixed_text("<|speaker:0|>")

    def frames(self, codes: np.ndarray, source: str = "a reference") -> _Writer:
        config = self._config
        if codes.shape[0] != config.num_codebooks:
            raise InvalidUtterance(
                f"{source} has {codes.shape[0]} codebooks, this model {config.num_codebooks}; "
                "it was encoded by another codec"
            )
        if codes.min() < 0 or codes[0].max() >= config.semantic_size or codes.max() >= config.codebook_size:
            raise InvalidUtterance(f"{source}'s codes lie outside this model's codebooks")
        self._ids.append(codes[0].astype(np.int64) + config.semantic_start)
        self._codes.append(codes.astype(np.int64))
        return self

    @property
    def steps(self) -> int:
        return sum(len(ids) for ids in self._ids)

    def prompt(self, prefix: int, delivered: int) -> Prompt:
        return Prompt(np.concatenate(self._ids), np.concatenate(self._codes, axis=1), prefix, delivered)

    def _tokens(self, ids: list[int]) -> _Writer:
        self._ids.append(np.asarray(ids, dtype=np.int64))
        self._codes.append(np.zeros((self._config.num_codebooks, len(ids)), dtype=np.int64))
        return self
