"""Drawing tokens, against the rule written out in numpy, and the noise against Philox's published vectors."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from engine.model.draw_rules import Penalised, RepetitionAware
from engine.model.sampling import REPEAT_WINDOW, draw, exponential_noise

RANKS = 64


def allowed(logits: np.ndarray, top_p: float, top_k: int) -> np.ndarray:
    """Token ids that may be drawn, best first: on the un-tempered distribution, the one that crosses top_p dropped."""
    order = np.argsort(-logits, kind="stable")
    exp = np.exp(logits[order].astype(np.float64) - logits.max())
    cumulative = np.cumsum(exp / exp.sum())
    kept = (cumulative <= top_p) & (np.arange(len(order)) < top_k)
    kept[0] = True
    return order[kept]


def choose(logits: np.ndarray, temperature: float, top_p: float, top_k: int, noise: np.ndarray) -> int:
    """The whole rule: filter, temperature, then argmax of p / Exp(1), with noise given by rank."""
    ids = allowed(logits, top_p, top_k)
    tempered = logits[ids].astype(np.float64) / max(temperature, 1e-5)
    weights = np.exp(tempered - tempered.max())
    return int(ids[np.argmax(weights / noise[: len(ids)])])


def parameters(rows: int, seed: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Mixed temperatures, top-p and top-k, including edge values."""
    rng = np.random.default_rng(seed)
    temperature = rng.choice([0.05, 0.5, 0.8, 1.0, 2.0], rows).astype(np.float32)
    top_p = rng.choice([0.0, 0.1, 0.5, 0.9, 1.0], rows).astype(np.float32)
    top_k = rng.choice([1, 2, 5, 30, RANKS], rows)
    return torch.tensor(temperature), torch.tensor(top_p), torch.tensor(top_k)


def random_logits(rows: int, size: int, seed: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return 3 * torch.randn(rows, size, generator=generator)


def noise_for(rows: int, draws: int, seed: int = 0) -> torch.Tensor:
    seeds = torch.arange(rows) + 1000 * seed
    return exponential_noise(seeds, torch.zeros(rows, dtype=torch.int64), draws, RANKS)


@pytest.mark.parametrize("size", [20, 64, 400])
def test_draw_matches_the_rule_in_numpy(size: int) -> None:
    rows = 300
    logits, noise = random_logits(rows, size, size), noise_for(rows, 1)[:, 0]
    temperature, top_p, top_k = parameters(rows, size)
    drawn = draw(logits, temperature, top_p, top_k, noise)
    for row in range(rows):
        how = float(temperature[row]), float(top_p[row]), int(top_k[row])
        assert int(drawn[row]) == choose(logits[row].numpy(), *how, noise[row].numpy())


def test_top_p_is_applied_before_temperature() -> None:
    """At temperature 2 the flattened distribution would admit the second token; without it, top-p drops it."""
    logits = torch.tensor([[3.0, 1.0, 0.0, 0.0]]).repeat(500, 1)
    rows = len(logits)
    drawn = draw(
        logits, torch.full((rows,), 2.0), torch.full((rows,), 0.8), torch.full((rows,), 4), noise_for(rows, 1)[:, 0]
    )
    assert drawn.eq(0).all()


def test_equally_likely_tokens_are_drawn_equally_often() -> None:
    rows = 60_000
    ones = torch.ones(rows)
    noise = exponential_noise(torch.arange(rows), torch.zeros(rows, dtype=torch.int64), 1, 30)[:, 0]
    drawn = draw(torch.zeros(rows, 30), ones, ones + 1, torch.full((rows,), 30), noise)
    counts = torch.bincount(drawn, minlength=30)
    expected = rows / 30
    assert (counts - expected).abs().max() < 4.5 * expected**0.5


def test_samples_follow_the_probabilities() -> None:
    rows = 60_000
    probabilities = torch.tensor([0.5, 0.3, 0.15, 0.05])
    ones = torch.ones(rows)
    noise = exponential_noise(torch.arange(rows), torch.full((rows,), 7), 1, 4)[:, 0]
    drawn = draw(probabilities.log().expand(rows, 4), ones, ones + 1, torch.full((rows,), 4), noise)
    shares = torch.bincount(drawn, minlength=4) / rows
    assert (shares - probabilities).abs().max() < 0.01


def test_equal_logits_are_ordered_by_index_regardless_of_other_rows_top_k() -> None:
    """Half-precision logits are full of ties; top_k 30 of one row must not depend on top_k 500 of another."""
    rows = 200
    logits = (2 * torch.randn(rows, 600, generator=torch.Generator().manual_seed(0))).bfloat16().float()
    logits[0], logits[1] = 0.0, -1.0
    temperature, top_p, top_k = torch.ones(rows), torch.ones(rows), torch.full((rows,), 30)
    noise = exponential_noise(torch.arange(rows), torch.zeros(rows, dtype=torch.int64), 1, 500)[:, 0]
    alone = draw(logits, temperature, top_p, top_k, noise[:, :30])
    beside = draw(logits, temperature, top_p, top_k, noise)
    assert torch.equal(alone, beside)
    for row in range(rows):
        assert int(alone[row]) == choose(logits[row].numpy(), 1.0, 1.0, 30, noise[row].numpy())


def test_temperature_zero_takes_the_best_token_with_any_noise() -> None:
    logits = random_logits(200, 50, 3)
    zero, ones = torch.zeros(200), torch.ones(200)
    drawn = draw(logits, zero, ones, torch.full((200,), 30), noise_for(200, 1)[:, 0])
    assert torch.equal(drawn, logits.argmax(-1))


def test_a_repeated_semantic_token_is_drawn_again_at_temperature_1_and_top_p_09() -> None:
    rows, size = 400, 24
    stop = size - 1
    logits, noise = random_logits(rows, size, 8), noise_for(rows, 2)
    temperature, top_p, top_k = parameters(rows, 5)
    recent = torch.randint(size, (rows, REPEAT_WINDOW), generator=torch.Generator().manual_seed(1))
    recent[::5] = -1
    drawn = RepetitionAware(stop).main(logits, (temperature, top_p, top_k), noise, recent, torch.zeros(rows))
    again = 0
    for row in range(rows):
        line, k = logits[row].numpy(), int(top_k[row])
        expected = choose(line, float(temperature[row]), float(top_p[row]), k, noise[row, 0].numpy())
        if expected in recent[row].tolist() and expected != stop:
            expected, again = choose(line, 1.0, 0.9, k, noise[row, 1].numpy()), again + 1
        assert int(drawn[row]) == expected
    assert 50 < again < 350, "both branches must be taken for this test to mean anything"


def test_the_penalised_rule_follows_hugging_faces_order() -> None:
    rows, size = 300, 24
    stop = size - 1
    logits, noise = random_logits(rows, size, 8), noise_for(rows, 2)
    temperature, top_p, top_k = parameters(rows, 5)
    generator = torch.Generator().manual_seed(2)
    said, frame = torch.randint(3, (rows, size), generator=generator), torch.randint(4, (rows,), generator=generator)
    drawn = Penalised(stop).main(logits, (temperature, top_p, top_k), noise, said, frame)
    for row in range(rows):
        line = [value * 1.05 if value < 0 else value / 1.05 for value in logits[row].tolist()]
        line = [new if count else old for new, old, count in zip(line, logits[row].tolist(), said[row], strict=True)]
        allowed = [index for index in range(size) if index != stop or frame[row] >= 2]
        order = sorted(allowed, key=lambda index: -line[index])[: int(top_k[row])]
        heat = float(temperature[row])
        if heat == 0:
            assert int(drawn[row]) == order[0]
            continue
        shares = np.exp([(line[index] - line[order[0]]) / heat for index in order])
        before = np.cumsum(shares / shares.sum()) - shares / shares.sum()
        kept = max(1, int((before < float(top_p[row])).sum()))
        chances = shares[:kept] / noise[row, 0, :kept].numpy()
        assert int(drawn[row]) == order[int(chances.argmax())]


def test_a_count_of_what_was_said_can_be_taken_back() -> None:
    rule, memory = Penalised(stop=5), torch.zeros(2, 6, dtype=torch.int64)
    for tokens in ([3, 4], [3, 0]):
        rule.remember(memory, torch.tensor([0, 1]), torch.tensor(tokens))
    rule.correct(memory, torch.tensor([0, 1]), torch.tensor([3, 0]), torch.tensor([2, 4]))
    assert memory.tolist() == [rule.recall(np.array(said)).tolist() for said in ([3, 2], [4, 4])]


def test_repeat_window_is_ten_as_in_upstream() -> None:
    assert REPEAT_WINDOW == 10


def test_noise_depends_only_on_seed_frame_draw_and_rank() -> None:
    seeds, frames = torch.tensor([5, 2**62 + 9, 5]), torch.tensor([0, 3, 1])
    together = exponential_noise(seeds, frames, 4, 50)
    for row in range(3):
        alone = exponential_noise(seeds[row : row + 1], frames[row : row + 1], 2, 9)
        assert torch.equal(together[row, :2, :9], alone[0])
    assert together.unique().numel() == together.numel()


def test_noise_is_exponential() -> None:
    noise = exponential_noise(torch.arange(300), torch.zeros(300, dtype=torch.int64), 3, 200).flatten()
    assert abs(float(noise.mean()) - 1) < 0.01
    assert abs(float(noise.var()) - 1) < 0.03
    assert abs(float((noise > 2).float().mean()) - np.exp(-2)) < 0.003


def test_noise_is_never_zero() -> None:
    """The top bits of this seed's word at rank 376 are all ones: the largest possible uniform number."""
    noise = exponential_noise(torch.tensor([4696]), torch.tensor([0]), 1, 512)
    assert 0 < noise.min() < 1e-7


@pytest.mark.parametrize(
    ("counter", "key", "words"),
    [
        ((0, 0, 0, 0), (0, 0), (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
        ((0xFFFFFFFF,) * 4, (0xFFFFFFFF,) * 2, (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
        (
            (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344),
            (0xA4093822, 0x299F31D0),
            (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1),
        ),
    ],
)
def test_philox_matches_its_published_vectors(
    counter: tuple[int, ...], key: tuple[int, int], words: tuple[int, ...]
) -> None:
    from engine.model.sampling import _philox

    actual = _philox([torch.tensor([word]) for word in counter], torch.tensor([key[0]]), torch.tensor([key[1]]))
    assert [int(word) for word in actual] == list(words)
