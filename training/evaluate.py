"""Measure a checkpoint on a CPU, through the engine: words, stops, lengths, voices, speed. Writes evaluation.json.

    python -m training.evaluate assets/fry --root UNPACKED_DEBIAN_PACKAGES --pictures OUT

Sentences that training never had. Word error is that of a weak recogniser, so read it against `wer_source`, the
synthesiser's own audio of the same sentences.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import tempfile
import time
import wave
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from engine import Engine, EngineConfig, Reference, Sampling, Utterance
from engine.codec import Codec, load_codec
from training.clips import write_wave
from training.measures import (
    Recogniser,
    median_pitch,
    mel_frames,
    spelled,
    voice_print,
    voiced_share,
    warped_distance,
    word_errors,
)
from training.pictures import draw
from training.synthesise import Synthesiser
from training.texts.evaluation import evaluation_sentences
from training.voices import DEFAULT_VOICE, VOICES

SIZE_FILES = ("config.json", "model.safetensors", "tokenizer.json", "codec.pth", "codec.yaml")
LONGEST = 400
"""Frames a take may have; one that gets there did not stop by itself."""


@dataclass(frozen=True, eq=False, slots=True)
class Take:
    """What the engine said, and how long it took."""

    audio: np.ndarray
    stopped: bool
    first_audio: float
    seconds: float


SPEED_TEXT = "The ferry leaves the harbour at seven, so please be on the pier a little before that."


async def speed(engine: Engine, takes: int = 12) -> dict[str, float]:
    """Real-time factor of the fastest take, which other programs disturbed least, and medians."""
    made = [await speak(engine, Utterance(SPEED_TEXT, (), Sampling(seed=i), LONGEST)) for i in range(takes)]
    factors = [take.seconds * engine.info.sample_rate / len(take.audio) for take in made]
    return {"rtf": min(factors), "rtf_median": float(np.median(factors)), "first_audio_s": _median_first(made)}


def _median_first(takes: list[Take]) -> float:
    return float(np.median([take.first_audio for take in takes]))


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


class Evaluation:
    """An engine, a recogniser and the synthesiser that the engine's model learnt from."""

    def __init__(self, engine: Engine, codec: Codec, synthesiser: Synthesiser, arguments: argparse.Namespace) -> None:
        self.engine, self.synthesiser = engine, synthesiser
        self.pictures: Path | None = arguments.pictures
        self.temperature: float = arguments.temperature
        self.codec, self.recogniser = codec, Recogniser()
        self.rate = engine.info.sample_rate

    def source(self, voice: int, text: str) -> np.ndarray:
        """The synthesiser's own audio, float32."""
        spoken = self.synthesiser.speak(VOICES[voice], text)
        if spoken is None:
            raise RuntimeError(f"the synthesiser said nothing to {text!r}")
        return spoken.audio.astype(np.float32) / 32768

    async def round_trip(self, audio: np.ndarray) -> np.ndarray:
        """Through the codec and back."""
        reference = await self.engine.encode_reference(audio, self.rate, "unused")
        codes = torch.from_numpy(reference.codes)[None].long()
        with torch.inference_mode():
            return self.codec.decode(codes)[0, 0].numpy()

    async def words(self, texts: list[str], seed: int) -> dict[str, float]:
        """Word error of source, round trip and plain takes; stops, lengths, distance, speed."""
        errors, words = {"source": 0, "codec": 0, "generated": 0}, 0
        takes, stopped, fitting, distances, ratios = [], 0, 0, [], []
        for index, text in enumerate(texts):
            said = spelled(text)
            words += len(said)
            source = self.source(DEFAULT_VOICE, text)
            sounds = {"source": source, "codec": await self.round_trip(source)}
            take = await speak(self.engine, Utterance(text, (), self._sampling(seed + index), LONGEST))
            sounds["generated"] = take.audio
            for name, audio in sounds.items():
                errors[name] += word_errors(said, self.recogniser.words(audio))
            takes.append(take)
            ratios.append(len(take.audio) / len(source))
            stopped += take.stopped
            fitting += take.stopped and abs(ratios[-1] - 1) <= 0.3
            if index < 12:
                distances.append([warped_distance(mel_frames(source), mel_frames(s)) for s in sounds.values()][1:])
            if self.pictures and index < 6:
                self._keep(f"{index}", text, sounds)
        return {
            **{f"wer_{name}": count / words for name, count in errors.items()},
            "stop_rate": stopped / len(texts),
            "stop_and_length_rate": fitting / len(texts),
            "length_ratio": float(np.median(ratios)),
            "mel_distance_codec": float(np.mean([d[0] for d in distances])),
            "mel_distance_generated": float(np.mean([d[1] for d in distances])),
            "sentences": len(texts),
        }

    async def voices(self, texts: list[str], clips: Path, seed: int) -> dict[str, float]:
        """How often the nearest reference clip of a cloned take is the right one, and the clones' word error."""
        names = [v.name for v in VOICES]
        references, prints = [], []
        for name in names:
            audio = read_wave(clips / f"{name}.wav")
            words = (clips / f"{name}.txt").read_text(encoding="utf-8").strip()
            references.append(await self.engine.encode_reference(audio, self.rate, words))
            prints.append(voice_print(audio))
        hits = errors = source_errors = words_said = stopped = 0
        confused: dict[str, str] = {}
        for voice, reference in enumerate(references):
            for index, text in enumerate(texts):
                take = await self._clone(text, reference, seed + index)
                stopped += take.stopped
                distance = [float(np.linalg.norm(voice_print(take.audio) - p)) for p in prints]
                nearest = int(np.argmin(distance))
                hits += nearest == voice
                if nearest != voice:
                    confused[names[voice]] = names[nearest]
                errors += word_errors(spelled(text), self.recogniser.words(take.audio))
                source_errors += word_errors(spelled(text), self.recogniser.words(self.source(voice, text)))
                words_said += len(spelled(text))
        count = len(references) * len(texts)
        print("taken for another voice:", confused or "none")
        return {
            "voice_match": hits / count,
            "voice_count": len(references),
            "wer_cloned_source": source_errors / words_said,
            "wer_cloned": errors / words_said,
            "stop_rate_cloned": stopped / count,
        }

    async def tags(self, texts: list[str], seed: int) -> dict[str, float]:
        """What each tag does to the default voice: factors on duration and pitch; how often a whisper has a pitch."""
        takes: dict[str, list[Take]] = {}
        for tag in ("", "[fast]", "[slow]", "[high]", "[low]", "[whisper]"):
            tagged = [Utterance(f"{tag} {t}".strip(), (), self._sampling(seed), LONGEST) for t in texts]
            takes[tag] = [await speak(self.engine, utterance) for utterance in tagged]

        def factor(tag: str, measure: Callable[[np.ndarray], float]) -> float:
            pairs = zip(takes[tag], takes[""], strict=True)
            return float(np.mean([measure(a.audio) / max(measure(b.audio), 1e-9) for a, b in pairs]))

        return {
            "fast_duration": factor("[fast]", len),
            "slow_duration": factor("[slow]", len),
            "high_pitch": factor("[high]", median_pitch),
            "low_pitch": factor("[low]", median_pitch),
            "whisper_voiced": factor("[whisper]", voiced_share),
        }

    async def _clone(self, text: str, reference: Reference, seed: int) -> Take:
        return await speak(self.engine, Utterance(text, (reference,), self._sampling(seed), LONGEST))

    def _sampling(self, seed: int) -> Sampling:
        return Sampling(temperature=self.temperature, seed=seed)

    def _keep(self, name: str, text: str, sounds: dict[str, np.ndarray]) -> None:
        assert self.pictures is not None
        draw(self.pictures / f"{name}.png", text, sounds)
        for kind, audio in sounds.items():
            write_wave(self.pictures / f"{name}_{kind}.wav", np.clip(audio, -1, 1) * 32767)


def read_wave(path: Path) -> np.ndarray:
    """A 16-bit mono file as float32."""
    with wave.open(str(path)) as file:
        return np.frombuffer(file.readframes(file.getnframes()), "<i2").astype(np.float32) / 32768


async def measure(arguments: argparse.Namespace, scratch: Path) -> dict[str, float]:
    """All figures of one checkpoint."""
    engine = Engine.start(EngineConfig(str(arguments.checkpoint), device="cpu"))
    try:
        figures = {"cores": float(os.cpu_count() or 1)} | await speed(engine)
        if arguments.speed_only:
            return {name: round(value, 4) for name, value in figures.items()}
        codec = load_codec(arguments.checkpoint, "cpu")
        synthesiser = Synthesiser(arguments.root, scratch / "source.wav")
        evaluation = Evaluation(engine, codec, synthesiser, arguments)
        held = [judged.text for judged in evaluation_sentences() if judged.text == judged.words]
        texts = held[:: max(1, len(held) // arguments.sentences)][: arguments.sentences]
        figures |= await evaluation.words(texts, seed=100)
        print(json.dumps(figures, indent=1), flush=True)
        if arguments.voice_sentences:
            more = [s for s in held if s not in texts][:: max(1, len(held) // 20)][: arguments.voice_sentences]
            figures |= await evaluation.voices(more, arguments.checkpoint / "voices", seed=500)
            figures |= await evaluation.tags(more[:3], seed=900)
    finally:
        engine.stop()
    size = sum((arguments.checkpoint / name).stat().st_size for name in SIZE_FILES)
    return {name: round(value, 4) for name, value in figures.items()} | {"size_mib": round(size / 2**20, 1)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("checkpoint", type=Path)
    parser.add_argument("--root", type=Path, default=Path("/"))
    parser.add_argument("--sentences", type=int, default=60)
    parser.add_argument("--voice-sentences", type=int, default=4)
    parser.add_argument("--speed-only", action="store_true", help="measure speed again, keep the other figures")
    parser.add_argument("--temperature", type=float, default=Sampling().temperature)
    parser.add_argument("--pictures", type=Path)
    arguments = parser.parse_args()
    if arguments.pictures:
        arguments.pictures.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        figures = asyncio.run(measure(arguments, Path(scratch)))
    kept = arguments.checkpoint / "evaluation.json"
    if arguments.speed_only:
        figures = json.loads(kept.read_text()) | figures
    kept.write_text(json.dumps(figures, indent=1) + "\n")
    print(json.dumps(figures, indent=1))


if __name__ == "__main__":
    main()
