"""Converts an utterance to the slow AR's prompt in its family's layout, tokenising each part separately.

S2's chat:

    <|im_start|>system\\n … <|im_end|>\\n <|im_start|>user\\n TEXT <|im_end|>\\n <|im_start|>assistant\\n<|voice|>

Earlier turns of the conversation come before the last one, each with its frames. When a take is resumed, its own
frames so far come at the end.
With references, the system message contains their transcripts and their frames as semantic tokens. As upstream,
and unlike vLLM-Omni, the frames are not enclosed in <|audio_start|> and <|audio_end|>.

S1's interleave has no roles; each clip and each earlier turn is TEXT FRAMES <|im_end|>, and the text to speak is last:

    <|interleave|> <|speaker:0|>TEXT FRAMES <|im_end|> … <|speaker:0|>TEXT

Qwen3-TTS's talker reads sums of a token of text and one of the codes' control tokens, or of a voice's vector:

    [<|im_start|>user\n INSTRUCTIONS <|im_end|>\n] <|im_start|>assistant\n
    pad+TAGS pad+VOICE begin+pad CLIP'S WORDS+pad TEXT+pad end+pad pad+begin CLIP'S FRAMES

Earlier turns of a conversation have no place in it, and are left out.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from engine.config import ModelConfig, TalkerConfig
from engine.engine_errors import InvalidUtterance
from engine.model.tokenizer import IM_END, IM_START, INTERLEAVE, VOICE, Tokenizer
from engine.types import MAX_FRAMES, Reference, Utterance

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
    beside: np.ndarray | None = None
    """Tokens that are added to those of the steps, (steps,) int64, −1 where none is; None: nowhere."""
    vector: np.ndarray | None = None
    """A voice's vector, float32 (dim,), that is added to one step."""
    vector_step: int = 0
    most_frames: int = MAX_FRAMES
    """A take with more has missed its end."""

    def part(self, start: int, end: int) -> Prompt:
        """Steps start … end − 1."""
        beside = None if self.beside is None else self.beside[start:end]
        vector = self.vector if start <= self.vector_step < end else None
        return Prompt(
            self.ids[start:end],
            self.codes[:, start:end],
            beside=beside,
            vector=vector,
            vector_step=self.vector_step - start,
        )

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def delivered_from(self) -> int:
        """Steps before the take's own frames: the whole prompt of a new take."""
        return len(self.ids) - self.delivered


def last_steps(prompts: Sequence[Prompt], steps: Sequence[int]) -> Prompt:
    """One step of each of these prompts, of one layout; none of them has a vector."""
    pairs = list(zip(prompts, steps, strict=True))
    beside = [prompt.beside[step] for prompt, step in pairs if prompt.beside is not None]
    ids, codes = np.array([p.ids[step] for p, step in pairs]), np.stack([p.codes[:, step] for p, step in pairs], 1)
    return Prompt(ids, codes, beside=np.array(beside) if beside else None)


@dataclass(frozen=True, eq=False, slots=True)
class PrefillChunk:
    """Consecutive steps of a prompt, for a slot's positions from `start` on."""

    slot: int
    start: int
    steps: Prompt
    one_by_one: bool = False
    """Whether each step is read alone, as in a frame, so that its keys are the same to the last bit."""

    @classmethod
    def of(cls, prompt: Prompt, slot: int, start: int, end: int, one_by_one: bool = False) -> PrefillChunk:
        """Steps start … end − 1 of the prompt."""
        return cls(slot, start, prompt.part(start, end), one_by_one)


def build_prompt(utterance: Utterance, tokenizer: Tokenizer, config: ModelConfig) -> Prompt:
    """Lay out an utterance. Raises InvalidUtterance for control tokens in text and for codes that do not fit."""
    writer = _Writer(tokenizer, config)
    refuse_control_tokens(utterance.text, "the text")
    if config.talker is None and (utterance.speaker or utterance.instructions):
        what = "voices of its own" if utterance.speaker else "instructions"
        raise InvalidUtterance(f"this model knows no {what}; send references of a voice, and the text alone")
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


def _talker(writer: _Writer, utterance: Utterance) -> int:
    """Write the talker's layout; the text follows its prefix."""
    talker, references = writer.talker, utterance.references
    _refuse_unable(talker, utterance)
    if utterance.instructions:
        refuse_control_tokens(utterance.instructions, "the instructions")
        writer.tokens([talker.im_start]).fixed_text(f"user\n{utterance.instructions}")
        writer.tokens([talker.im_end]).fixed_text("\n")
    writer.tokens([talker.im_start]).fixed_text("assistant\n")
    language = _language(talker, utterance)
    tags = [talker.no_think, talker.think_begin, talker.think_end]
    if language is not None:
        tags = [talker.think, talker.think_begin, language, talker.think_end]
    writer.tokens(tags, beside=talker.text_pad)
    if utterance.speaker:
        writer.tokens([talker.speakers[utterance.speaker.lower()]], beside=talker.text_pad)
    elif references:
        writer.vector(references)
    writer.tokens([talker.pad], beside=talker.text_begin)
    clips = [reference for reference in references if reference.frames]
    if clips:
        words = " ".join(clip.text for clip in clips)
        refuse_control_tokens(words, "a reference's text")
        writer.clip_text(words, beside=talker.pad)
    prefix = writer.steps
    writer.text(utterance.text, beside=talker.pad)
    tokens = writer.steps - prefix
    if not tokens:
        raise InvalidUtterance(
            "the text has nothing but tags, which this model does not know; there is nothing to speak"
        )
    least, each = _FRAMES_CLONED if talker.kind == "base" else _FRAMES_OWN
    writer.most_frames = max(least, each * tokens)
    writer.tokens([talker.text_end], beside=talker.pad)
    writer.tokens([talker.begin], beside=talker.text_pad)
    for clip in clips:
        writer.frames(clip.codes)
    return prefix


def _refuse_unable(talker: TalkerConfig, utterance: Utterance) -> None:
    """Raise InvalidUtterance if a model of this kind cannot speak like this."""
    known = ", ".join(sorted(talker.speakers))
    if utterance.references and talker.kind != "base":
        own = f"choose one of its own voices: {known}" if talker.kind == "custom_voice" else "describe the voice"
        raise InvalidUtterance(f"this model cannot clone a clip; {own}, or load a Base model of Qwen3-TTS")
    if utterance.speaker and utterance.speaker.lower() not in talker.speakers:
        raise InvalidUtterance(
            f"this model has no voice {utterance.speaker!r} of its own; "
            + (f"it has {known}" if known else "load a CustomVoice model of Qwen3-TTS for that")
        )
    if utterance.instructions and not talker.takes_instructions:
        able = "the CustomVoice model of 1.7B takes instructions, and the VoiceDesign model a voice's description"
        raise InvalidUtterance(f"this model takes no instructions; of Qwen3-TTS, {able}")


def _language(talker: TalkerConfig, utterance: Utterance) -> int | None:
    """The token of an utterance's language; None: the model decides. Raises InvalidUtterance."""
    name = (utterance.language or "auto").lower()
    if name not in talker.languages:
        name = _LANGUAGES.get(re.split("[-_]", name)[0], name)
    dialect = talker.dialects.get((utterance.speaker or "").lower())
    if dialect and name in ("auto", "chinese"):
        name = dialect
    if name == "auto":
        return None
    if name not in talker.languages:
        known = ", ".join(sorted(talker.languages))
        raise InvalidUtterance(f"this model does not speak {utterance.language!r}; it speaks {known}")
    return talker.languages[name]


def spoken_languages(talker: TalkerConfig) -> tuple[str, ...]:
    """ISO 639-1 codes of the languages that an utterance may name."""
    return tuple(code for code, name in _LANGUAGES.items() if name in talker.languages)


_LAYOUTS = {"chat": _chat, "interleave": _interleave, "talker": _talker}
_LANGUAGES = {
    "zh": "chinese", "en": "english", "ja": "japanese", "ko": "korean", "de": "german", "fr": "french", "ru": "russian",
    "pt": "portuguese", "es": "spanish", "it": "italian",
}  # fmt: skip
_FRAMES_CLONED, _FRAMES_OWN = (192, 12), (400, 40)
"""Frames that a take may have at least, and per token of its text: in a clip's voice, and in the model's own."""


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
        self._beside: list[np.ndarray] = []
        self._vector: tuple[np.ndarray, int] | None = None
        self.most_frames = MAX_FRAMES

    @property
    def talker(self) -> TalkerConfig:
        assert self._config.talker is not None
        return self._config.talker

    def control(self, token: str) -> _Writer:
        return self.tokens([self._tokenizer.control(token)])

    def text(self, text: str, beside: int = -1) -> _Writer:
        return self.tokens(self._tokenizer.encode(self._tokenizer.as_read(text)), beside)

    def clip_text(self, text: str, beside: int = -1) -> _Writer:
        """A voice's transcript, which occurs in other prompts too."""
        return self.fixed_text(self._tokenizer.as_read(text), beside)

    def fixed_text(self, text: str, beside: int = -1) -> _Writer:
        """Fixed text of the layout."""
        return self.tokens(self._tokenizer.encode_again(text), beside)

    def vector(self, references: Sequence[Reference]) -> _Writer:
        """The step of a voice's vector, the mean of its clips'."""
        vectors, size = [reference.vector for reference in references], self.talker.vector_size
        for vector in vectors:
            if vector is None or vector.shape != (size,):
                has = "no vector" if vector is None else f"a vector of {vector.size} values"
                raise InvalidUtterance(
                    f"a reference has {has}, but this model's voices have {size}; encode its clip again with this model"
                )
        mean = np.stack(vectors).mean(0)  # type: ignore[arg-type]
        self._vector = np.asarray(mean, np.float32), self.steps
        return self.tokens([self.talker.text_pad])

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
        self._beside.append(np.full(codes.shape[1], -1))
        return self

    @property
    def steps(self) -> int:
        return sum(len(ids) for ids in self._ids)

    def prompt(self, prefix: int, delivered: int) -> Prompt:
        beside = np.concatenate(self._beside) if self._config.talker else None
        vector, step = self._vector or (None, 0)
        ids, codes = np.concatenate(self._ids), np.concatenate(self._codes, axis=1)
        return Prompt(ids, codes, prefix, delivered, beside, vector, step, self.most_frames)

    def tokens(self, ids: list[int], beside: int = -1) -> _Writer:
        """beside: a token that is added to each of them; −1: none."""
        self._ids.append(np.asarray(ids, dtype=np.int64))
        self._codes.append(np.zeros((self._config.num_codebooks, len(ids)), dtype=np.int64))
        self._beside.append(np.full(len(ids), beside))
        return self
