"""Training and engine must agree: on codes after export, on the model's arithmetic, on the prompt and the stop."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from engine.checkpoint import open_source
from engine.codec import load_codec
from engine.codec.model import Codec
from engine.model.dual_ar import Causal
from engine.model.prompt import build_prompt
from engine.types import Reference, Utterance
from training import export, resume
from training.codec.images import through_images
from training.data.phones import PHONES, TOKENS, UNKNOWN, labels
from training.export import codec_tensors, codec_yaml, model_config
from training.sizes import CODEC, MODEL
from training.speech.sequences import Composer, Speech, collate
from training.speech.train_speech import Trainer
from training.speech.vocabulary import write_tokenizer
from training.teacher.voices import DEFAULT

TEXTS = ("One two three.", "Four five.", "Six seven eight nine.", "Ten.")


@pytest.fixture
def speech(tmp_path: Path) -> Speech:
    """Four utterances of two voices with random codes."""
    rng = np.random.default_rng(0)
    frames = [50, 60, 45, 70]
    codes = rng.integers(0, 1024, (sum(frames), MODEL.num_codebooks)).astype(np.int16)
    phones = rng.integers(0, 5, sum(frames)).astype(np.int8)
    np.savez(tmp_path / "00_0000.npz", codes=codes, phones=phones)
    voices = [DEFAULT.name, "mixture 0.1", "mixture 0.1", "mixture 0.1"]
    rows = [[voice, count, text, 0] for voice, count, text in zip(voices, frames, TEXTS, strict=True)]
    (tmp_path / "00_0000.json").write_text(json.dumps(rows))
    return Speech(tmp_path)


def test_exported_codec_gives_the_codes_used_in_training(tmp_path: Path) -> None:
    torch.manual_seed(0)
    codec = Codec(CODEC).eval()
    state = {name: tensor.half() for name, tensor in codec.state_dict().items()}
    codec.load_state_dict(state)
    torch.save(codec_tensors(state), tmp_path / "codec.pth")
    (tmp_path / "codec.yaml").write_text(str(codec_yaml(CODEC)))
    loaded = load_codec(tmp_path, "cpu")
    audio = 0.1 * torch.randn(1, 1, 6 * CODEC.frame_samples)
    with torch.no_grad():
        assert torch.equal(loaded.encode(audio), codec.encode(audio))


def test_exported_config_and_tokenizer_are_read_back_unchanged(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(
        str(model_config()).replace("'", '"').replace("True", "true").replace("False", "false")
    )
    write_tokenizer(tmp_path)
    config = open_source(tmp_path).config
    assert config == MODEL
    assert bytes(open_source(tmp_path).tokenizer().encode("Grüß dich [whisper]")).decode() == "Grüß dich [whisper]"


def test_trained_stages_and_a_whole_checkpoint_are_not_written_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch.save({}, tmp_path / "speech.pt")
    (tmp_path / "model.safetensors").write_text("old")
    monkeypatch.setattr(sys, "argv", ["export", str(tmp_path), str(tmp_path)])
    with pytest.raises(FileNotFoundError, match=r"codes\.pt"):
        export.main()
    assert (tmp_path / "model.safetensors").read_text() == "old"
    before = (tmp_path / "speech.pt").read_bytes()
    monkeypatch.setattr(sys, "argv", ["resume", "assets/fry", str(tmp_path)])
    with pytest.raises(SystemExit):
        resume.main()
    assert (tmp_path / "speech.pt").read_bytes() == before and not (tmp_path / "codes.pt").exists()


def test_training_computes_the_same_states_as_the_engine() -> None:
    trainer = Trainer(torch.device("cpu"), compiled=False, dropout=0.0)
    for parameter in trainer.parameters:
        torch.nn.init.normal_(parameter, std=0.05)
    x = torch.randn(2, 12, MODEL.slow.dim)
    with torch.no_grad():
        ours = trainer.run(trainer.model.slow, x)
        theirs = trainer.model.slow(x, torch.arange(12)[None], Causal())
    assert torch.equal(ours, theirs)


def test_sequence_is_the_engines_prompt_followed_by_frames_and_stop(speech: Speech) -> None:
    composer = Composer(speech, [0, 1, 2, 3], seed=0)
    reference = Reference(np.ascontiguousarray(speech.codes_of(1)), TEXTS[1])
    sequence = composer.sequence([2], (reference,))
    prompt = build_prompt(Utterance(TEXTS[2], (reference,)), composer.tokenizer, MODEL)
    frames = speech.codes_of(2)
    assert np.array_equal(sequence.tokens[: len(prompt)], prompt.ids)
    assert np.array_equal(sequence.tokens[len(prompt) : -1], frames[0] + MODEL.semantic_start)
    assert np.array_equal(sequence.codes[:, len(prompt) : -1], frames)
    assert sequence.tokens[-1] == MODEL.eos_token
    assert sequence.weights[-2] == 1 and sequence.weights[-1] == 0  # the stop is learnt, but nothing after it


def test_fast_model_is_trained_only_on_frames(speech: Speech) -> None:
    composer = Composer(speech, [0, 1, 2, 3], seed=1)
    batch = collate([composer.draw() for _ in range(4)], 1472, 64, np.random.default_rng(0))
    following = torch.roll(batch.tokens, -1, 1).flatten()[batch.chosen]
    assert bool((following >= MODEL.semantic_start).all())


def test_every_trained_frame_has_its_phone_and_the_next_one(speech: Speech) -> None:
    composer = Composer(speech, [0, 1, 2, 3], seed=0)
    sequence = composer.sequence([2], ())
    first = len(sequence) - 1 - speech.frames[2]
    now, upcoming = speech.phones_of(2)
    assert np.array_equal(sequence.phones[:, first - 1 : -2], [now, upcoming])
    assert (sequence.phones[:, : first - 1] == UNKNOWN).all() and (sequence.phones[:, -2:] == UNKNOWN).all()
    changes = np.flatnonzero(now[1:] != now[:-1])
    assert (upcoming[changes] == now[changes + 1]).all() and upcoming[-1] == UNKNOWN


def test_convolutions_through_images_give_the_same_sound() -> None:
    torch.manual_seed(1)
    codec = Codec(CODEC).eval()
    latents, audio = torch.randn(2, CODEC.latent_dim, 8), torch.randn(2, 1, 2 * CODEC.frame_samples)
    with torch.no_grad():
        torch.testing.assert_close(through_images(codec.decoder, latents), codec.decoder(latents), atol=1e-5, rtol=1e-4)
        torch.testing.assert_close(through_images(codec.encoder, audio), codec.encoder(audio), atol=1e-4, rtol=1e-4)


def test_phone_lasts_as_long_as_the_teachers_token() -> None:
    tokens = np.array([0, TOKENS["ˈ"], TOKENS["A"], TOKENS["t"], TOKENS[" "], TOKENS["ɔ"], TOKENS["ː"], TOKENS["."], 0])
    marks = labels(tokens, np.array([2, 1, 3, 2, 1, 2, 1, 4, 1]))
    assert [PHONES[label] for label in marks] == ["", "", *"AAAA", *"tt", *"ɔɔɔɔ", *[""] * 5]
