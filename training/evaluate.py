"""Measures a checkpoint on a CPU, through the engine with its default sampling. Writes evaluation.json into it.

    python -m training.evaluate assets/fry TEACHER.pt VOICES --scratch WORK --against OLD_CHECKPOINT --pictures OUT
    python -m training.evaluate assets/fry --only-words --weights int8 --scratch WORK --out int8.json
    python -m training.evaluate assets/fry --people CLIPS --scratch WORK --out people.json

Uses sentences that are not in training (training/texts/data/evaluation.txt). Every figure that is a mean over sentences
has a 95 % bootstrap interval, under its name with `_95`. `source` is the teacher's own audio of the sentences.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import get_args

import numpy as np
import torch

from engine import Engine, EngineConfig, Reference, Sampling, Utterance
from engine.codec import Codec, load_codec
from engine.config import Weights
from training.judging.judges import FilterSpeakers, Listener, Naturalness, Speakers, VoiceJudge
from training.judging.measures import interval, median_pitch, read_wave, voiced_share
from training.judging.people import Cloning, judge_people, read_people
from training.judging.pictures import draw
from training.teacher.clips import TEXTS, write_wave
from training.teacher.synthesise import Synthesiser
from training.teacher.voices import DEFAULT, STRANGERS, Speaker
from training.texts.evaluation import Judged, evaluation_sentences
from training.texts.reading import Phonemiser

SIZE_FILES = ("model.safetensors", "codec.pth")
PEOPLE_TESTED, PEOPLES_SENTENCES = 40, 2
LONGEST = 400
"""Maximum frames of a take; one that reaches it did not stop by itself."""
SPEED_TEXT = "The ferry leaves the harbour at seven, so please be on the pier a little before that."


@dataclass(frozen=True, eq=False, slots=True)
class Take:
    """The engine's output, and the time it took."""

    audio: np.ndarray
    stopped: bool
    first_audio: float
    seconds: float


async def speak(engine: Engine, utterance: Utterance) -> Take:
    """One take from start to end."""
    started = time.monotonic()
    first, reason = 0.0, None
    pieces: list[np.ndarray] = []
    async for chunk in engine.speak(utterance):
        if not pieces and len(chunk.pcm):
            first = time.monotonic() - started
        pieces.append(chunk.pcm)
        reason = chunk.finish_reason
    return Take(np.concatenate(pieces), reason == "stop", first, time.monotonic() - started)


@dataclass(slots=True)
class Tally:
    """The judges' results for one kind of audio, sentence by sentence."""

    wrong: dict[str, list[int]] = field(default_factory=lambda: {"base": [], "tiny": []})
    words: dict[str, list[int]] = field(default_factory=lambda: {"base": [], "tiny": []})
    scores: list[float] = field(default_factory=list)
    is_number: list[bool] = field(default_factory=list)

    def add(self, listeners: dict[str, Listener], audio: np.ndarray, sentence: Judged) -> None:
        """Count one sentence's word errors."""
        for size, listener in listeners.items():
            wrong, words = listener.errors(audio, sentence.text, sentence.words)
            self.wrong[size].append(wrong)
            self.words[size].append(words)

    def figures(self, kind: str) -> dict[str, object]:
        """wer_base, wer_tiny and mos of this kind, with their intervals, and sentences with numbers separately."""
        suffix = f"_{kind}" if kind else ""
        figures: dict[str, object] = {}
        for size in ("base", "tiny"):
            figures |= _rate(f"wer_{size}{suffix}", self.wrong[size], self.words[size])
        if any(self.is_number):
            chosen = [i for i, is_number in enumerate(self.is_number) if is_number]
            wrong, words = ([values["base"][i] for i in chosen] for values in (self.wrong, self.words))
            figures |= _rate(f"wer_base{suffix}_numbers", wrong, words)
        low, high = interval(self.scores)
        return figures | {f"mos{suffix}": float(np.mean(self.scores)), f"mos{suffix}_95": [low, high]}


def _rate(name: str, over: Sequence[int], under: Sequence[int]) -> dict[str, object]:
    return {name: sum(over) / max(1, sum(under)), f"{name}_95": list(interval(over, under))}


class Evaluation:
    """An engine, its teacher and the judges."""

    def __init__(self, engine: Engine, codec: Codec, arguments: argparse.Namespace) -> None:
        self.engine, self.codec = engine, codec
        self.rate = engine.info.sample_rate
        self.pictures: Path | None = arguments.pictures
        self.teacher = Synthesiser(arguments.teacher, arguments.voices, torch.device("cpu"))
        self.phonemiser = Phonemiser()
        self.listeners = {"base": Listener("base", arguments.scratch), "tiny": Listener("tiny.en", arguments.scratch)}
        self.naturalness, self.speakers = Naturalness(), Speakers()

    def source(self, speaker: Speaker, spoken: str) -> np.ndarray:
        """The teacher's own audio, float32 at 44.1 kHz."""
        tokens = self.phonemiser.tokens(spoken, speaker.british)
        spoken_audio = None if tokens is None else self.teacher.speak(speaker, spoken, tokens)
        if spoken_audio is None:
            raise SystemExit(f"the teacher could not say {spoken!r}")
        return spoken_audio.audio.astype(np.float32) / 32768

    def judge(self, tally: Tally, audio: np.ndarray, sentence: Judged) -> None:
        """Add one sentence's errors and score."""
        tally.add(self.listeners, audio, sentence)
        tally.scores.append(self.naturalness.score(audio))
        tally.is_number.append(sentence.kind == "number")

    async def round_trip(self, audio: np.ndarray) -> np.ndarray:
        """Encode with the codec and decode again."""
        reference = await self.engine.encode_reference(audio, self.rate, "unused")
        return decoded(self.codec, reference)

    async def default_voice(self, sentences: list[Judged], seed: int, has_teacher: bool = True) -> dict[str, object]:
        """Source, round trip and takes of every sentence in the default voice; stops and lengths."""
        tallies = {"source": Tally(), "codec": Tally(), "": Tally()}
        stopped, fitting = [], []
        for index, sentence in enumerate(sentences):
            take = await self._say(sentence.text, None, seed + index)
            sounds = {"": take.audio}
            if has_teacher:
                source = self.source(DEFAULT, sentence.words)
                sounds |= {"source": source, "codec": await self.round_trip(source)}
                fitting.append(take.stopped and abs(len(take.audio) / len(source) - 1) <= 0.3)
            for kind, audio in sounds.items():
                self.judge(tallies[kind], audio, sentence)
            stopped.append(take.stopped)
            if self.pictures and index < 10:
                draw(self.pictures / f"{index}.png", sentence.text, {kind or "spoken": a for kind, a in sounds.items()})
                for kind, audio in sounds.items():
                    write_wave(self.pictures / f"{index}_{kind or 'spoken'}.wav", np.clip(audio, -1, 1) * 32767)
        figures: dict[str, object] = {"sentences": len(sentences), "stop_rate": float(np.mean(stopped))}
        if fitting:
            figures["stop_and_length_rate"] = float(np.mean(fitting))
        for kind, tally in tallies.items():
            figures |= tally.figures(kind) if tally.scores else {}
        return figures

    async def bundled_voices(self, sentences: list[Judged], clips: Path, seed: int) -> dict[str, object]:
        """Clones of the bundled clips: words, naturalness, and whether the nearest clip is the correct one."""
        names = sorted(path.stem for path in clips.glob("*.wav"))
        references, prints = {}, {}
        for name in names:
            audio = read_wave(clips / f"{name}.wav")
            words = (clips / f"{name}.txt").read_text(encoding="utf-8").strip()
            references[name] = await self.engine.encode_reference(audio, self.rate, words)
            prints[name] = self.speakers.print(audio)
        tally, hits, confused = Tally(), [], []
        for name in names:
            for index, sentence in enumerate(sentences):
                take = await self._say(sentence.text, references[name], seed + index)
                self.judge(tally, take.audio, sentence)
                nearest = _nearest(self.speakers.print(take.audio), prints)
                hits.append(nearest == name)
                confused += [] if nearest == name else [f"{name} for {nearest}"]
        print("mistaken for another voice:", confused or "none")
        low, high = interval(hits)
        return tally.figures("clones") | {
            "voice_match": float(np.mean(hits)), "voice_match_95": [low, high], "voice_count": len(names),
        }  # fmt: skip

    async def strangers(self, sentences: list[Judged], clips: Path, seed: int) -> dict[str, object]:
        """Clones of voices outside training: whether their own reference is the nearest among all, 16 or more.

        For comparison the teacher's own audio in these voices, unchanged and through the codec: the upper limit for a
        clone.
        """
        prints = {path.stem: self.speakers.print(read_wave(path)) for path in clips.glob("*.wav")}
        references: dict[str, Reference] = {}
        for stranger, text in zip(STRANGERS, TEXTS, strict=False):
            audio = self.source(stranger, text)
            references[stranger.name] = await self.engine.encode_reference(audio, self.rate, text)
            prints[stranger.name] = self.speakers.print(audio)
        tally, hits = Tally(), dict[str, list[bool]](source=[], codec=[], clone=[])
        for stranger in STRANGERS:
            for index, sentence in enumerate(sentences):
                take = await self._say(sentence.text, references[stranger.name], seed + index)
                self.judge(tally, take.audio, sentence)
                source = self.source(stranger, sentence.words)
                sounds = {"source": source, "codec": await self.round_trip(source), "clone": take.audio}
                for kind, audio in sounds.items():
                    hits[kind].append(_nearest(self.speakers.print(audio), prints) == stranger.name)
        low, high = interval(hits["clone"])
        return tally.figures("held_out") | {
            "held_out_match_source": float(np.mean(hits["source"])),
            "held_out_match_codec": float(np.mean(hits["codec"])),
            "held_out_match": float(np.mean(hits["clone"])), "held_out_match_95": [low, high],
        }  # fmt: skip

    async def tags(self, texts: list[str], seed: int) -> dict[str, object]:
        """The effect of each tag on the default voice: factors on duration and pitch; how often a whisper has a
        pitch."""
        takes: dict[str, list[np.ndarray]] = {}
        for tag in ("", "[fast]", "[slow]", "[high]", "[low]", "[whisper]"):
            takes[tag] = [(await self._say(f"{tag} {text}".strip(), None, seed)).audio for text in texts]

        def factor(tag: str, measure: Callable[[np.ndarray], float]) -> float:
            pairs = zip(takes[tag], takes[""], strict=True)
            return float(np.mean([measure(a) / max(measure(b), 1e-9) for a, b in pairs]))

        return {
            "fast_duration": factor("[fast]", len),
            "slow_duration": factor("[slow]", len),
            "high_pitch": factor("[high]", median_pitch),
            "low_pitch": factor("[low]", median_pitch),
            "whisper_voiced": float(np.mean([voiced_share(audio) for audio in takes["[whisper]"]])),
        }

    async def _say(self, text: str, reference: Reference | None, seed: int) -> Take:
        return await say(self.engine, text, reference, seed)


async def say(engine: Engine, text: str, reference: Reference | None, seed: int) -> Take:
    """A take with default sampling."""
    references = () if reference is None else (reference,)
    return await speak(engine, Utterance(text, references, Sampling(seed=seed), LONGEST))


@torch.inference_mode()
def decoded(codec: Codec, reference: Reference) -> np.ndarray:
    """A reference's codes as audio, in its own voice."""
    return codec.decode(torch.from_numpy(reference.codes)[None].long())[0, 0].numpy()


async def clones_of_people(
    engine: Engine, codec: Codec, sentences: list[Judged], folder: Path, scratch: Path, seed: int
) -> dict[str, object]:
    """Clones of real people, by two judges: see `training.judging.people`."""
    listener = Listener("base", scratch)

    async def encode(audio: np.ndarray) -> Reference:
        words = " ".join(listener.words(audio)) or "Words."
        return await engine.encode_reference(audio, engine.info.sample_rate, words)

    async def clone(reference: Reference, number: int) -> np.ndarray:
        return (await say(engine, sentences[number].text, reference, seed + number)).audio

    judges: dict[str, VoiceJudge] = {"resemblyzer": Speakers(), "voicefilter": FilterSpeakers()}
    cloning = Cloning(encode, clone, partial(decoded, codec))
    people, score = read_people(folder), Naturalness().score
    return await judge_people(people, cloning, judges, score, PEOPLE_TESTED, PEOPLES_SENTENCES)


def _nearest(sound: np.ndarray, prints: dict[str, np.ndarray]) -> str:
    return max(prints, key=lambda name: float(sound @ prints[name]))


async def speed(checkpoint: Path, against: Path | None, takes: int = 12) -> dict[str, object]:
    """Real-time factor and first audio; two checkpoints take turns, so that both run under the same conditions."""
    folders = [checkpoint] + ([against] if against else [])
    engines = [Engine.start(EngineConfig(str(folder), device="cpu")) for folder in folders]
    taken: list[list[Take]] = [[] for _ in engines]
    try:
        for seed in range(takes):
            for engine, kept in zip(engines, taken, strict=True):
                kept.append(await speak(engine, Utterance(SPEED_TEXT, (), Sampling(seed=seed), LONGEST)))
        rate = engines[0].info.sample_rate
    finally:
        for engine in engines:
            engine.stop()
    factors = [[take.seconds * rate / len(take.audio) for take in kept] for kept in taken]
    firsts = [[take.first_audio for take in kept] for kept in taken]
    figures: dict[str, object] = {
        "cores": os.cpu_count() or 1, "rtf": min(factors[0]), "rtf_median": float(np.median(factors[0])),
        "first_audio_s": float(np.median(firsts[0])),
    }  # fmt: skip
    if against:
        figures["rtf_ratio"] = float(np.median(factors[0]) / np.median(factors[1]))
        figures["first_audio_ratio"] = float(np.median(firsts[0]) / np.median(firsts[1]))
    return figures


async def only_words(arguments: argparse.Namespace, sentences: list[Judged]) -> dict[str, object]:
    """Word errors of the default voice, as `Evaluation.default_voice` counts them, also sentence by sentence."""
    listeners = {"base": Listener("base", arguments.scratch), "tiny": Listener("tiny.en", arguments.scratch)}
    config = EngineConfig(str(arguments.checkpoint), device="cpu", weights=arguments.weights, max_rows=1)
    engine, tally, stopped = Engine.start(config), Tally(), []
    try:
        for index, sentence in enumerate(sentences):
            take = await speak(engine, Utterance(sentence.text, (), Sampling(seed=100 + index), LONGEST))
            tally.add(listeners, take.audio, sentence)
            stopped.append(take.stopped)
    finally:
        engine.stop()
    rates = [_rate(f"wer_{size}", tally.wrong[size], tally.words[size]) for size in listeners]
    shared = {"weights": engine.info.weights, "sentences": len(sentences), "stop_rate": float(np.mean(stopped))}
    return shared | rates[0] | rates[1] | {"wrong": tally.wrong, "words": tally.words["base"]}


async def measure(arguments: argparse.Namespace) -> dict[str, object]:
    """All figures of one checkpoint."""
    checkpoint: Path = arguments.checkpoint
    if arguments.only_words:
        sentences = evaluation_sentences()
        return await only_words(arguments, sentences[:: max(1, len(sentences) // arguments.sentences)])
    figures = await speed(checkpoint, arguments.against) if arguments.teacher else {}
    sentences = evaluation_sentences()
    sentences = sentences[:: max(1, len(sentences) // arguments.sentences)]
    few = [sentence for sentence in sentences if sentence.kind != "number"][:: max(1, len(sentences) // 8)][:6]
    engine, codec = Engine.start(EngineConfig(str(checkpoint), device="cpu")), load_codec(checkpoint, "cpu")
    try:
        if arguments.people:
            figures |= await clones_of_people(engine, codec, few, arguments.people, arguments.scratch, 800)
        if not arguments.teacher:
            return figures
        evaluation = Evaluation(engine, codec, arguments)
        figures |= await evaluation.default_voice(sentences, 100, has_teacher=not arguments.only_model)
        print(json.dumps(figures, indent=1), flush=True)
        figures |= await evaluation.bundled_voices(few, checkpoint / "voices", 500)
        if not arguments.only_model:
            figures |= await evaluation.strangers(few, checkpoint / "voices", 700)
        figures |= await evaluation.tags([sentence.text for sentence in few[:4]], 900)
    finally:
        engine.stop()
    size = sum((checkpoint / name).stat().st_size for name in SIZE_FILES)
    return figures | {"size_mib": size / 2**20}


def _rounded(value: object) -> object:
    if isinstance(value, list):
        return [_rounded(item) for item in value]
    return round(value, 4) if isinstance(value, float) else value


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("checkpoint", type=Path)
    parser.add_argument("teacher", type=Path, nargs="?")
    parser.add_argument("voices", type=Path, nargs="?")
    parser.add_argument("--scratch", type=Path, required=True, help="where Whisper's weights are put together")
    parser.add_argument("--sentences", type=int, default=219)
    parser.add_argument("--against", type=Path, help="another checkpoint, for speed beside it")
    parser.add_argument("--only-model", action="store_true", help="leave the teacher's own audio and strangers out")
    parser.add_argument("--only-words", action="store_true", help="only word errors of the default voice; no teacher")
    parser.add_argument("--weights", choices=get_args(Weights), help="with --only-words: how weights are held")
    parser.add_argument("--people", type=Path, help="recordings CORPUS-PERSON-NUMBER.* of people to clone; no teacher")
    parser.add_argument("--pictures", type=Path)
    parser.add_argument("--out", type=Path, help="default: evaluation.json in the checkpoint")
    arguments = parser.parse_args()
    if not arguments.voices and not arguments.only_words and not arguments.people:
        parser.error("TEACHER.pt and VOICES are needed, except with --only-words or --people")
    if arguments.only_words and (arguments.voices or arguments.people):
        parser.error("--only-words takes neither TEACHER.pt and VOICES nor --people")
    if not arguments.voices and not arguments.out:
        parser.error("--out is needed for a part of the figures")
    if arguments.weights and not arguments.only_words:
        parser.error("--weights needs --only-words")
    if arguments.pictures:
        arguments.pictures.mkdir(parents=True, exist_ok=True)
    figures = {name: _rounded(value) for name, value in asyncio.run(measure(arguments)).items()}
    (arguments.out or arguments.checkpoint / "evaluation.json").write_text(json.dumps(figures, indent=1) + "\n")
    print(json.dumps(figures, indent=1))


if __name__ == "__main__":
    main()
