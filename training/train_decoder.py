"""Stage b: from frozen codes to the waveform; multi-scale spectra first, then discriminators as well.

    python -m training.train_decoder DATA CODES SPEECH OUT --seconds 900

Writes OUT/decoder.pt (averaged weights of post_module, upsampling and decoder) every minute; started again with
OUT/decoder.pt and OUT/judges.pt there, it goes on from them.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from engine.codec.model import Codec
from training.corpus import Corpus
from training.discriminators import Discriminators, feature_loss, fooling_loss, judge_loss
from training.optimise import Average, Clock, clip_each, set_rate
from training.sizes import CODEC, WINDOW
from training.spectra import reconstruction_loss
from training.start import prepare_decoder
from training.synthesise import FRAME_SAMPLES

TRAINED = ("decoder.", "quantizer.post_module.", "quantizer.upsample.")
RECONSTRUCTION, FEATURES = 30.0, 2.0


class Segments:
    """Aligned random pieces of codes and audio; `warm` frames of context in front give no audio."""

    def __init__(self, corpus: Corpus, codes: Tensor, rows: int, frames: int) -> None:
        self.corpus, self.codes, self.rows, self.frames = corpus, codes, rows, frames
        self.warm = WINDOW
        counts = np.array([n for _, n, _ in corpus.rows])
        starts = np.concatenate([[0], np.cumsum(counts)[:-1]])
        self._starts = torch.from_numpy(starts[counts >= frames]).to(codes.device)

    def draw(self, from_start: bool) -> tuple[Tensor, Tensor]:
        """Codes (rows, codebooks, warm + frames) and audio (rows, 1, frames · 2048).

        With from_start, utterances' first frames without any warm ones: what a take begins with.
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
    """The codec's decode side, its judges, and one step of either kind."""

    def __init__(self, codec: Codec, segments: Segments, device: torch.device) -> None:
        self.codec, self.segments, self.device = codec, segments, device
        self.judges = Discriminators().to(device)
        codec.requires_grad_(False)
        self.parameters = [p for n, p in codec.named_parameters() if n.startswith(TRAINED)]
        for parameter in self.parameters:
            parameter.requires_grad_(True)
        fused = device.type == "cuda"
        self.optimiser = torch.optim.AdamW(self.parameters, lr=8e-4, betas=(0.8, 0.99), weight_decay=1e-3, fused=fused)
        self.judging = torch.optim.AdamW(self.judges.parameters(), lr=4e-4, betas=(0.8, 0.99), fused=fused)
        self.average = Average(self.parameters)
        self.decoder = torch.compile(codec.decoder) if fused else codec.decoder

    def latents(self, codes: Tensor) -> Tensor:
        """Codes (rows, codebooks, frames) → the decoder's input."""
        return self.codec.quantizer.decode(codes)

    def speak(self, codes: Tensor, frames: int) -> Tensor:
        """Audio of the last frames; warm ones only feed the transformer, all but four of them."""
        latents = self.latents(codes)
        kept = min(codes.shape[-1], frames + 4)
        steps = latents.shape[-1] // codes.shape[-1]
        with self._half():
            audio = self.decoder(latents[..., -kept * steps :])
        return audio[..., -frames * FRAME_SAMPLES :].float()

    def step(self, index: int, adversarial: bool) -> Tensor:
        """One update; returns [spectral, fooling, feature, judge] figures."""
        codes, real = self.segments.draw(from_start=index % 8 == 7)
        fake = self.speak(codes, self.segments.frames)
        judged = torch.zeros((), device=self.device)
        if adversarial:
            with self._half():
                judged = judge_loss(self.judges(real), self.judges(fake.detach()))
            self.judging.zero_grad(set_to_none=True)
            judged.backward()
            torch.nn.utils.clip_grad_norm_(self.judges.parameters(), 10.0)
            self.judging.step()
        spectral = reconstruction_loss(fake, real)
        loss, fooled, features = RECONSTRUCTION * spectral, torch.zeros_like(judged), torch.zeros_like(judged)
        if adversarial:
            self.judges.requires_grad_(False)
            with self._half():
                with torch.no_grad():
                    true = self.judges(real)
                false = self.judges(fake)
            self.judges.requires_grad_(True)
            fooled, features = fooling_loss(false), feature_loss(true, false)
            loss = loss + fooled + FEATURES * features
        self.optimiser.zero_grad(set_to_none=True)
        loss.backward()
        clip_each(self.parameters, limit=2.0)
        self.optimiser.step()
        self.average.update()
        return torch.stack([spectral, fooled, features, judged]).detach()

    def _half(self) -> torch.autocast:
        return torch.autocast(self.device.type, torch.bfloat16, enabled=self.device.type == "cuda")

    def save(self, out: Path) -> None:
        """Averaged decode side and the judges, half precision."""
        self.average.swap()
        state = {k: v.half() for k, v in self.codec.state_dict().items() if k.startswith(TRAINED)}
        self.average.swap()
        _write(state, out / "decoder.pt")
        _write({k: v.half() for k, v in self.judges.state_dict().items()}, out / "judges.pt")

    def resume(self, out: Path) -> bool:
        """Take up OUT/decoder.pt and OUT/judges.pt when they are there."""
        if not (out / "decoder.pt").exists():
            return False
        self.codec.load_state_dict(_read(out / "decoder.pt", self.device), strict=False)
        if (out / "judges.pt").exists():
            self.judges.load_state_dict(_read(out / "judges.pt", self.device))
        self.average = Average(self.parameters)
        return True


def _write(state: dict[str, Tensor], path: Path) -> None:
    unfinished = path.with_suffix(".tmp")
    torch.save(state, unfinished)
    unfinished.rename(path)


def _read(path: Path, device: torch.device) -> dict[str, Tensor]:
    return {k: v.float() for k, v in torch.load(path, map_location=device).items()}


def progress(clock: Clock, every: float) -> Iterator[bool]:
    """Steps until the time is over; True where a line is due."""
    due = 0.0
    while clock.elapsed < clock.seconds:
        now = clock.elapsed
        yield now >= due
        if now >= due:
            due = now + every


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("codes", type=Path, help="stage a's codes.pt")
    parser.add_argument("speech", type=Path, help="the encoded corpus, speech.npz")
    parser.add_argument("out", type=Path)
    parser.add_argument("--seconds", type=float, default=900)
    parser.add_argument("--spectral", type=float, default=0.3, help="share of the time before the judges begin")
    parser.add_argument("--rate", type=float, default=1.0, help="factor on the learning rates")
    parser.add_argument("--rows", type=int, default=32)
    parser.add_argument("--frames", type=int, default=12)
    parser.add_argument("--hours", type=float, default=25.0)
    arguments = parser.parse_args()
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = True
    torch.backends.cudnn.benchmark = True
    corpus = Corpus(arguments.data, device, arguments.hours)
    codes = torch.from_numpy(np.load(arguments.speech)["codes"]).to(device)
    codec = Codec(CODEC).to(device)
    codec.load_state_dict(torch.load(arguments.codes, map_location=device))
    stage = Stage(codec, Segments(corpus, codes, arguments.rows, arguments.frames), device)
    arguments.out.mkdir(parents=True, exist_ok=True)
    spectral_share = arguments.spectral
    if stage.resume(arguments.out):
        spectral_share = 0.0
        print("going on from", arguments.out / "decoder.pt", flush=True)
    else:
        with torch.no_grad():
            prepare_decoder(codec, stage.latents(stage.segments.draw(False)[0]))
    train(stage, arguments.seconds, spectral_share, arguments.rate, arguments.out)


def train(stage: Stage, seconds: float, spectral_share: float, rate: float, out: Path) -> None:
    """Step until the time is over, saving every minute."""
    clock, saved, recent = Clock(seconds), 0.0, []
    for index, due in enumerate(progress(clock, max(5.0, seconds / 60))):
        adversarial = clock.share >= spectral_share
        factor = rate * clock.rate(index, 100, hold=spectral_share)
        set_rate(stage.optimiser, factor * (0.6 if adversarial else 1.0))
        set_rate(stage.judging, factor)
        recent.append(stage.step(index, adversarial))
        if due:
            named = zip(
                ("spectral", "fooling", "features", "judges"), torch.stack(recent).mean(0).tolist(), strict=True
            )
            print(f"{index} {clock.elapsed:.0f}s", " ".join(f"{n} {v:.4f}" for n, v in named), flush=True)
            recent = []
        if clock.elapsed > saved + 60:
            saved = clock.elapsed
            stage.save(out)
    stage.save(out)


if __name__ == "__main__":
    main()
