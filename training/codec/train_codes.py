"""Stage a: trains encoder and codebooks so that codes predict spectra and phones; no waveform yet.

    python -m training.codec.train_codes DATA OUT --continuous 240 --quantised 240

Writes OUT/ear.pt and OUT/voiceprint.pt, the phone recogniser and the speaker network of stage b, and OUT/codes.pt:
the codec's tensors, with everything that affects codes rounded to half precision, so that the exported half-precision
file gives the same codes. Prints the gate's figures last. With --earlier FOLDER it continues from that folder's
codes.pt and ear.pt, whose codebooks then keep their meaning, and skips the continuous phase.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from engine.codec.model import Codec
from engine.codec.quantizer import VectorQuantizer
from training.codec.ear import Ear
from training.codec.images import through_images
from training.codec.spectra import log_mel, narrow_mel
from training.codec.start import prepare_codec, start_codebooks
from training.codec.voiceprint import DIMENSIONS, Voiceprint, over_time
from training.data.corpus import SLOTS, Corpus
from training.data.phones import PHONES, UNKNOWN
from training.optimise import Clock, Replayed, adamw, clip_each, set_rate
from training.sizes import CODEC

MEL_BANDS, NARROW_BANDS = 80, 160
ONLY_JUDGES_SECONDS = 30.0
"""Share of the time in which the predictors learn an earlier run's codes, before the codec changes."""
DECIDES_CODES = (
    "encoder.", "quantizer.downsample.", "quantizer.pre_module.",
    "quantizer.semantic_quantizer.", "quantizer.quantizer.",
)  # fmt: skip


class Readers(nn.Module):
    """Predictors: spectra from the upsampled latents, phones from latents and from semantic codes.

    And the speaker from the latents of a whole segment.
    """

    def __init__(self, dim: int) -> None:
        super().__init__()
        bands = 2 * (MEL_BANDS + NARROW_BANDS)  # two spectra a step of 512 samples
        self.spectra = nn.Sequential(
            nn.Conv1d(dim, 512, 3, padding=1), nn.GELU(),
            nn.Conv1d(512, 512, 3, padding=1), nn.GELU(), nn.Conv1d(512, bands, 1),
        )  # fmt: skip
        self.phones = nn.Conv1d(dim, SLOTS * len(PHONES), 1)
        self.semantic_phones = nn.Sequential(nn.Conv1d(dim, 256, 1), nn.GELU(), nn.Conv1d(256, SLOTS * len(PHONES), 1))
        self.voice = nn.Sequential(nn.Conv1d(dim, 256, 3, padding=1), nn.GELU(), nn.Conv1d(256, 256, 1))
        self.voiceprint = nn.Linear(512, DIMENSIONS)

    def whose(self, latents: Tensor) -> Tensor:
        """Latents (rows, dim, frames) → the voiceprint's direction (rows, 128)."""
        return F.normalize(self.voiceprint(over_time(self.voice(latents))), dim=-1)


@dataclass(frozen=True, eq=False, slots=True)
class Quantised:
    """Latents through the codebooks: the sum, the first one's part, and the additional training loss."""

    latent: Tensor
    semantic: Tensor
    penalty: Tensor
    residual_share: Tensor
    codes: Tensor


def quantise(codec: Codec, z: Tensor) -> Quantised:
    """Every codebook in turn on the remainder of z (rows, dim, frames), with the losses that train entries."""
    total, penalty, codes = torch.zeros_like(z), z.new_zeros(()), []
    stages = [*codec.quantizer.semantic_quantizer.quantizers, *codec.quantizer.quantizer.quantizers]
    semantic = total
    for index, stage in enumerate(stages):
        assert isinstance(stage, VectorQuantizer)
        latent = stage.in_proj(z - total)
        code = stage.nearest(latent.detach())
        entry = stage.codebook(code).transpose(1, 2)
        spread = latent.detach().pow(2).mean()
        learnt = (entry - latent.detach()).pow(2).mean()
        committed = (entry.detach() - latent).pow(2).mean()
        penalty = penalty + (learnt + 0.25 * committed) / spread
        total = total + stage.out_proj(latent + (entry - latent).detach())
        codes.append(code)
        if index == 0:
            semantic = total
    share = (z.detach() - total).pow(2).mean() / z.detach().var()
    return Quantised(total, semantic, penalty, share, torch.stack(codes, 1))


def phone_loss(logits: Tensor, phones: Tensor) -> tuple[Tensor, Tensor]:
    """Cross-entropy and accuracy of (rows, 4 · phones, frames) against (rows, frames, 4)."""
    rows, _, frames = logits.shape
    by_slot = logits.view(rows, SLOTS, len(PHONES), frames).permute(0, 2, 3, 1).float()
    loss = F.cross_entropy(by_slot, phones, ignore_index=UNKNOWN)
    known = phones != UNKNOWN
    hits = ((by_slot.argmax(1) == phones) & known).sum() / known.sum().clamp(min=1)
    return loss, hits


class Stage:
    """The codec, its predictors and one optimiser through both phases."""

    def __init__(self, corpus: Corpus, rows: int, frames: int, device: torch.device, compiled: bool) -> None:
        self.corpus, self.rows, self.frames, self.device = corpus, rows, frames, device
        self.codec = Codec(CODEC).to(device)
        prepare_codec(self.codec, corpus.segments(8, frames)[0])
        self.readers = Readers(CODEC.latent_dim).to(device)
        self.ear, self.voiceprint = Ear().to(device), Voiceprint().to(device)
        self._encode = torch.compile(through_images, dynamic=False) if compiled else through_images
        unused = [*self.codec.decoder.parameters()]
        self.codec.decoder.requires_grad_(False)
        skipped = {id(p) for p in unused}
        self.judges = [p for part in (self.readers, self.ear, self.voiceprint) for p in part.parameters()]
        self.parameters = [p for p in (*self.codec.parameters(), *self.judges) if id(p) not in skipped]
        self.optimiser = adamw(self.parameters, 1.2e-3, (0.9, 0.98), weight_decay=0.01)
        self.step = 0

    def latents(self, audio: Tensor) -> Tensor:
        """Audio (rows, 1, samples) → latents before quantisation (rows, dim, frames) float32."""
        with torch.autocast(self.device.type, torch.bfloat16, self.device.type == "cuda", cache_enabled=False):
            encoded = self._encode(self.codec.encoder, audio)
        quantizer = self.codec.quantizer
        return quantizer.pre_module(quantizer.downsample(encoded.float()))

    def losses(self, quantised: bool) -> tuple[Tensor, Tensor]:
        """One random batch: the loss and [mel, narrow, residual share, phone accuracy z, semantic, whose, nearest]."""
        audio, phones, speakers = self.corpus.segments(self.rows, self.frames)
        audio = audio * 10 ** (0.5 * torch.rand(self.rows, 1, 1, device=self.device) - 0.35)
        z = self.latents(noisy(audio))
        phonetic_loss, accuracy = phone_loss(self.readers.phones(z), phones)
        loss = 0.2 * phonetic_loss
        share = semantic_accuracy = torch.zeros((), device=self.device)
        latent = z
        if quantised:
            q = quantise(self.codec, z)
            latent, share = q.latent, q.residual_share
            semantic_loss, semantic_accuracy = phone_loss(self.readers.semantic_phones(q.semantic), phones)
            loss = loss + 0.3 * semantic_loss + 0.3 * q.penalty + 0.5 * share
        with torch.autocast(self.device.type, torch.bfloat16, self.device.type == "cuda", cache_enabled=False):
            read = self.readers.spectra(self.codec.quantizer.upsample(self.codec.quantizer.post_module(latent)))
            loss = loss + 0.2 * self.ear.loss(audio, phones)
            speaker_loss, nearest = self.voiceprint.loss(audio, speakers)
            with torch.no_grad():
                print_, _ = self.voiceprint(audio)
        whose = 1 - (self.readers.whose(latent) * print_).sum(-1).mean()
        loss = loss + 0.2 * speaker_loss + 0.5 * whose
        mel, narrow = log_mel(audio), narrow_mel(audio)
        parts = read.float().split([2 * MEL_BANDS, 2 * NARROW_BANDS], 1)
        mel_loss, narrow_loss = (
            (_unfolded(part) - target).abs().mean() for part, target in zip(parts, (mel, narrow), strict=True)
        )
        figures = torch.stack([mel_loss, narrow_loss, share, accuracy, semantic_accuracy, whose, nearest]).detach()
        return loss + mel_loss + narrow_loss, figures

    def update(self, quantised: bool, optimiser: torch.optim.Optimizer) -> Tensor:
        """One step of the optimiser on a random batch; returns its figures."""
        loss, figures = self.losses(quantised)
        self.optimiser.zero_grad(set_to_none=True)
        loss.backward()
        clip_each(self.parameters)
        optimiser.step()
        return figures

    def train(self, seconds: float, quantised: bool, only_judges: bool = False) -> None:
        """Train one phase for its time; prints a line every few seconds."""
        optimiser = adamw(self.judges, 1.2e-3, (0.9, 0.98), weight_decay=0.01) if only_judges else self.optimiser
        update = Replayed(lambda: self.update(quantised, optimiser), self.device)
        set_rate(optimiser, 0.0)
        update()  # compiling takes a minute, which does not count
        clock, next_report, first, recent = Clock(seconds), 0.0, self.step, []
        while clock.elapsed < seconds:
            set_rate(optimiser, clock.rate(self.step - first, 100) * (0.6 if quantised else 1.0))
            recent.append(update())
            self.step += 1
            if self.step % 16 == 0:
                recent[-1].sum().item()  # wait for the GPU, else the clock is meaningless
            if clock.elapsed > next_report:
                next_report = clock.elapsed + max(5.0, seconds / 25)
                report(self.step, clock.elapsed, recent)
                recent = []
                self.corpus.grow()
        self.corpus.grow()

    def resume(self, folder: Path) -> None:
        """Load the codec and the ear of an earlier run."""
        for name, part in (("codes", self.codec), ("ear", self.ear)):
            state = torch.load(folder / f"{name}.pt", map_location=self.device)
            part.load_state_dict({k: v.float() for k, v in state.items()})

    @torch.no_grad()
    def start_codebooks(self, batches: int) -> None:
        """Fit the codebooks to the present latents."""
        segments = [self.corpus.segments(self.rows, self.frames) for _ in range(batches)]
        z = torch.cat([self.latents(audio).transpose(1, 2).flatten(0, 1) for audio, *_ in segments])
        phones = torch.cat([p.flatten(0, 1)[:, SLOTS // 2] for _, p, _ in segments])
        shares = start_codebooks(self.codec, z, phones)
        print("left after each codebook", " ".join(f"{s:.3f}" for s in shares), flush=True)

    @torch.no_grad()
    def freeze(self) -> None:
        """Round everything that affects codes to half precision."""
        for name, tensor in self.codec.state_dict().items():
            if name.startswith(DECIDES_CODES):
                tensor.copy_(tensor.half().float())

    @torch.no_grad()
    def gate(self, batches: int) -> None:
        """Print the figures on new segments, and how evenly each codebook is used."""
        self.codec.eval()
        plain, quantised = (
            torch.stack([self.losses(q)[1] for _ in range(batches)]).mean(0).tolist() for q in (False, True)
        )
        z = self.latents(self.corpus.segments(self.rows, self.frames)[0])
        codes = quantise(self.codec, z).codes
        bits = []
        for index in range(codes.shape[1]):
            p = torch.bincount(codes[:, index].flatten(), minlength=CODEC.residual_codebook_size).float()
            p = p / p.sum()
            bits.append(f"{float(-(p * (p + 1e-12).log2()).sum()):.1f}")
        print(
            f"GATE mel {plain[0]:.4f} -> {quantised[0]:.4f} narrow {plain[1]:.4f} -> {quantised[1]:.4f} "
            f"residual {quantised[2]:.3f} phones {quantised[3]:.3f} semantic {quantised[4]:.3f} "
            f"whose {quantised[5]:.3f} nearest {quantised[6]:.3f} bits {' '.join(bits)}",
            flush=True,
        )


def noisy(audio: Tensor) -> Tensor:
    """Audio (rows, 1, samples), of which two rows in five get noise 12 to 40 dB below them, white or duller."""
    rows = len(audio)
    noise = torch.randn_like(audio)
    dull = F.avg_pool1d(noise, 9, stride=1, padding=4) * 3
    noise = torch.where(torch.rand(rows, 1, 1, device=audio.device) < 0.5, noise, dull)
    below = 10 ** (-(12 + 28 * torch.rand(rows, 1, 1, device=audio.device)) / 20)
    is_noisy = torch.rand(rows, 1, 1, device=audio.device) < 0.4
    return audio + noise * below * is_noisy * audio.pow(2).mean(-1, keepdim=True).sqrt()


def _unfolded(read: Tensor) -> Tensor:
    """(rows, 2 · bands, steps) → (rows, bands, 2 · steps)."""
    rows, width, steps = read.shape
    return read.view(rows, width // 2, 2, steps).transpose(2, 3).reshape(rows, width // 2, 2 * steps)


def report(step: int, elapsed: float, recent: list[Tensor]) -> None:
    """Print the mean of recent figures."""
    mean = torch.stack(recent).mean(0).tolist()
    names = ("mel", "narrow", "residual", "phones", "semantic", "whose", "nearest")
    print(f"{step} {elapsed:.0f}s", " ".join(f"{n} {v:.4f}" for n, v in zip(names, mean, strict=True)), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--continuous", type=float, default=240, help="seconds before the codebooks")
    parser.add_argument("--quantised", type=float, default=240, help="seconds with them")
    parser.add_argument("--earlier", type=Path, help="folder of the run whose codebooks are gone on with")
    parser.add_argument("--rows", type=int, default=32)
    parser.add_argument("--frames", type=int, default=48)
    parser.add_argument("--hours", type=float, default=25.0, help="of the corpus to hold in memory")
    parser.add_argument("--start", type=float, default=1.0, help="hours that must be there before training begins")
    arguments = parser.parse_args()
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = True
    torch.backends.cudnn.benchmark = True
    torch.manual_seed(0)
    corpus = Corpus(arguments.data, device, arguments.hours)
    while corpus.hours < arguments.start:
        time.sleep(1)
        corpus.grow()
    stage = Stage(corpus, arguments.rows, arguments.frames, device, compiled=device.type == "cuda")
    parameters = sum(p.numel() for p in stage.codec.parameters())
    print(f"{corpus.hours:.1f} h, {parameters / 1e6:.2f} M parameters", flush=True)
    if arguments.earlier:
        stage.resume(arguments.earlier)
        stage.train(ONLY_JUDGES_SECONDS, quantised=True, only_judges=True)
    else:
        stage.train(arguments.continuous, quantised=False)
        stage.start_codebooks(30 if device.type == "cuda" else 12)
    stage.train(arguments.quantised, quantised=True)
    stage.freeze()
    stage.gate(10)
    arguments.out.mkdir(parents=True, exist_ok=True)
    for name, part in (("ear", stage.ear), ("voiceprint", stage.voiceprint)):
        torch.save({k: v.half() for k, v in part.state_dict().items()}, arguments.out / f"{name}.pt")
    state = {k: v.half() for k, v in stage.codec.state_dict().items()}
    torch.save(state, arguments.out / "codes.tmp")
    (arguments.out / "codes.tmp").rename(arguments.out / "codes.pt")


if __name__ == "__main__":
    main()
