"""Stage b: trains the decoder from frozen codes to the waveform; multi-scale spectra first, then also discriminators.

    python -m training.codec.train_decoder DATA WORK --seconds 900

Reads WORK/codes.pt, WORK/ear.pt and WORK/voiceprint.pt. Writes WORK/decoder.pt (averaged weights of post_module,
upsampling and decoder) every minute; if WORK/decoder.pt and WORK/judges.pt exist, it continues from them.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from engine.codec.model import Codec
from training.codec.discriminators import Discriminators, feature_loss, fooling_loss, judge_loss, split
from training.codec.ear import Ear
from training.codec.images import through_images
from training.codec.spectra import halved, overtones, reconstruction_loss
from training.codec.start import prepare_decoder
from training.codec.voiceprint import Voiceprint
from training.data.corpus import Corpus
from training.data.encode import encode_corpus
from training.optimise import Average, Clock, Replayed, adamw, clip_each, set_rate
from training.sizes import CODEC, WINDOW
from training.teacher.synthesise import FRAME_SAMPLES

TRAINED = ("decoder.", "quantizer.post_module.", "quantizer.upsample.")
RECONSTRUCTION, HEARD, WHOSE, OVERTONES, FOOLED, FEATURES = 30.0, 2.0, 2.0, 0.3, 1.5, 4.0
"""Weights of the losses; that of the reconstruction falls to a third while the discriminators, which judge better,
work."""
JUDGED_ROWS = 16
"""Rows of a batch that the discriminators see; the others train only by reconstruction."""
ONLY_JUDGES = 300
"""Steps in which only the discriminators train, before they count in the decoder's loss."""


class Segments:
    """Aligned random pieces of codes and audio; `warm` frames of context before them have no audio."""

    def __init__(self, corpus: Corpus, codes: Tensor, rows: int, frames: int) -> None:
        self.corpus, self.codes, self.rows, self.frames = corpus, codes, rows, frames
        self.warm = WINDOW + WINDOW // 2
        counts = np.array(corpus.frames)
        starts = np.concatenate([[0], np.cumsum(counts)[:-1]])
        self._starts = torch.from_numpy(starts[counts >= frames]).to(codes.device)

    def draw(self, from_start: bool) -> tuple[Tensor, Tensor]:
        """Codes (rows, codebooks, warm + frames) and audio (rows, 1, frames · 2048).

        With from_start, the first frames of utterances without warm ones: the beginnings of takes.
        """
        warm = 0 if from_start else self.warm
        if from_start:
            first = self._starts[torch.randint(0, len(self._starts), (self.rows, 1), device=self.codes.device)]
        else:
            last = len(self.codes) - warm - self.frames
            first = torch.randint(0, last, (self.rows, 1), device=self.codes.device)
        frames = first + torch.arange(warm + self.frames, device=self.codes.device)
        samples = (first + warm) * FRAME_SAMPLES + torch.arange(self.frames * FRAME_SAMPLES, device=self.codes.device)
        return self.codes[frames].long().transpose(1, 2), self.corpus.audio[samples].float()[:, None] / 32768


class Stage:
    """The codec's decoder, its discriminators, and one step of each kind."""

    def __init__(
        self, codec: Codec, ear: Ear, voiceprint: Voiceprint, segments: Segments, device: torch.device
    ) -> None:
        self.codec, self.ear, self.voiceprint, self.segments, self.device = codec, ear, voiceprint, segments, device
        self.judges = Discriminators().to(device)
        self.judges.to(memory_format=torch.channels_last)  # type: ignore[call-overload]  # torch's stubs lack it
        codec.requires_grad_(False)
        ear.requires_grad_(False)
        voiceprint.requires_grad_(False)
        self.parameters = [p for n, p in codec.named_parameters() if n.startswith(TRAINED)]
        for parameter in self.parameters:
            parameter.requires_grad_(True)
        self.weights = list(self.judges.parameters())
        self.optimiser = adamw(self.parameters, 8e-4, (0.8, 0.99), weight_decay=1e-3)
        self.judging = adamw(self.weights, 3e-4, (0.8, 0.99), weight_decay=1e-3)
        self.average = Average(self.parameters)
        self.plain = torch.ones((), device=device)
        """Factor on the reconstruction's weight."""
        self._decode = torch.compile(through_images, dynamic=False) if device.type == "cuda" else through_images
        self._steps: dict[tuple[bool, bool, bool], Replayed] = {}
        self._pool = torch.cuda.graph_pool_handle() if device.type == "cuda" else None

    def latents(self, codes: Tensor) -> Tensor:
        """Codes (rows, codebooks, frames) → the decoder's input."""
        return self.codec.quantizer.decode(codes)

    def speak(self, codes: Tensor, frames: int) -> Tensor:
        """Audio of the last frames; of the warm ones only four reach past the transformer.

        Beginnings of takes have no warm frames; silent ones replace them, so that every batch has one shape.
        """
        latents = self.latents(codes)
        steps = latents.shape[-1] // codes.shape[-1]
        missing = (frames + 4) * steps - latents.shape[-1]
        latents = (
            torch.nn.functional.pad(latents, (missing, 0)) if missing > 0 else latents[..., -(frames + 4) * steps :]
        )
        with self._half():
            audio = self._decode(self.codec.decoder, latents)
        return audio[..., -frames * FRAME_SAMPLES :].float()

    def step(self, index: int, judged: bool, fooling: bool) -> Tensor:
        """One update of the decoder, and of the discriminators when `judged`; they count in its loss when `fooling`.

        Returns [spectral, heard, whose, fooling, features, judges].
        """
        kind = (index % 8 == 7, judged, fooling)
        if kind not in self._steps:
            self._steps[kind] = Replayed(lambda: self._update(*kind), self.device, self._pool)
        figures = self._steps[kind]()
        self.average.update()
        return figures

    def _update(self, from_start: bool, judged: bool, fooling: bool) -> Tensor:
        codes, real = self.segments.draw(from_start)
        fake = self.speak(codes, self.segments.frames)
        low, true = halved(fake), halved(real)
        spectral = reconstruction_loss(low, true)
        with self._half():
            ear_distance, voice_distance = self.ear.distance(fake, real), self.voiceprint.distance(fake, real)
        loss = self.plain * RECONSTRUCTION * spectral + HEARD * ear_distance + WHOSE * voice_distance
        loss = loss + OVERTONES * overtones(fake, real)
        figures = [spectral, ear_distance, voice_distance, *torch.zeros(3, device=self.device)]
        if judged:
            shown = low[:JUDGED_ROWS].detach().requires_grad_(True)
            with self._half():
                seen_true, seen = split(self.judges(torch.cat([true[:JUDGED_ROWS], shown])))
            judges, fooled, features = judge_loss(seen_true, seen), fooling_loss(seen), feature_loss(seen_true, seen)
            gradients = torch.autograd.grad(judges, self.weights, retain_graph=fooling)
            if fooling:
                (push,) = torch.autograd.grad(FOOLED * fooled + FEATURES * features, shown)
                loss = loss + (low[:JUDGED_ROWS] * push).sum()
            for weight, gradient in zip(self.weights, gradients, strict=True):
                weight.grad = torch.empty_like(weight).copy_(gradient)  # strides for the fused optimiser
            torch.nn.utils.clip_grad_norm_(self.weights, 10.0)
            self.judging.step()
            figures[3:] = fooled, features, judges
        self.optimiser.zero_grad(set_to_none=True)
        loss.backward()
        clip_each(self.parameters, limit=2.0)
        self.optimiser.step()
        return torch.stack(figures).detach()

    def _half(self) -> torch.autocast:
        return torch.autocast(self.device.type, torch.bfloat16, self.device.type == "cuda", cache_enabled=False)

    def save(self, out: Path) -> None:
        """Averaged decoder and the discriminators, in half precision."""
        self.average.swap()
        state = {k: v.half() for k, v in self.codec.state_dict().items() if k.startswith(TRAINED)}
        self.average.swap()
        write_state(state, out / "decoder.pt")
        write_state({k: v.half() for k, v in self.judges.state_dict().items()}, out / "judges.pt")

    def resume(self, out: Path) -> bool:
        """Continue from OUT/decoder.pt and OUT/judges.pt if they exist."""
        if not (out / "decoder.pt").exists():
            return False
        self.codec.load_state_dict(read_state(out / "decoder.pt", self.device), strict=False)
        if (out / "judges.pt").exists():
            self.judges.load_state_dict(read_state(out / "judges.pt", self.device))
        self.average = Average(self.parameters)
        return True


def write_state(state: dict[str, Tensor], path: Path) -> None:
    unfinished = path.with_suffix(".tmp")
    torch.save(state, unfinished)
    unfinished.rename(path)


def read_state(path: Path, device: torch.device) -> dict[str, Tensor]:
    return {k: v.float() for k, v in torch.load(path, map_location=device).items()}


def progress(clock: Clock, every: float) -> Iterator[bool]:
    """Steps until the time is over; True when a line of output is due."""
    due = 0.0
    while clock.elapsed < clock.seconds:
        now = clock.elapsed
        yield now >= due
        if now >= due:
            due = now + every


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("work", type=Path)
    parser.add_argument("--seconds", type=float, default=900, help="waiting and encoding included")
    parser.add_argument("--spectral", type=float, default=0.15, help="share of the time before the judges begin")
    parser.add_argument("--rate", type=float, default=1.0, help="factor on the learning rates")
    parser.add_argument("--rows", type=int, default=24)
    parser.add_argument("--frames", type=int, default=16)
    parser.add_argument("--hours", type=float, default=15.0, help="of speech, at most")
    parser.add_argument("--gather", type=float, default=0.0, help="wait until the shards hold this many hours")
    arguments = parser.parse_args()
    started = time.monotonic()
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    corpus = Corpus(arguments.data, device, arguments.hours)
    while corpus.hours < arguments.gather and not corpus.is_full:
        time.sleep(1)
        corpus.grow()
    (arguments.work / "loaded").write_text("")  # the shards' audio is no longer needed here
    codec, ear, voiceprint = Codec(CODEC).to(device), Ear().to(device), Voiceprint().to(device)
    for name, part in (("codes", codec), ("ear", ear), ("voiceprint", voiceprint)):
        part.load_state_dict(read_state(arguments.work / f"{name}.pt", device))
    codes = encode_corpus(codec, corpus)
    print(f"{corpus.hours:.1f} h encoded", flush=True)
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = True
    torch.backends.cudnn.benchmark = True
    stage = Stage(codec, ear, voiceprint, Segments(corpus, codes, arguments.rows, arguments.frames), device)
    spectral_share = arguments.spectral
    if stage.resume(arguments.work):
        spectral_share = 0.0
        print("continuing from", arguments.work / "decoder.pt", flush=True)
    else:
        with torch.no_grad():
            prepare_decoder(codec, stage.latents(stage.segments.draw(False)[0]))
    seconds = arguments.seconds - (time.monotonic() - started)
    train(stage, seconds, spectral_share, arguments.rate, arguments.work)


def train(stage: Stage, seconds: float, spectral_share: float, rate: float, out: Path) -> None:
    """Step until the time is over, saving every minute."""
    clock, saved, recent, since = Clock(seconds), 0.0, [], 0
    for index, due in enumerate(progress(clock, max(5.0, seconds / 60))):
        judged = clock.share >= spectral_share
        since += judged
        fooling = since > (ONLY_JUDGES if spectral_share else 0)
        factor = rate * clock.rate(index, 100, hold=0.5)
        set_rate(stage.optimiser, factor * (0.5 if judged else 1.0))
        set_rate(stage.judging, factor)
        stage.plain.fill_(1.0 if not judged else 0.5 if clock.share < 0.7 else 0.33)
        recent.append(stage.step(index, judged, fooling))
        if index % 16 == 0:
            recent[-1].sum().item()  # wait for the GPU, else the clock is meaningless
        if due:
            named = zip(
                ("spectral", "heard", "whose", "fooling", "features", "judges"),
                torch.stack(recent).mean(0).tolist(),
                strict=True,
            )
            print(f"{index} {clock.elapsed:.0f}s", " ".join(f"{n} {v:.4f}" for n, v in named), flush=True)
            recent = []
        if clock.elapsed > saved + 60:
            saved = clock.elapsed
            stage.save(out)
    stage.save(out)


if __name__ == "__main__":
    main()
