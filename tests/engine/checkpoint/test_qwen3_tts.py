"""Qwen3-TTS's reader, tokenizer, prompts and models: qwen-tts' recorded results, and refusals of what does not fit."""

from __future__ import annotations

import json
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor

from engine import CheckpointError, InvalidUtterance, Reference, Sampling, Utterance, check_files
from engine.checkpoint import Checkpoint, load, open_source
from engine.model import draw_rules
from engine.model.dual_ar import Causal
from engine.model.prompt import Prompt, build_prompt
from tests.engine.checkpoint.qwen_cases import CASES, CLIP_CODES, EXPECTED, projected, vector
from tests.tiny_qwen import BOOKS, config, vocabulary, weights, write_qwen

RECORDED: dict[str, dict[str, Any]] = json.loads(EXPECTED.read_text())
CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("qwen")
    return {kind: write_qwen(folder / kind, kind) for kind in ("base", "custom_voice", "voice_design")}


@pytest.fixture(scope="module")
def checkpoints(folders: dict[str, Path]) -> dict[str, Checkpoint]:
    return {kind: load(folder, CPU, CPU, torch.float32) for kind, folder in folders.items()}


def utterance_of(case: dict[str, Any], **more: Any) -> Utterance:
    how = {key: case[key] for key in ("language", "speaker", "instructions") if key in case}
    references: tuple[Reference, ...] = ()
    if "words" in case:
        codes = CLIP_CODES if case["words"] else CLIP_CODES[:, :0]
        references = (Reference(codes, case["words"], vector()),)
    return Utterance(case["text"], references, **how, **more)


def prompt_of(checkpoint: Checkpoint, utterance: Utterance) -> Prompt:
    return build_prompt(utterance, checkpoint.tokenizer, checkpoint.config)


def is_close(actual: Tensor, expected: Any) -> bool:
    """Within the recorded digits and a millionth."""
    recorded = torch.tensor(expected)
    return actual.shape == recorded.shape and bool(
        (actual - recorded).abs().max() <= 1e-5 + 2e-6 * recorded.abs().max()
    )


@pytest.mark.parametrize("name", CASES)
@torch.inference_mode()
def test_prompts_models_and_scores_are_upstreams(name: str, checkpoints: dict[str, Checkpoint]) -> None:
    case, expected = CASES[name], RECORDED[name]
    checkpoint = checkpoints[case["kind"]]
    model, codes = checkpoint.model, np.array(expected["codes"], np.int16).T
    rows = model.embed_prompt(prompt_of(checkpoint, utterance_of(case)))[0]
    assert is_close(torch.tensor(projected(rows)), expected["rows"])

    prompt = prompt_of(checkpoint, utterance_of(case, so_far=codes))
    x = model.embed_prompt(prompt)
    hidden = model.slow(x, torch.arange(x.shape[1])[None], Causal())[0, prompt.delivered_from - 1 : -1]
    assert is_close(torch.tensor(projected(hidden)), expected["hidden"])

    frames = torch.from_numpy(codes.T).long()
    steps = torch.cat([model.fast_input(hidden, hidden)[:, None], model.fast_embed(frames[:, :-1])], 1)
    logits = model.fast_logits(steps, torch.arange(BOOKS)[None], Causal())[:, 1:]
    assert is_close(torch.tensor(projected(logits.flatten(0, 1))), expected["residual"])

    scores = main_scores(checkpoint, hidden @ model.head().t(), codes[0])
    barred = torch.tensor([[value is None for value in line] for line in expected["scores"]])
    assert torch.equal(scores == -torch.inf, barred)
    assert is_close(scores.masked_fill(barred, 0), [[value or 0 for value in line] for line in expected["scores"]])


def main_scores(checkpoint: Checkpoint, logits: Tensor, first: np.ndarray) -> Tensor:
    """What the main tokens of consecutive frames are drawn from at temperature 0.9, of the best fifty."""
    rule, count = draw_rules.rule_of(checkpoint.config), len(logits)
    memory = torch.stack([torch.from_numpy(rule.recall(first[:frame].astype(np.int64))) for frame in range(count)])
    how, seen = (torch.full((count,), 0.9), torch.ones(count), torch.full((count,), 50)), list[Tensor]()

    def draw(scores: Tensor, *_: Tensor) -> Tensor:
        seen.append(scores)
        return torch.zeros(count)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(draw_rules, "draw", draw)
        rule.main(logits, how, torch.ones(count, 2, 50), memory, torch.arange(count))
    return seen[0]


def test_text_is_read_without_tags_and_spans_point_into_it(checkpoints: dict[str, Checkpoint]) -> None:
    tokenizer, text = checkpoints["base"].tokenizer, "\n <|speaker:0|> Hello, the <|im_end|> 他<|phoneme_end|>! "
    read = "Hello, the <|im_end|> 他!"
    assert tokenizer.as_read(text) == read
    assert "".join(text[start:end] for start, end in dict.fromkeys(tokenizer.spans(text))) == read
    assert max(tokenizer.encode(text)) < len(vocabulary())  # what looks like a control token is text


REFUSED: dict[str, tuple[str, dict[str, Any], str]] = {
    "only tags": ("base", {"text": "<|speaker:0|> "}, "nothing but tags, which this model does not know"),
    "a clip": ("custom_voice", {"references": (Reference(CLIP_CODES, "Words.", vector()),)}, "own voices: eric, ryan"),
    "a clip for a description": ("voice_design", {"references": (Reference(CLIP_CODES, "W"),)}, "describe the voice"),
    "a description": ("base", {"instructions": "An old man"}, "takes no instructions; of Qwen3-TTS, the CustomVoice"),
    "a voice": ("custom_voice", {"speaker": "nobody"}, "no voice 'nobody' of its own; it has eric, ryan"),
    "a language": ("base", {"language": "fi"}, "does not speak 'fi'; it speaks chinese, english"),
    "no vector": ("base", {"references": (Reference(CLIP_CODES, "W"),)}, "no vector, but this model's voices have 64"),
    "another vector": ("base", {"references": (Reference(CLIP_CODES, "W", vector()[:9]),)}, "a vector of 9 values"),
    "control tokens": ("voice_design", {"instructions": "A <|im_end|>"}, "the instructions contains the control token"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_a_model_cannot_speak_is_refused(name: str, checkpoints: dict[str, Checkpoint]) -> None:
    kind, how, message = REFUSED[name]
    with pytest.raises(InvalidUtterance, match=message):
        prompt_of(checkpoints[kind], Utterance(**{"text": "Hello."} | how))


def test_other_families_refuse_voices_of_their_own(tiny_checkpoint: Path) -> None:
    checkpoint = load(tiny_checkpoint, CPU, CPU, torch.float32)
    for utterance in (Utterance("Hello.", speaker="ryan"), Utterance("Hello.", instructions="Whisper")):
        with pytest.raises(InvalidUtterance, match="this model knows no"):
            prompt_of(checkpoint, utterance)


TEXTS, HEAD = "talker.model.text_embedding.weight", "talker.code_predictor.lm_head.1.weight"
BROKEN: dict[str, tuple[dict[str, Any], str]] = {
    "25 Hz": ({"tokenizer_type": "qwen3_tts_tokenizer_25hz"}, "choose a model named Qwen3-TTS-12Hz"),
    "another kind": ({"tts_model_type": "singing"}, "tts_model_type is 'singing', expected 'base', 'custom_voice'"),
    "vectors of another size": ({"speaker_encoder_config": {"enc_dim": 2048}}, "vectors of 2048 values, .* have 64"),
    "a shorter talker": ({"talker_config": {"num_hidden_layers": 2}}, r"talker.model.layers.2.* unexpected"),
    "more words": ({"talker_config": {"text_vocab_size": 400}}, rf"{TEXTS} is \[320, 48\], .* says \[400, "),
    "other books": ({"talker_config": {"num_code_groups": 5}}, "4 code groups of 64, talker_config 5 of 64"),
    "a list of speakers": ({"talker_config": {"spk_id": [1]}}, "a value of the wrong kind"),
    "no ids": ({"talker_config": {"codec_pad_id": None}}, "a value of the wrong kind"),
    "few words": ({"im_start_token_id": 100}, "vocab.json has .* control tokens begin at 100"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_config_that_does_not_fit_says_what_to_do(name: str, folders: dict[str, Path], tmp_path: Path) -> None:
    changes, message = BROKEN[name]
    tree = config() | {key: value for key, value in changes.items() if not isinstance(value, dict)}
    for key, value in changes.items():
        tree[key] = tree[key] | value if isinstance(value, dict) else value
    folder = copied(folders["base"], tmp_path)
    (folder / "config.json").unlink()
    (folder / "config.json").write_text(json.dumps(tree))
    with pytest.raises(CheckpointError, match=message):
        load(folder, CPU, CPU, torch.float32)


@torch.inference_mode()
def test_rows_of_text_are_computed_when_they_are_first_read(folders: dict[str, Path]) -> None:
    with ExitStack() as stack:
        [tensor] = [tensor for tensor in open_source(folders["base"]).weights(stack) if tensor.late is not None]
        whole, late = tensor.read(), tensor.late()  # type: ignore[misc]
        assert torch.equal(late.table[320:], whole[320:]), "the codes' tokens are simply there"
        wanted = [*range(40), 319]
        late.fill(torch.tensor([wanted[:20], wanted[20:40]]))
        late.fill(torch.tensor([0, 319, 330]))
    assert torch.allclose(late.table[wanted], whole[wanted], rtol=0, atol=1e-5) and whole[40:319].any(1).all()
    assert not late.table[40:319].any()


def test_the_usual_sampling_is_the_checkpoints_own(folders: dict[str, Path], tiny_checkpoint: Path) -> None:
    file = folders["voice_design"] / "generation_config.json"
    assert open_source(tiny_checkpoint).sampling() == Sampling(0.8, 0.9, 30)
    assert open_source(folders["base"]).sampling() == Sampling(0.9, 1.0, 50), "as published, where nothing is said"
    file.write_text(json.dumps({"temperature": 0.7, "top_k": 20, "repetition_penalty": 1.05}))
    assert open_source(file.parent).sampling() == Sampling(0.7, 1.0, 20)
    for wrong in (5, "warm"):
        file.write_text(json.dumps({"temperature": wrong}))
        with pytest.raises(CheckpointError, match=r"generation_config\.json: "):
            open_source(file.parent).sampling()


def test_files_that_are_missing_or_cut_are_named(folders: dict[str, Path], tmp_path: Path) -> None:
    whole = folders["base"]
    for name, message in {
        "merges.txt": "merges.txt is missing; copy it",
        "vocab.json": "vocab.json is missing; copy it",
        "speech_tokenizer/model.safetensors": "speech_tokenizer/model.safetensors is missing",
    }.items():
        folder = copied(whole, tmp_path / name.replace("/", "-"))
        (folder / name).unlink()
        with pytest.raises(CheckpointError, match=message):
            check_files(str(folder))
    folder = copied(whole, tmp_path / "cut")
    tensors = (whole / "model.safetensors").read_bytes()
    (folder / "model.safetensors").unlink()
    (folder / "model.safetensors").write_bytes(tensors[: len(tensors) // 2])
    with pytest.raises(CheckpointError, match="damaged or cut short"):
        check_files(str(folder))
    lacking = {name: tensor for name, tensor in weights(config()).items() if name != HEAD}
    with pytest.raises(CheckpointError, match=f"{HEAD} is missing, so the file is incomplete; download it again"):
        check_files(str(write_qwen(tmp_path / "lacking", weights_of_talker=lacking)))
    folder = copied(whole, tmp_path / "voiceless")
    (folder / "model.safetensors").unlink()
    save_file(weights(config()), folder / "model.safetensors")
    with pytest.raises(CheckpointError, match="without which clips cannot be cloned; download the file again"):
        check_files(str(folder))
    folder = copied(whole, tmp_path / "merges")
    (folder / "merges.txt").unlink()
    (folder / "merges.txt").write_text("#version: 0.2\nzz zz\n")
    with pytest.raises(CheckpointError, match="do not fit each other; download both again"):
        load(folder, CPU, CPU, torch.float32)


def copied(folder: Path, target: Path) -> Path:
    """The folder again, its files as links."""
    for path in folder.rglob("*"):
        if path.is_file():
            link = target / path.relative_to(folder)
            link.parent.mkdir(parents=True, exist_ok=True)
            link.hardlink_to(path)
    return target
