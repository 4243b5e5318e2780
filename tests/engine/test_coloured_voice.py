"""An engine whose codec has a timbre part: clips yield a vector, takes use it, invalid ones are refused."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from engine import DirectEngine, Engine, EngineConfig, InvalidUtterance, Reference, Sampling, Utterance
from engine.model.prompt import timbre_of
from tests.tiny import add_timbre

DIM = 12
GREEDY = Sampling(temperature=0.0)


@pytest.fixture(scope="module")
def folder(tiny_checkpoint: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    copy = tmp_path_factory.mktemp("timbre") / "checkpoint"
    shutil.copytree(tiny_checkpoint, copy)
    add_timbre(copy)
    return copy


def clip(seed: int) -> np.ndarray:
    return (0.1 * np.random.default_rng(seed).standard_normal(22_050)).astype(np.float32)


async def sound(engine: Engine | DirectEngine, utterance: Utterance) -> np.ndarray:
    return np.concatenate([chunk.pcm async for chunk in engine.speak(utterance)])


async def test_timbre_vector_of_a_clip_changes_the_take(folder: Path) -> None:
    engine = Engine.start(EngineConfig(str(folder), device="cpu"))
    try:
        assert engine.info.timbre_dim == DIM
        reference = await engine.encode_reference(clip(0), 44_100, "Some words.")
        assert reference.timbre is not None and reference.timbre.shape == (DIM,)
        again = await engine.encode_reference(clip(0), 44_100, "Some words.")
        assert again.timbre is not None and np.array_equal(again.timbre, reference.timbre)
        take = Utterance("Say this.", (reference,), GREEDY, max_frames=6)
        own = await sound(engine, take)
        other = replace(take, references=(replace(reference, timbre=-reference.timbre),))
        none = replace(take, references=(replace(reference, timbre=None),))
        sounds = [own, await sound(engine, other), await sound(engine, none)]
        assert len({len(sound) for sound in sounds}) == 1, "a vector decides no code"
        assert not np.allclose(sounds[0], sounds[1]) and not np.allclose(sounds[0], sounds[2])
        assert np.array_equal(await sound(engine, take), own)
        with pytest.raises(InvalidUtterance, match=r"has 3 values, this codec's have 12.*another codec"):
            await sound(engine, replace(take, references=(replace(reference, timbre=np.ones(3, np.float32)),)))
    finally:
        engine.stop()


async def test_direct_engine_gives_the_same_vector_and_audio(folder: Path) -> None:
    engines = Engine.start(EngineConfig(str(folder), device="cpu")), DirectEngine.start(EngineConfig(str(folder)))
    sounds = []
    try:
        for engine in engines:
            reference = await engine.encode_reference(clip(1), 44_100, "Some words.")
            sounds.append(await sound(engine, Utterance("Say this.", (reference,), GREEDY, max_frames=4)))
    finally:
        for engine in engines:
            engine.stop()
    np.testing.assert_allclose(sounds[0], sounds[1], atol=1e-5)


async def test_codec_without_a_timbre_part_returns_no_vector_and_ignores_any(tiny_checkpoint: Path) -> None:
    engine = Engine.start(EngineConfig(str(tiny_checkpoint), device="cpu"))
    try:
        reference = await engine.encode_reference(clip(0), 44_100, "Some words.")
        assert engine.info.timbre_dim is None and reference.timbre is None
        take = Utterance("Say this.", (reference,), GREEDY, max_frames=4)
        coloured = replace(take, references=(replace(reference, timbre=np.ones(5, np.float32)),))
        assert np.array_equal(await sound(engine, take), await sound(engine, coloured))
    finally:
        engine.stop()


def test_take_uses_the_timbre_vectors_of_its_speakers() -> None:
    codes = np.zeros((2, 3), np.int16)
    vectors = [np.array(values, np.float32) for values in ([1, -1, 0], [0, 1, -1], [-1, 0, 1])]
    one, two, three = (Reference(codes, "Words.", vector) for vector in vectors)
    second = replace(two, text="<|speaker:5|>Words.")

    def chosen(text: str, *references: Reference) -> np.ndarray | None:
        return timbre_of(Utterance(text, references), 3)

    assert chosen("Say this.") is None and timbre_of(Utterance("Say this.", (one,)), None) is None
    assert chosen("Say this.", one) is one.timbre
    assert chosen("<|speaker:1|>Say this.", one, two) is two.timbre
    assert chosen("<|speaker:5|>Say this.", one, second) is second.timbre
    assert chosen("<|speaker:9|>Say this.", one) is one.timbre
    assert chosen("Say this.", replace(one, timbre=None)) is None
    mean = chosen("Say this.", one, two)
    assert mean is not None and mean.dtype == np.float32
    assert abs(float(mean.std()) - 1) < 1e-3 and np.allclose(
        mean, [1.2247, 0, -1.2247] * np.array([1, 1, 1]), atol=1e-3
    )
    assert chosen("<|speaker:0|>A. <|speaker:2|>B.", one, two, three) is not None


@pytest.mark.parametrize("timbre", [np.ones(3), np.ones((1, 3), np.float32), np.array([np.nan], np.float32)])
def test_invalid_timbre_vector_is_refused(timbre: np.ndarray) -> None:
    with pytest.raises(InvalidUtterance, match="a timbre vector must be float32"):
        Reference(np.zeros((2, 3), np.int16), "Words.", timbre)
