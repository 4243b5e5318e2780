"""Trains the decoder with a timbre vector: codes of one voice and the vector of another give the other voice.

    python -m training.codec.train_timbre SETS WORK --seconds 1500

Reads WORK/codes.pt and WORK/decoder.pt, which training.resume extracts from a checkpoint without a vector; the codes do
not change. First trains the listeners (ear, voiceprint, the timbre encoder) unless WORK has them, then the decoder
against spectra, then also against discriminators. Writes WORK/timbre.pt (averaged decoder and timbre part) every
minute, WORK/listeners.pt once and WORK/judges.pt; if all of them exist it continues from them.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from engine.codec.model import Codec
from engine.codec.timbre import Colours
from training.codec.discriminators import Discriminators, feature_loss, fooling_loss, judge_loss, split
from training.codec.disguise import drawn_factors, roughened, warped
from training.codec.ear import Ear
from training.codec.images import through_images
from training.codec.spectra import halved, low_passed, overtones, reconstruction_loss
from training.codec.train_decoder import (
    FEATURES,
    FOOLED,
    HEARD,
    OVERTONES,
    RECONSTRUCTION,
    progress,
    read_state,
    write_state,
)
from training.codec.voiceprint import Voiceprint
from training.data.set_corpus import MARGIN, Rows, SetCorpus
from training.optimise import Average, Clock, Replayed, adamw, clip_each, set_rate
from training.sizes import CODEC, WINDOW, WITH_TIMBRE
from training.teacher.sets import TIMBRE_VALUES
from training.teacher.synthesise import FRAME_SAMPLES

TRAINED = ("decoder.", "quantizer.post_module.", "quantizer.upsample.", "timbre.")
ROWS, PEOPLE, JUDGED_ROWS = 24, 4, 16
"""Rows of a batch; people's are the last, and the discriminators skip them: they lack everything above 8 kHz."""
FRAMES, CLIP_FRAMES, WARM = 16, 80, WINDOW + WINDOW // 2
WHOSE, CONTRAST, DESCRIBING = 4.0, 1.0, 0.5
"""Weights of the voiceprint's distance, the vectors' contrast, and the prediction of the teacher's values from them."""
SAME, WARPED, ROUGH, WRONG = 0.12, 0.4, 0.6, 0.05
"""Shares: rows that keep their voice, voices with another vocal tract, degraded clips, wrong residual codes."""
ONLY_JUDGES = 400
"""Steps in which only the discriminators train."""
TEMPERATURE = 0.1


def widened(work: Path, device: torch.device) -> Codec:
    """A codec with a timbre part, which still sounds like the one in WORK: the new parts have no effect yet."""
    codec = Codec(WITH_TIMBRE)
    state = read_state(work / "codes.pt", torch.device("cpu")) | read_state(work / "decoder.pt", torch.device("cpu"))
    missing, unexpected = codec.load_state_dict(state, strict=False)
    added = [
        f"quantizer.post_module.layers.{i}." for i in range(CODEC.post_module.n_layer, WITH_TIMBRE.post_module.n_layer)
    ]
    if unexpected or any(not name.startswith(("timbre.", *added)) for name in missing):
        raise SystemExit(f"{work} does not match training/sizes.py: {[*unexpected, *missing][:5]}")
    with torch.no_grad():
        for name, parameter in codec.named_parameters():
            if name.startswith(tuple(added)) and name.endswith("gamma"):
                parameter.fill_(1e-3)
    return codec.to(device)


class Listeners(nn.Module):
    """The parts trained before any audio is generated: the ear, the voiceprint, and the predictor of the teacher's
    values."""

    def __init__(self) -> None:
        super().__init__()
        self.ear, self.voiceprint = Ear(), Voiceprint()
        self.values = nn.Linear(WITH_TIMBRE.timbre.dim if WITH_TIMBRE.timbre else 0, TIMBRE_VALUES)
        self.mean: Tensor
        self.spread: Tensor
        self.register_buffer("mean", torch.zeros(TIMBRE_VALUES))
        self.register_buffer("spread", torch.ones(TIMBRE_VALUES))

    def describing(self, vectors: Tensor, styles: Tensor, is_plain: Tensor) -> Tensor:
        """The error of predicting the teacher's values (rows, 128) from the vectors of unchanged teacher voices."""
        known = is_plain & styles[:, 0].isfinite()
        wanted = ((styles - self.mean) / self.spread).nan_to_num(0.0)
        error = (self.values(vectors) - wanted).square().mean(-1)
        return (error * known).sum() / known.sum().clamp(min=1)


def contrasted(first: Tensor, second: Tensor) -> tuple[Tensor, Tensor]:
    """Contrast of two vectors per row (rows, dim) with those of all others, and the share whose nearest is their
    own."""
    ours, theirs = F.normalize(first, dim=-1), F.normalize(second, dim=-1)
    likeness = ours @ theirs.t() / TEMPERATURE
    own = torch.arange(len(ours), device=ours.device)
    loss = F.cross_entropy(likeness, own) + F.cross_entropy(likeness.t(), own)
    return loss / 2, (likeness.argmax(1) == own).float().mean()


class Stage:
    """Codec, listeners, discriminators, and one step of each kind."""

    def __init__(self, codec: Codec, listeners: Listeners, corpus: SetCorpus, device: torch.device) -> None:
        assert codec.timbre is not None
        self.codec, self.timbre, self.listeners, self.corpus, self.device = (
            codec,
            codec.timbre,
            listeners,
            corpus,
            device,
        )
        self.judges = Discriminators().to(device)
        self.judges.to(memory_format=torch.channels_last)  # type: ignore[call-overload]  # torch's stubs lack it
        codec.requires_grad_(False)
        named = [(n, p) for n, p in codec.named_parameters() if n.startswith(TRAINED)]
        self.parameters = [parameter for _, parameter in named]
        for parameter in self.parameters:
            parameter.requires_grad_(True)
        self.weights = list(self.judges.parameters())
        self.optimiser = adamw(self.parameters, 8e-4, (0.8, 0.99), weight_decay=1e-3)
        self.judging = adamw(self.weights, 3e-4, (0.8, 0.99), weight_decay=1e-3)
        self.average = Average(self.parameters)
        self.plain = torch.ones((), device=device)
        """Factor on the reconstruction's weight."""
        is_gpu = device.type == "cuda"
        self._decode = torch.compile(through_images, dynamic=False) if is_gpu else through_images
        self._steps: dict[tuple[bool, bool, bool], Replayed] = {}
        self._pool = torch.cuda.graph_pool_handle() if is_gpu else None

    def listen(self, seconds: float) -> None:
        """Train the listeners and the timbre encoder."""
        encoder = list(self.timbre.encoder.parameters())
        learning = [*self.listeners.parameters(), *encoder]
        optimiser = adamw(learning, 1e-3, (0.9, 0.98), weight_decay=0.01)

        def update() -> Tensor:
            rows = self.corpus.draw(2 * ROWS, 2 * PEOPLE, FRAMES, WARM, CLIP_FRAMES, 1.0)
            factors = drawn_factors(2 * ROWS, WARPED, self.device)
            target, clips, rough = self._changed(rows, factors)
            with self._half():
                ear_loss = self.listeners.ear.loss(target[:, None], rows.phones)
                short = torch.stack([clip[:, : FRAMES * FRAME_SAMPLES] for clip in clips])
                voices = [self.listeners.voiceprint(sound[:, None])[0] for sound in (target, short[0])]
                vectors = self.timbre.encoder(rough), self.timbre.encoder(clips[1])
            whose, nearest = contrasted(*voices)
            contrast, own_share = contrasted(*vectors)
            description = self.listeners.describing(vectors[0], rows.styles, factors == 1)
            loss = ear_loss + whose + contrast + DESCRIBING * description
            optimiser.zero_grad(set_to_none=True)
            loss.backward()
            clip_each(learning)
            optimiser.step()
            return torch.stack([ear_loss, whose, nearest, contrast, own_share, description]).detach()

        step = Replayed(update, self.device)
        clock, recent = Clock(seconds), []
        for index, due in enumerate(progress(clock, max(2.0, seconds / 12))):
            set_rate(optimiser, clock.rate(index, 100, hold=0.4))
            recent.append(step())
            if index % 16 == 0:
                recent[-1].sum().item()
            if due:
                report(index, clock, recent, ("heard", "whose", "nearest", "contrast", "own", "description"))
                self.corpus.grow()
        self.listeners.requires_grad_(False)
        self.average = Average(self.parameters)

    def _changed(self, rows: Rows, factors: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Target (rows, samples) and clips (2, rows, samples) in the changed voice; the first clip as if recorded in a
        room."""
        target = _warped_some(rows.target, factors)[:, MARGIN:-MARGIN]
        clips = torch.stack([_warped_some(clip, factors) for clip in rows.clips])
        return target, clips, roughened(clips[0], ROUGH)

    def speak(self, codes: Tensor, frames: int, colours: Colours) -> Tensor:
        """Audio (rows, 1, samples) of the last frames; of the warm ones only four reach past the transformer."""
        left = iter(colours)
        latents = self.codec.quantizer.decode(codes, None, left)
        steps = latents.shape[-1] // codes.shape[-1]
        missing = (frames + 4) * steps - latents.shape[-1]
        latents = F.pad(latents, (missing, 0)) if missing > 0 else latents[..., -(frames + 4) * steps :]
        with self._half():
            audio = self._decode(self.codec.decoder, latents, tuple(left))
        return audio[..., -frames * FRAME_SAMPLES :].float()

    def step(self, index: int, judged: bool, fooling: bool) -> Tensor:
        """One update of the decoder, and of the discriminators when `judged`; they count in its loss when `fooling`."""
        kind = (index % 8 == 7, judged, fooling)
        if kind not in self._steps:
            self._steps[kind] = Replayed(lambda: self._update(*kind), self.device, self._pool)
        figures = self._steps[kind]()
        self.average.update()
        return figures

    def _update(self, from_start: bool, judged: bool, fooling: bool) -> Tensor:
        rows = self.corpus.draw(ROWS, PEOPLE, FRAMES, 0 if from_start else WARM, CLIP_FRAMES, SAME)
        factors = drawn_factors(ROWS, WARPED, self.device)
        target, clips, rough = self._changed(rows, factors)
        with self._half():
            vectors, others = self.timbre.encoder(rough), self.timbre.encoder(clips[1])
        contrast, own_share = contrasted(vectors, others)
        description = self.listeners.describing(vectors, rows.styles, factors == 1)
        fake, real = self.speak(_corrupted(rows.codes), FRAMES, self.timbre.colours(vectors)), target[:, None]
        low, true = halved(fake), halved(real)
        own = ROWS - PEOPLE
        narrow = [torch.cat([x[:own], low_passed(x[own:])]) for x in (low, true)]
        spectral = reconstruction_loss(*narrow)
        with self._half():
            ear_distance = self.listeners.ear.distance(fake, real)
            whose = self.listeners.voiceprint.distance(fake, real)
        loss = self.plain * RECONSTRUCTION * spectral + HEARD * ear_distance + WHOSE * whose
        loss = loss + OVERTONES * overtones(fake[:own], real[:own]) + CONTRAST * contrast + DESCRIBING * description
        figures = [spectral, ear_distance, whose, contrast, own_share, description, *torch.zeros(3, device=self.device)]
        if judged:
            push, verdicts = self._judge(low, true, fooling)
            loss = loss + (low[:JUDGED_ROWS] * push).sum()
            figures[6:] = verdicts
        self.optimiser.zero_grad(set_to_none=True)
        loss.backward()
        clip_each(self.parameters, limit=2.0)
        self.optimiser.step()
        return torch.stack(figures).detach()

    def _judge(self, low: Tensor, true: Tensor, fooling: bool) -> tuple[Tensor, list[Tensor]]:
        """Train the discriminators; returns their gradient for the first rows, and [fooling, features, judges]."""
        shown = low[:JUDGED_ROWS].detach().requires_grad_(True)
        with self._half():
            seen_true, seen = split(self.judges(torch.cat([true[:JUDGED_ROWS], shown])))
        judges, fooled, features = judge_loss(seen_true, seen), fooling_loss(seen), feature_loss(seen_true, seen)
        gradients = torch.autograd.grad(judges, self.weights, retain_graph=fooling)
        push = torch.zeros_like(shown)
        if fooling:
            (push,) = torch.autograd.grad(FOOLED * fooled + FEATURES * features, shown)
        for weight, gradient in zip(self.weights, gradients, strict=True):
            weight.grad = torch.empty_like(weight).copy_(gradient)  # with its strides, as the fused optimiser requires
        torch.nn.utils.clip_grad_norm_(self.weights, 10.0)
        self.judging.step()
        return push, [fooled, features, judges]

    def _half(self) -> torch.autocast:
        return torch.autocast(self.device.type, torch.bfloat16, self.device.type == "cuda", cache_enabled=False)

    def save(self, out: Path) -> None:
        """Averaged decoder and timbre part, and the discriminators, in half precision."""
        self.average.swap()
        state = {k: v.half() for k, v in self.codec.state_dict().items() if k.startswith(TRAINED)}
        self.average.swap()
        write_state(state, out / "timbre.pt")
        write_state({k: v.half() for k, v in self.judges.state_dict().items()}, out / "judges.pt")


def _warped_some(audio: Tensor, factors: Tensor) -> Tensor:
    return torch.where(factors[:, None] == 1, audio, warped(audio, factors))


def _corrupted(codes: Tensor) -> Tensor:
    """Codes with some residual ones replaced at random, like the errors of an autoregressive model."""
    wrong = torch.rand(codes.shape, device=codes.device) < WRONG
    wrong[:, 0] = False
    return torch.where(wrong, torch.randint_like(codes, CODEC.residual_codebook_size), codes)


def report(index: int, clock: Clock, recent: list[Tensor], names: tuple[str, ...]) -> None:
    """Print the means of recent figures, and clear them."""
    means = torch.stack(recent).mean(0).tolist()
    print(
        f"{index} {clock.elapsed:.0f}s", " ".join(f"{n} {v:.4f}" for n, v in zip(names, means, strict=True)), flush=True
    )
    recent.clear()


def train(stage: Stage, seconds: float, spectral_share: float, rate: float, out: Path) -> None:
    """Step until the time is over, saving every minute."""
    clock, saved, recent, since = Clock(seconds), 0.0, [], 0
    names = ("spectral", "heard", "whose", "contrast", "own", "description", "fooling", "features", "judges")
    for index, due in enumerate(progress(clock, max(5.0, seconds / 80))):
        judged = clock.share >= spectral_share
        since += judged
        fooling = since > ONLY_JUDGES or (judged and not spectral_share)
        factor = rate * clock.rate(index, 200, hold=0.5)
        set_rate(stage.optimiser, factor * (0.5 if judged else 1.0))
        set_rate(stage.judging, factor)
        stage.plain.fill_(1.0 if not judged else 0.5 if clock.share < 0.7 else 0.33)
        recent.append(stage.step(index, judged, fooling))
        if index % 16 == 0:
            recent[-1].sum().item()  # wait for the GPU, else the clock is meaningless
        if due:
            report(index, clock, recent, names)
            stage.corpus.grow()
        if clock.elapsed > saved + 60:
            saved = clock.elapsed
            stage.save(out)
    stage.save(out)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sets", type=Path)
    parser.add_argument("work", type=Path)
    parser.add_argument("--seconds", type=float, default=1500, help="waiting and encoding included")
    parser.add_argument("--listen", type=float, default=75, help="seconds for the listeners")
    parser.add_argument("--spectral", type=float, default=0.2, help="share of the rest before the discriminators")
    parser.add_argument("--rate", type=float, default=0.75, help="factor on the learning rates")
    parser.add_argument("--hours", type=float, default=40.0, help="of speech, at most")
    parser.add_argument("--gather", type=float, default=0.0, help="wait until the shards hold this many hours")
    arguments = parser.parse_args()
    ends = time.monotonic() + arguments.seconds
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    codec, listeners = widened(arguments.work, device), Listeners().to(device)
    corpus = SetCorpus(arguments.sets, codec, device, arguments.hours)
    corpus.grow()
    while corpus.hours < arguments.gather or 0 in corpus.sets:
        if time.monotonic() > ends:
            raise SystemExit(
                f"{arguments.sets} has {corpus.hours:.1f} h, {corpus.sets[0]} sets of the teacher's and "
                f"{corpus.sets[1]} of people's; both kinds and {arguments.gather:g} h are needed"
            )
        time.sleep(1)
        corpus.grow()
    print(f"{corpus.hours:.1f} h, {corpus.sets} sets", flush=True)
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = True
    torch.backends.cudnn.benchmark = True
    styles = corpus.styles[0, : corpus.sets[0]].flatten(0, 1)
    listeners.mean.copy_(styles.mean(0))
    listeners.spread.copy_(styles.std(0) + 1e-3)
    stage = Stage(codec, listeners, corpus, device)
    spectral = arguments.spectral
    if (arguments.work / "listeners.pt").exists():
        listeners.load_state_dict(read_state(arguments.work / "listeners.pt", device))
        listeners.requires_grad_(False)
    else:
        stage.listen(arguments.listen)
        write_state({k: v.half() for k, v in listeners.state_dict().items()}, arguments.work / "listeners.pt")
    if (arguments.work / "timbre.pt").exists() and (arguments.work / "judges.pt").exists():
        codec.load_state_dict(read_state(arguments.work / "timbre.pt", device), strict=False)
        stage.judges.load_state_dict(read_state(arguments.work / "judges.pt", device))
        stage.average = Average(stage.parameters)
        spectral = 0.0
    train(stage, ends - time.monotonic(), spectral, arguments.rate, arguments.work)
    print(f"{corpus.hours:.1f} h, {corpus.sets} sets", flush=True)


if __name__ == "__main__":
    main()
