"""The engine's takes: the reference's codes and audio, independent of other takes, with the right finish reason."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from engine import Engine, InvalidReference, InvalidUtterance, PromptTooLong, Reference, Sampling, Utterance
from engine.checkpoint import open_source
from engine.model.prompt import build_prompt
from engine.runtime.clip_encoder import resample
from tests import upstream
from tests.engine.speaking import first_chunk, greedy, hear, running_engine, seeded
from tests.tiny import FEW_CODEBOOKS, FEW_LAYERS, TinyCodec, TinyModel, write_checkpoint

TOLERANCE = 1e-5

CHECKPOINTS = {
    "default": (TinyModel(), TinyCodec()),
    "fast AR of another width, untied": (
        TinyModel(fast_dim=48, fast_n_head=3, fast_n_local_heads=1, n_local_heads=1, tie_word_embeddings=False),
        TinyCodec(num_codebooks=4),
    ),
    "two codebooks": (TinyModel(n_local_heads=4), TinyCodec(num_codebooks=2)),
}


@pytest.fixture(scope="module")
def engine(quick_checkpoint: Path) -> Iterator[Engine]:
    with running_engine(quick_checkpoint, max_rows=4) as started:
        yield started


def clip(seconds: float, rate: int, seed: int = 0) -> np.ndarray:
    """Noise of varying level, float32 (samples,)."""
    rng = np.random.default_rng(seed)
    samples = int(seconds * rate)
    return (0.3 * rng.standard_normal(samples) * np.sin(np.arange(samples) / rate * 9)).astype(np.float32)


def voice(frames: int, seed: int, codebooks: int = FEW_CODEBOOKS.num_codebooks) -> Reference:
    codes = np.random.default_rng(seed).integers(0, 64, (codebooks, frames), dtype=np.int16)
    return Reference(codes, f"Words number {seed}.")


@pytest.mark.parametrize("name", CHECKPOINTS)
async def test_greedy_frames_and_their_audio_match_upstream(name: str, tmp_path: Path) -> None:
    model, codec = CHECKPOINTS[name]
    folder = write_checkpoint(tmp_path, model, codec, seed=31)
    config = open_source(folder).config
    tokenizer = open_source(folder).tokenizer()
    ar, dac = upstream.load_ar(folder), upstream.load_codec(folder)
    with running_engine(folder) as engine:
        for references in ((), (voice(30, 1, codec.num_codebooks),)):
            utterance = greedy("What the reference says, we say.", frames=24, references=references)
            prompt = build_prompt(utterance, tokenizer, config)
            rows = torch.from_numpy(np.concatenate([prompt.ids[None], prompt.codes]))
            expected = upstream.generate_greedily(ar, rows, 24, config.eos_token)
            take = await hear(engine, utterance)
            assert expected.shape[1] == 24
            assert expected[0].unique().numel() > 8, "the take must vary for this test to mean anything"
            assert np.array_equal(take.codes, expected.numpy())
            assert np.abs(take.pcm - upstream.decode(dac, expected).numpy()).max() <= TOLERANCE


async def test_chunks_are_consecutive_and_only_the_last_has_a_finish_reason(engine: Engine) -> None:
    take = await hear(engine, seeded("One after another.", seed=2, frames=29))
    done = 0
    for chunk in take.chunks:
        assert chunk.first_frame == done
        assert chunk.codes.dtype == np.int16
        assert chunk.codes.shape == (engine.info.num_codebooks, chunk.frames)
        assert chunk.pcm.dtype == np.float32
        assert chunk.pcm.shape == (chunk.frames * engine.info.frame_samples,)
        assert np.abs(chunk.pcm).max(initial=0) <= 1
        done += chunk.frames
    assert done == 29
    assert [chunk.finish_reason for chunk in take.chunks[:-1]] == [None] * (len(take.chunks) - 1)
    assert len(take.chunks) > 3
    for chunk in take.chunks:
        assert 0 <= chunk.timing.admitted <= chunk.timing.first_frame <= chunk.timing.now


async def test_the_first_chunk_is_one_frame(engine: Engine) -> None:
    chunks, first = await first_chunk(engine, seeded("Quick.", seed=2))
    await chunks.aclose()
    assert first.frames == 1


@pytest.mark.parametrize("frames", [1, 2, 3, 11, 40])
async def test_take_at_its_limit_finishes_with_length_and_every_frame(engine: Engine, frames: int) -> None:
    take = await hear(engine, greedy(frames=frames))
    assert take.reason == "length"
    assert take.codes.shape[1] == frames
    assert len(take.pcm) == frames * engine.info.frame_samples


async def test_the_context_limits_a_take_and_every_position_is_used(quick_checkpoint: Path) -> None:
    config = open_source(quick_checkpoint).config
    utterance = greedy("word " * 60, frames=100_000)
    prompt = len(build_prompt(utterance, open_source(quick_checkpoint).tokenizer(), config))
    with running_engine(quick_checkpoint, max_context=prompt + 20) as engine:
        take = await hear(engine, utterance)
        reference = await hear(engine, greedy("word " * 60, frames=21))
    assert take.reason == "length"
    assert take.codes.shape[1] == 21  # the last frame is never read again and needs no position
    assert np.array_equal(take.codes, reference.codes)


async def test_too_long_prompt_is_refused_with_the_context_size(quick_checkpoint: Path) -> None:
    with running_engine(quick_checkpoint, max_context=256) as engine:
        with pytest.raises(PromptTooLong) as caught:
            await hear(engine, greedy("word " * 100))
        assert "256" in str(caught.value)
        await hear(engine, greedy("short"))


async def test_end_token_finishes_a_take_with_stop(tmp_path: Path) -> None:
    folder = write_checkpoint(tmp_path, replace(FEW_LAYERS, stop_bias=1.0), FEW_CODEBOOKS, seed=4)
    with running_engine(folder) as engine:
        takes = [await hear(engine, seeded("Until it ends.", seed, 1500, temperature=1.0)) for seed in range(4)]
    assert "stop" in [take.reason for take in takes]
    for take in takes:
        if take.reason == "stop":
            assert take.codes.shape[1] < 1500
        assert len(take.pcm) == take.codes.shape[1] * engine.info.frame_samples


async def test_the_same_request_and_seed_give_the_same_codes(engine: Engine) -> None:
    utterance = seeded("Again and again.", seed=77, frames=20, references=(voice(9, 3),))
    first = await hear(engine, utterance)
    await hear(engine, seeded("Something else between.", seed=5))
    assert np.array_equal((await hear(engine, utterance)).codes, first.codes)


async def test_the_seed_and_every_sampling_parameter_change_the_codes(engine: Engine) -> None:
    plain = await hear(engine, seeded("Different.", seed=1, frames=20, temperature=1.0, top_p=0.9, top_k=30))
    changes = ({"seed": 2}, {"temperature": 0.5}, {"top_p": 0.5}, {"top_k": 3})
    for change in changes:
        how = {"seed": 1, "temperature": 1.0, "top_p": 0.9, "top_k": 30} | change
        other = await hear(engine, Utterance("Different.", sampling=Sampling(**how), max_frames=20))
        assert not np.array_equal(other.codes, plain.codes), change


async def test_seed_also_affects_the_fast_ar(engine: Engine) -> None:
    """With one semantic token allowed, two seeds share their first code and differ in later ones."""
    takes = [await hear(engine, seeded("Fast.", seed, frames=1, top_p=0.9, top_k=30)) for seed in range(12)]
    by_first: dict[int, set[bytes]] = {}
    for take in takes:
        by_first.setdefault(int(take.codes[0, 0]), set()).add(take.codes.tobytes())
    assert max(len(codes) for codes in by_first.values()) > 1


def mixed_utterances() -> list[Utterance]:
    """Short and long prompts, with and without references, all kinds of sampling."""
    return [
        greedy("Greedy one.", frames=25),
        seeded("A seeded take with defaults.", 11, 30),
        seeded("Hot " * 20, 12, 17, temperature=1.5, top_p=1.0, top_k=500),
        seeded("Cloned.", 13, 22, references=(voice(40, 5), voice(7, 6)), temperature=0.3, top_k=2),
        seeded("[whisper] quiet", 14, 9, temperature=1.0, top_p=0.4),
        greedy("Cloned and greedy.", frames=19, references=(voice(3, 9),)),
        seeded("x", 2**63 - 1, 30, top_k=1024, top_p=0.99),
    ]


async def test_takes_in_a_batch_equal_the_same_takes_alone(engine: Engine) -> None:
    """Seven takes in four rows, submitted at once: they join and leave while others run."""
    utterances = mixed_utterances()
    alone = [await hear(engine, utterance) for utterance in utterances]
    together = await asyncio.gather(*(hear(engine, utterance) for utterance in utterances))
    for one, other in zip(alone, together, strict=True):
        assert np.array_equal(one.codes, other.codes)
        assert np.abs(one.pcm - other.pcm).max() <= TOLERANCE
        assert one.reason == other.reason


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
async def test_reproducible_takes_do_not_depend_on_their_batch(tiny_checkpoint: Path, dtype: str) -> None:
    """In bfloat16, rounding changes draws within a few frames if torch computes several rows at once."""
    utterances = [seeded("Hello there. " * (3 * number + 1), number, 12) for number in range(4)]
    with running_engine(tiny_checkpoint, max_rows=4, threads=1, reproducible=True, dtype=dtype) as engine:
        alone = [await hear(engine, utterance) for utterance in utterances]
        together = await asyncio.gather(*(hear(engine, utterance) for utterance in utterances))
    for one, other in zip(alone, together, strict=True):
        assert np.array_equal(one.codes, other.codes) and np.array_equal(one.pcm, other.pcm)


async def test_takes_joining_late_or_leaving_early_do_not_disturb_others(engine: Engine) -> None:
    utterances = mixed_utterances()
    alone = await hear(engine, utterances[1])
    chunks, first = await first_chunk(engine, utterances[1])
    codes = [first.codes]
    for other in (*utterances[2:], *utterances[2:4]):
        leaving, _ = await first_chunk(engine, other)
        codes += [(await anext(chunks)).codes] if sum(part.shape[1] for part in codes) < 28 else []
        await leaving.aclose()
    codes += [chunk.codes async for chunk in chunks]
    assert np.array_equal(np.concatenate(codes, axis=1), alone.codes)


async def test_prefill_of_a_long_prompt_in_pieces_gives_the_same_take(tmp_path: Path) -> None:
    folder = write_checkpoint(tmp_path, seed=6)
    config = open_source(folder).config
    utterance = greedy("long " * 300, frames=10)
    prompt = build_prompt(utterance, open_source(folder).tokenizer(), config)
    assert len(prompt) > 1100
    rows = torch.from_numpy(np.concatenate([prompt.ids[None], prompt.codes]))
    expected = upstream.generate_greedily(upstream.load_ar(folder), rows, 10, config.eos_token)
    with running_engine(folder, max_rows=2) as engine:
        chunks, _ = await first_chunk(engine, greedy(frames=200))
        take = await hear(engine, utterance)
        await chunks.aclose()
    assert np.array_equal(take.codes, expected.numpy())


async def test_clip_is_encoded_to_the_same_codes_as_upstream(engine: Engine, quick_checkpoint: Path) -> None:
    dac = upstream.load_codec(quick_checkpoint)
    pcm = clip(1.3, 44_100)
    reference = await engine.encode_reference(pcm, 44_100, "The words.")
    expected = upstream.encode(dac, torch.from_numpy(pcm))[:, : reference.frames]
    assert reference.text == "The words."
    assert reference.codes.dtype == np.int16
    assert reference.frames == -(-len(pcm) // engine.info.frame_samples)
    assert np.array_equal(reference.codes, expected.numpy())


@pytest.mark.parametrize("rate", [16_000, 24_000, 48_000, 22_050])
async def test_a_clip_at_another_rate_is_converted_first(engine: Engine, quick_checkpoint: Path, rate: int) -> None:
    dac = upstream.load_codec(quick_checkpoint)
    pcm = clip(0.7, rate)
    reference = await engine.encode_reference(pcm, rate, "The words.")
    resampled = resample(torch.from_numpy(pcm), rate, 44_100)
    expected = upstream.encode(dac, resampled)[:, : reference.frames]
    assert reference.frames == -(-len(resampled) // engine.info.frame_samples)
    assert np.array_equal(reference.codes, expected.numpy())


def test_resampling_equals_torchaudios() -> None:
    """The expected values are those of torchaudio 2.11.0."""
    sound = torch.tensor([1.0, 0.0, 0.0, -0.5, 0.25, 0.0, 0.0, 0.0])
    up = [0.98681837, 0.35971358, -0.09223778, -0.01409612, -0.38840216, -0.33898973, 0.24024478, 0.17960484]
    up += [-0.08440247, -0.00442302, 0.02949670, -0.01358414]
    torch.testing.assert_close(resample(sound, 16_000, 24_000), torch.tensor(up), atol=1e-7, rtol=0)
    down = [0.67320043, -0.02027663, -0.26735389, 0.13623820, -0.02894950, 0.01152479]
    torch.testing.assert_close(resample(sound, 24_000, 16_000), torch.tensor(down), atol=1e-7, rtol=0)
    tone = torch.sin(torch.arange(16_000) * (2 * torch.pi * 440 / 16_000))
    expected = torch.sin(torch.arange(44_100) * (2 * torch.pi * 440 / 44_100))
    assert (resample(tone, 16_000, 44_100) - expected)[1000:-1000].abs().max() < 2e-3


async def test_channels_are_mixed_to_one(engine: Engine) -> None:
    left, right = clip(0.5, 44_100, 1), clip(0.5, 44_100, 2)
    stereo = await engine.encode_reference(np.stack([left, right]), 44_100, "Words.")
    mono = await engine.encode_reference((left + right) / 2, 44_100, "Words.")
    assert np.array_equal(stereo.codes, mono.codes)


async def test_clip_with_negative_strides_is_encoded_in_order(engine: Engine) -> None:
    pcm = clip(0.5, 44_100)
    reference = await engine.encode_reference(pcm[::-1], 44_100, "Words.")
    assert np.array_equal(reference.codes, (await engine.encode_reference(pcm[::-1].copy(), 44_100, "Words.")).codes)


@pytest.mark.parametrize(
    "pcm",
    [
        np.zeros(0, np.float32),
        np.zeros((2, 0), np.float32),
        np.zeros((1, 2, 3), np.float32),
        np.array([0.0, np.nan, 0.0], np.float32),
        np.array([0.0, np.inf], np.float32),
        np.zeros(44_100 * 200, np.float32),
    ],
)
async def test_unencodable_clip_is_refused(engine: Engine, pcm: np.ndarray) -> None:
    with pytest.raises(InvalidReference):
        await engine.encode_reference(pcm, 44_100, "Words.")


async def test_inconvertible_rate_is_refused_before_allocating_memory(
    engine: Engine,
) -> None:
    with pytest.raises(InvalidReference, match="44101 Hz cannot be converted exactly"):
        await engine.encode_reference(np.zeros(44_101, np.float32), 44_101, "Words.")


async def test_clip_without_a_transcript_is_refused(engine: Engine) -> None:
    with pytest.raises(InvalidUtterance, match="words"):
        await engine.encode_reference(clip(0.5, 44_100), 44_100, "  ")


async def test_engine_speaks_in_bfloat16(quick_checkpoint: Path) -> None:
    with running_engine(quick_checkpoint, dtype="bfloat16") as engine:
        take = await hear(engine, seeded("Half.", seed=1, frames=10))
    assert engine.info.dtype == "bfloat16"
    assert take.codes.shape[1] == 10
    assert np.isfinite(take.pcm).all()
