"""Stage c: trains the slow and the fast autoregressive model on the encoded corpus.

    python -m training.speech.train_speech SPEECH_FOLDER OUT --seconds 1000

Writes OUT/speech.pt (averaged weights, bfloat16) whenever validation improves; if OUT/speech.pt exists, it continues
from it.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.data import DataLoader

from engine.model.dual_ar import Block, Causal, DualAR, Transformer
from engine.model.layers import rope_angles
from training.data.phones import PHONES, UNKNOWN
from training.optimise import Average, Clock, Muon, set_rate
from training.sizes import MODEL
from training.speech.sequences import Batch, Batches, Speech

CAUSAL = Causal()


def start_weights(model: DualAR) -> None:
    """Initial weights: small embeddings; projections that preserve variance; branches that start at zero."""
    for name, parameter in model.named_parameters():
        if "embeddings" in name or name == "fast_output.weight":
            nn.init.normal_(parameter, std=0.05)
        elif name.endswith(("wo.weight", "w2.weight")):
            nn.init.zeros_(parameter)
        elif parameter.dim() == 2:
            nn.init.normal_(parameter, std=parameter.shape[1] ** -0.5)


class Trainer:
    """The model, its two optimisers, and the loss of a batch."""

    def __init__(self, device: torch.device, compiled: bool, dropout: float) -> None:
        self.device = device
        self.model = DualAR(MODEL).to(device)
        start_weights(self.model)
        self.phone_heads = nn.Linear(MODEL.slow.dim, 2 * len(PHONES)).to(device)
        self.parameters = list(self.model.parameters())
        matrices = [p for n, p in self.model.named_parameters() if ".layers." in n and p.dim() == 2]
        inside = {id(p) for p in matrices}
        others = [p for p in (*self.parameters, *self.phone_heads.parameters()) if id(p) not in inside]
        self.optimisers: list[torch.optim.Optimizer] = [
            Muon(matrices, lr=0.02),
            torch.optim.AdamW(others, lr=3e-3, betas=(0.9, 0.95), weight_decay=0.0, fused=device.type == "cuda"),
        ]
        self.average = Average(self.parameters, decay=0.998)
        self.best = float("inf")
        # One compiled function serves every block: blocks differ in weights only.
        self._block = torch.compile(_run_block, dynamic=False) if compiled else _run_block
        self._dropout = self._dropped = dropout

    def run(self, transformer: Transformer, x: Tensor) -> Tensor:
        """Transformer.forward over whole sequences, block by block through the compiled function."""
        positions = torch.arange(x.shape[1], device=x.device)[None]
        rope = rope_angles(positions, *transformer.sizes.rope)
        for block in transformer.layers:
            assert isinstance(block, Block)
            x = self._block(block, x, rope, self._dropped)
        return transformer.norm(x)

    def losses(self, batch: Batch, corruption: float) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Slow loss per weighted position, fast loss per codebook (codebooks − 1,), stop loss where a take ends,
        phones.

        States must also predict their own phone and the next, which keeps their place in the text (VALL-E R, 2024).
        """
        tokens, codes = corrupted(batch, corruption)
        with torch.autocast(self.device.type, torch.bfloat16, enabled=self.device.type == "cuda"):
            hidden = self.run(self.model.slow, self.model.embed(tokens, codes))
            logits = F.linear(hidden, self.model.head())
            answers = torch.roll(batch.tokens, -1, 1)
            stop = answers == MODEL.eos_token
            answers = torch.where(stop, MODEL.semantic_size, answers - MODEL.semantic_start)
            wanted = batch.weights > 0
            losses = F.cross_entropy(
                logits.float().flatten(0, 1), answers.where(wanted, 0).flatten(), reduction="none"
            ).view_as(batch.weights)
            slow = (losses * batch.weights).sum() / batch.weights.sum()
            ends = (stop & wanted).float()
            stopped = (losses.detach() * ends).sum() / ends.sum().clamp(min=1)
            fast = self._fast_loss(hidden, batch)
            phone_logits = (
                self.phone_heads(hidden).float().unflatten(-1, (2, -1)).permute(0, 3, 2, 1)
            )  # (rows, phones, 2, steps)
            spoken = F.cross_entropy(phone_logits, batch.phones, ignore_index=UNKNOWN)
        return slow, fast, stopped, spoken

    def _fast_loss(self, hidden: Tensor, batch: Batch) -> Tensor:
        frames = torch.roll(batch.codes, -1, 2).transpose(1, 2).flatten(0, 1)[batch.chosen]  # (n, codebooks)
        first = self.model.fast_project_in(hidden.flatten(0, 1)[batch.chosen])[:, None]
        inputs = torch.cat([first, self.model.fast.embeddings(frames[:, :-1]).to(first.dtype)], 1)
        logits = self.model.fast_output(self.run(self.model.fast, inputs))[:, 1:].float()
        return F.cross_entropy(logits.transpose(1, 2), frames[:, 1:], reduction="none").mean(0)

    def step(self, batch: Batch) -> Tensor:
        """One update; returns [slow, fast mean, stop, phones]."""
        slow, fast, stopped, spoken = self.losses(batch, corruption=0.06)
        for optimiser in self.optimisers:
            optimiser.zero_grad(set_to_none=True)
        (slow + 0.7 * fast.mean() + 0.5 * spoken).backward()
        for optimiser in self.optimisers:
            optimiser.step()
        self.average.update()
        return torch.stack([slow, fast.mean(), stopped, spoken]).detach()

    @torch.no_grad()
    def validate(self, batches: list[Batch]) -> float:
        """Print the averaged weights' losses on validation sentences; returns slow + fast."""
        self.average.swap()
        compiled, self._block = self._block, _run_block  # other shapes, which are not worth compiling
        self._dropped = 0.0
        figures = [self.losses(batch.to(self.device), corruption=0.0) for batch in batches]
        self._block, self._dropped = compiled, self._dropout
        self.average.swap()
        slow, stop, spoken = (torch.stack([f[i] for f in figures]).mean().item() for i in (0, 2, 3))
        fast = torch.stack([f[1] for f in figures]).mean(0)
        books = " ".join(f"{v:.2f}" for v in fast.tolist())
        print(
            f"VALID slow {slow:.4f} stop {stop:.4f} phones {spoken:.4f} fast {fast.mean().item():.4f} [{books}]",
            flush=True,
        )
        return slow + fast.mean().item()

    def save_if_better(self, batches: list[Batch], out: Path) -> None:
        """Validate, and store these weights if they are the best so far."""
        loss = self.validate(batches)
        if loss < self.best:
            self.best = loss
            self.save(out)

    def save(self, out: Path) -> None:
        self.average.swap()
        state = {k: v.bfloat16() for k, v in self.model.state_dict().items()}
        self.average.swap()
        unfinished = out / "speech.tmp"
        torch.save(state, unfinished)
        unfinished.rename(out / "speech.pt")

    def resume(self, out: Path) -> bool:
        path = out / "speech.pt"
        if not path.exists():
            return False
        state = torch.load(path, map_location=self.device)
        self.model.load_state_dict({k: v.float() for k, v in state.items()})
        self.average = Average(self.parameters, decay=0.998)
        return True


def _run_block(block: Block, x: Tensor, rope: Tensor, dropped: float) -> Tensor:
    """One block; the share `dropped` of its addition to x is dropped at random."""
    y = block(x, rope, 0, CAUSAL)
    return x + F.dropout(y - x, dropped) if dropped else y


def corrupted(batch: Batch, share: float) -> tuple[Tensor, Tensor]:
    """Tokens and codes with this share of the codes replaced at random: takes must recover from their own errors."""
    if share == 0:
        return batch.tokens, batch.codes
    wrong = torch.rand(batch.codes.shape, device=batch.codes.device) < share
    codes = torch.where(wrong, torch.randint_like(batch.codes, MODEL.codebook_size), batch.codes)
    spoken = batch.tokens >= MODEL.semantic_start
    return torch.where(spoken, codes[:, 0] + MODEL.semantic_start, batch.tokens), codes


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("speech", type=Path, help="folder with the encoded shards")
    parser.add_argument("out", type=Path)
    parser.add_argument("--seconds", type=float, default=1000)
    parser.add_argument("--positions", type=int, default=32768, help="a batch")
    parser.add_argument("--fast-frames", type=int, default=6144, help="a batch")
    parser.add_argument("--workers", type=int, default=6)
    parser.add_argument("--seed", type=int, default=0, help="of random choices; use another one when continuing a run")
    parser.add_argument("--rate", type=float, default=1.0, help="factor on the learning rates")
    parser.add_argument("--dropout", type=float, default=0.1, help="share of each block's addition, while training")
    parser.add_argument("--compile", action=argparse.BooleanOptionalAction, default=torch.cuda.is_available())
    arguments = parser.parse_args()
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.backends.cuda.matmul.allow_tf32 = True
    if arguments.compile:
        from torch import _dynamo  # takes seconds, which loading only the models does not need

        _dynamo.config.recompile_limit = 64
    torch.manual_seed(0)
    speech = Speech(arguments.speech)
    training, validating = speech.split()
    dataset = Batches(speech, training, arguments.positions, arguments.fast_frames, arguments.seed)
    loader = DataLoader(
        dataset, batch_size=None, num_workers=arguments.workers, pin_memory=device.type == "cuda",
        prefetch_factor=4 if arguments.workers else None,
    )  # fmt: skip
    drawn = iter(Batches(speech, validating, arguments.positions // 2, arguments.fast_frames // 2, seed=9))
    validation = [next(drawn) for _ in range(4)]
    trainer = Trainer(device, arguments.compile, arguments.dropout)
    arguments.out.mkdir(parents=True, exist_ok=True)
    hold = 0.25
    if trainer.resume(arguments.out):
        hold = 0.0
        print("continuing from", arguments.out / "speech.pt", flush=True)
    count = sum(p.numel() for p in trainer.parameters) / 1e6
    print(f"{len(training)} utterances, {speech.starts[-1]} frames, {count:.2f} M parameters", flush=True)
    train(trainer, loader, validation, arguments.seconds, arguments.rate, hold, arguments.out)


def train(
    trainer: Trainer,
    loader: DataLoader[Batch],
    validation: list[Batch],
    seconds: float,
    rate: float,
    hold: float,
    out: Path,
) -> None:
    """Step until the time is over, the rates falling after the share `hold` of it; validate every minute."""
    clock, reported, saved, recent = Clock(seconds), 0.0, 60.0, []
    for index, batch in enumerate(loader):
        for optimiser in trainer.optimisers:
            set_rate(optimiser, rate * clock.rate(index, 200, hold=hold, last=0.02))
        recent.append(trainer.step(batch.to(trainer.device)))
        if clock.elapsed >= reported:
            reported = clock.elapsed + max(5.0, seconds / 80)
            slow, fast, stop, spoken = torch.stack(recent).mean(0).tolist()
            print(
                f"{index} {clock.elapsed:.0f}s slow {slow:.4f} fast {fast:.4f} stop {stop:.4f} phones {spoken:.4f}",
                flush=True,
            )
            recent = []
        if clock.elapsed >= saved:
            saved = clock.elapsed + max(60.0, seconds / 12)
            trainer.save_if_better(validation, out)
        if clock.elapsed >= seconds:
            break
    trainer.save_if_better(validation, out)


if __name__ == "__main__":
    main()
