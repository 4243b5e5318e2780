"""Training the timbre part: aligned sets, correctly labelled rows, altered clips that keep time and level, steps."""

from __future__ import annotations

import random
from itertools import count
from pathlib import Path

import numpy as np
import pytest
import torch

from engine.codec import Codec, load_codec
from training.codec import train_timbre
from training.codec.disguise import roughened, warped
from training.codec.train_timbre import Listeners, Stage, widened
from training.data.people import groups
from training.data.set_corpus import MARGIN, SetCorpus
from training.export import codec_tensors, codec_yaml, with_default_voice
from training.sizes import CODEC, WITH_TIMBRE
from training.teacher.kokoro import Spoken
from training.teacher.sets import SENTENCES, TIMBRE_VALUES, TIMBRES, SpokenSet, aligned, write_sets
from training.teacher.synthesise import FRAME_SAMPLES, SAMPLE_RATE, SLOT_SAMPLES

CPU = torch.device("cpu")


def tone(hertz: float, seconds: float, rate: int = SAMPLE_RATE) -> np.ndarray:
    """A buzz with many overtones, (samples,) float32."""
    at = np.arange(round(seconds * rate)) / rate
    overtones = np.arange(1, 20)[:, None]
    return (0.1 * np.sin(2 * np.pi * hertz * overtones * at) / overtones).sum(0).astype(np.float32)


def spoken_sets(number: int, frames: int) -> list[SpokenSet]:
    """A group whose audio identifies timbre and frame: every sample of a timbre's frame f is 1000 · timbre + f."""
    results = []
    for sentence in range(SENTENCES):
        place = np.arange(frames) + 100 * sentence
        audio = np.stack([np.repeat(1000 * timbre + place, FRAME_SAMPLES) for timbre in range(TIMBRES)])
        styles = np.full((TIMBRES, TIMBRE_VALUES), number, np.float32) + np.arange(TIMBRES)[:, None]
        phones = np.zeros(frames * FRAME_SAMPLES // SLOT_SAMPLES, np.int8)
        results.append(SpokenSet(audio.astype(np.int16), phones, styles))
    return results


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with codes.pt and decoder.pt of a codec without a timbre part."""
    folder = tmp_path_factory.mktemp("work")
    torch.manual_seed(0)
    state = {name: tensor.half() for name, tensor in Codec(CODEC).state_dict().items()}
    torch.save(state, folder / "codes.pt")
    decode_side = ("decoder.", "quantizer.post_module.", "quantizer.upsample.")
    torch.save({k: v for k, v in state.items() if k.startswith(decode_side)}, folder / "decoder.pt")
    return folder


def test_set_is_aligned_across_timbres_and_rejected_if_lengths_differ() -> None:
    silence = np.zeros(6000, np.float32)
    sounds = [np.concatenate([silence, level * tone(150, 2.0, 24000), silence]) for level in (1.0, 0.3, 0.6)]
    lengths = np.full(10, len(sounds[0]) // 6000, np.int64)
    spoken = [Spoken(sound, lengths) for sound in sounds]
    styles = np.zeros((TIMBRES, TIMBRE_VALUES), np.float32)
    alignment = aligned(spoken, np.full(8, 43), 1.0, [(), (3.0,) * 8, ()], styles)
    assert (
        alignment is not None and alignment.audio.shape[0] == TIMBRES and alignment.audio.shape[1] % FRAME_SAMPLES == 0
    )
    first, second, _ = alignment.audio.astype(np.float32)
    assert np.corrcoef(first, second)[0, 1] > 0.99, "the same sound at another level lies at the same place"
    levels = np.sqrt((alignment.audio.astype(np.float32) ** 2).mean(1))
    assert np.ptp(levels) / levels.mean() < 0.02
    shorter = [spoken[0], spoken[1], Spoken(sounds[2][:-600], lengths)]
    assert aligned(shorter, np.full(8, 43), 1.0, [(), (), ()], styles) is None


def test_row_has_codes_of_one_voice_and_target_and_clips_of_another(
    tmp_path: Path, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def encode(codec: object, audio: torch.Tensor, starts: np.ndarray, frames: np.ndarray, codes: torch.Tensor) -> None:
        for start, length in zip(starts, frames, strict=True):
            codes[start : start + length] = audio[start * FRAME_SAMPLES :: FRAME_SAMPLES][:length, None]

    monkeypatch.setattr("training.data.set_corpus.encode_utterances", encode)
    write_sets(tmp_path, "00_0000", [*spoken_sets(0, 30), *spoken_sets(10, 20)])
    corpus = SetCorpus(tmp_path, Codec(CODEC), CPU, 0.05)
    corpus.grow()
    assert corpus.sets == [6, 0]
    torch.manual_seed(0)
    rows = corpus.draw(40, 0, frames=4, warm=3, clip_frames=6, same=0.25)
    heard = (rows.target[:, MARGIN:-MARGIN].unflatten(1, (4, FRAME_SAMPLES))[:, :, 0] * 32768).round().long()
    row_codes = rows.codes[:, 0]
    assert torch.equal(row_codes[:, 3:] % 1000, heard % 1000), "the same words at the same time"
    kept = (row_codes[:, 3] // 1000 == heard[:, 0] // 1000).float().mean()
    assert 0 < kept < 0.6
    assert (row_codes[:, 1:] - row_codes[:, :-1]).min() >= 0 and (row_codes[:, 1:] - row_codes[:, :-1]).max() == 1
    clips = (rows.clips.unflatten(2, (6, FRAME_SAMPLES)) * 32768).round().long()[..., 100]
    assert (clips // 1000 == heard[:, :1] // 1000).all(), "of the wanted voice"
    sentences = [rows_of_clip[:, 0] % 1000 // 100 for rows_of_clip in (heard, clips[0], clips[1])]
    assert all((a != b).all() for a, b in ((sentences[0], sentences[1]), (sentences[0], sentences[2]), sentences[1:]))
    assert torch.equal((rows.styles[:, 0] % 10).long(), heard[:, 0] // 1000)
    begun = corpus.draw(20, 0, frames=4, warm=0, clip_frames=6, same=0.0)
    assert (begun.codes[:, 0, 0] % 100 == 0).all()


def test_persons_pieces_are_unchanged_in_the_first_timbre_and_aligned_in_others() -> None:
    voice = tone(140, 9.0) * np.repeat(np.random.default_rng(0).uniform(0.2, 1, 90), 4410).astype(np.float32)
    (group,) = groups(voice, random.Random(0), CPU)
    assert len(group) == SENTENCES and all(member.is_person for member in group)
    joined = np.concatenate([member.audio[0] for member in group])
    assert np.abs(joined - (voice[: len(joined)].clip(-0.99, 0.99) * 32767)).max() <= 1
    loudness = [np.abs(group[0].audio[index].astype(np.float32)).reshape(-1, 512).mean(1) for index in range(TIMBRES)]
    assert all(np.corrcoef(loudness[0], other)[0, 1] > 0.9 for other in loudness[1:])
    assert not list(groups(voice[: 2 * SAMPLE_RATE], random.Random(0), CPU))


def test_warp_moves_formants_but_keeps_pitch_level_and_length() -> None:
    sound = torch.from_numpy(np.stack([tone(150, 1.0)] * 3))
    same, lower, higher = warped(sound, torch.tensor([1.0, 0.85, 1.2]))
    torch.testing.assert_close(same, sound[0], atol=1e-4, rtol=0)
    for changed in (lower, higher):
        assert changed.shape == sound[0].shape
        level = changed[2000:-2000].square().mean().sqrt() / sound[0, 2000:-2000].square().mean().sqrt()
        assert abs(float(level) - 1) < 0.1
        shift = [float((changed[:-lag] * changed[lag:]).sum()) for lag in range(250, 340)]
        assert abs(int(np.argmax(shift)) + 250 - SAMPLE_RATE / 150) < 3
    centre = [_centre(sound) for sound in (lower, same, higher)]
    assert centre[0] < centre[1] < centre[2]


def _centre(sound: torch.Tensor) -> float:
    power = torch.fft.rfft(sound).abs().square()
    return float((power * torch.arange(len(power))).sum() / power.sum())


def test_roughening_keeps_length_and_level_and_leaves_some_clips_unchanged() -> None:
    torch.manual_seed(0)
    sound = torch.from_numpy(np.stack([tone(150, 0.5)] * 20))
    rough = roughened(sound, 0.5)
    changed = (rough != sound).any(1)
    assert 3 < int(changed.sum()) < 17 and rough.shape == sound.shape and rough.isfinite().all()
    level = rough[changed].square().mean(1).sqrt() / sound[changed].square().mean(1).sqrt()
    assert ((level > 0.8) & (level < 1.3)).all()


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"ROWS": 3, "PEOPLE": 1, "JUDGED_ROWS": 2, "FRAMES": 16, "CLIP_FRAMES": 18}.items():
        monkeypatch.setattr(train_timbre, name, value)


@torch.no_grad()
def test_new_parameters_start_without_effect(work: Path) -> None:
    old, new = Codec(CODEC), widened(work, CPU)
    old.load_state_dict({k: v.float() for k, v in torch.load(work / "codes.pt").items()})
    codes = torch.randint(1024, (1, CODEC.num_codebooks, 6), generator=torch.Generator().manual_seed(0))
    assert (old.decode(codes) - new.decode(codes)).abs().max() < 0.05 * old.decode(codes).std()


@pytest.mark.usefixtures("small")
def test_steps_of_every_kind_train_the_timbre_part_but_not_the_codes(
    tmp_path: Path, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("training.data.set_corpus.encode_utterances", lambda *_: None)
    numbers = count()
    for kind in ("spoken", "people"):
        sets = [member for group in groups(tone(150.0, 5.0), random.Random(0), CPU) for member in group]
        renumbered = [
            SpokenSet(s.audio, s.phones * 0, np.full_like(s.styles, next(numbers)), is_person=kind == "people")
            for s in sets
        ]
        write_sets(tmp_path, kind, renumbered)
    torch.manual_seed(0)
    codec, listeners = widened(work, CPU), Listeners()
    corpus = SetCorpus(tmp_path, codec, CPU, 0.05)
    corpus.grow()
    assert corpus.sets == [3, 3]
    stage = Stage(codec, listeners, corpus, CPU)
    stage.listen(0.05)
    before = {name: tensor.clone() for name, tensor in codec.state_dict().items()}
    for index, is_judged in ((0, True), (7, False)):
        assert stage.step(index, is_judged, is_judged).isfinite().all()
    changed = {name for name, tensor in codec.state_dict().items() if not torch.equal(tensor, before[name])}
    assert {"timbre.colouring.weight", "timbre.encoder.first.weight", "decoder.model.0.conv.weight"} <= changed
    assert all(name.startswith(train_timbre.TRAINED) for name in changed)
    stage.save(tmp_path)
    clip = Path("assets/fry/voices/Clara.wav")
    state = torch.load(work / "codes.pt") | with_default_voice(tmp_path / "timbre.pt", clip)
    torch.save(codec_tensors(state), tmp_path / "codec.pth")
    (tmp_path / "codec.yaml").write_text(str(codec_yaml(WITH_TIMBRE)))
    loaded = load_codec(tmp_path, "cpu")
    assert loaded.config == WITH_TIMBRE and loaded.timbre is not None
    assert abs(float(loaded.timbre.default.std(correction=0)) - 1) < 1e-2
