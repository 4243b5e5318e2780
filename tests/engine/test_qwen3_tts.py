"""The engine speaks with a tiny Qwen3-TTS: exact streams, takes that depend on no others, voices by their vectors."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from engine import Engine, InvalidReference, Reference, Sampling, Utterance
from engine.checkpoint.speech_tokenizer import load_qwen_codec
from engine.native.library import library
from tests.engine.checkpoint.test_published import mapped
from tests.engine.speaking import Take, hear, running_engine
from tests.tiny_qwen import write_qwen

USUAL = Sampling(temperature=0.9, top_p=1.0, top_k=50, seed=3)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_qwen(tmp_path_factory.mktemp("qwen"))


@pytest.fixture(scope="module", params=["float32", "bfloat16", "int8"])
def engine(folder: Path, request: pytest.FixtureRequest) -> Iterator[Engine]:
    how = {"weights": "int8"} if request.param == "int8" else {"dtype": request.param}
    with running_engine(folder, max_rows=4, **how) as started:
        yield started


async def voice_of(engine: Engine, seed: int, words: str = "What he said.") -> Reference:
    noise = np.random.default_rng(seed).standard_normal(30_000)
    return await engine.encode_reference((0.2 * noise).astype(np.float32), 16_000, words)


async def test_takes_are_exact_whole_alone_together_and_resumed(engine: Engine, folder: Path) -> None:
    assert not mapped(folder)
    voice = await voice_of(engine, 0)
    assert voice.codes.shape == (4, 30), "1.9 s, and half a second of silence"
    assert voice.vector is not None and voice.vector.shape == (64,)
    by_vector = Reference(voice.codes[:, :0], "", voice.vector)
    utterances = [
        Utterance("Hello there.", (), USUAL, 24),
        Utterance("The other one is here.", (), Sampling(1.2, 0.8, 50, 4), 20, language="zh-CN"),
        Utterance("The words.", (voice,), USUAL, 24, language="english"),
        Utterance("The words.", (by_vector,), USUAL, 24),
    ]
    alone = [await hear(engine, utterance) for utterance in utterances]
    together = await asyncio.gather(*(hear(engine, utterance) for utterance in utterances))
    codec = load_qwen_codec(folder / "speech_tokenizer", "cpu")
    assert len({take.codes.tobytes() for take in alone}) == len(alone)
    for utterance, take, beside in zip(utterances, alone, together, strict=True):
        assert np.array_equal(take.codes, beside.codes) and take.codes.shape[1] >= 2
        whole = codec.decode(torch.from_numpy(take.codes.astype(np.int64))[None])[0, 0].numpy()
        assert len(take.pcm) == take.codes.shape[1] * 1920
        assert ((take.pcm - whole) ** 2).mean() < 10**-7.5 * (whole**2).mean(), "75 dB"
        assert np.abs(whole).max() > 0.01
        half = take.codes.shape[1] // 2
        rest = await hear(engine, replace(utterance, so_far=take.codes[:, :half].copy()))
        assert np.array_equal(rest.codes, take.codes[:, half:])
        assert np.abs(rest.pcm - take.pcm[half * 1920 :]).max() <= 1e-5


async def test_another_voice_with_the_same_words_speaks_for_itself(engine: Engine) -> None:
    """Their prompts have the same tokens and codes, so only the vector tells the voices apart."""
    first = await voice_of(engine, 1)
    assert first.vector is not None
    other = Reference(first.codes, first.text, -first.vector)

    async def rows(voice: Reference) -> tuple[Take, int]:
        take = await hear(engine, Utterance("The words.", (voice,), USUAL, 12))
        return take, engine.stats().prefix_hits

    before = engine.stats().prefix_hits
    take, _ = await rows(first)
    beside, hits = await rows(other)
    assert hits == before and not np.array_equal(take.codes, beside.codes)
    again, hits = await rows(first)
    assert hits == before + 1 and np.array_equal(take.codes, again.codes)


async def test_a_text_is_aligned_and_its_takes_end(engine: Engine) -> None:
    take = await hear(engine, Utterance("Hello the inner one.", (), replace(USUAL, temperature=2.0, top_k=1000), 5000))
    assert take.codes.shape[1] <= 192, "a short text would speak for minutes"
    times = await engine.align("Hello the inner one.", take.codes)
    assert len(times) == 21 and (np.diff(times) >= 0).all() and times[-1] <= take.codes.shape[1] / 12.5 + 1e-6


@pytest.mark.skipif(library() is None, reason="no native code for this machine")
async def test_native_code_speaks_as_torch_does(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    takes = []
    for is_native in (True, False):
        if not is_native:
            monkeypatch.setattr("engine.runtime.cpu_frame.native.runs", lambda plain: False)
        with running_engine(folder, max_rows=2) as engine:
            assert engine.info.frame_path.startswith("native code") == is_native
            takes.append(await hear(engine, Utterance("Hello there.", (), USUAL, 24)))
    assert np.array_equal(takes[0].codes, takes[1].codes)


@pytest.mark.parametrize("kind", ["custom_voice", "voice_design"])
async def test_voices_of_its_own_and_described_ones(kind: str, tmp_path: Path) -> None:
    with running_engine(write_qwen(tmp_path, kind), max_rows=2) as engine:
        assert not engine.info.clones and engine.info.speakers == (("ryan", "eric") if kind == "custom_voice" else ())
        with pytest.raises(InvalidReference, match="cannot clone a clip; load a Base model"):
            await voice_of(engine, 0)
        speaker = "Ryan" if kind == "custom_voice" else None
        plain = Utterance("Hello there.", (), USUAL, 8, speaker=speaker)
        takes = [await hear(engine, replace(plain, instructions=how)) for how in ("", "An old man", "A child")]
        assert len({take.codes.tobytes() for take in takes}) == 3
