"""S1, merged LoRAs of S2 and Audio8 against fish-speech's own classes, from tokens to sound."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import numpy as np
import pytest
import torch

from engine import CheckpointError, Reference
from engine.checkpoint import load, open_source
from engine.model.dual_ar import Causal
from engine.model.prompt import build_prompt
from tests import upstream
from tests.engine.checkpoint.layouts import AUDIO8, S1, write_dual_ar, write_flat, write_ranks
from tests.engine.speaking import greedy, hear, running_engine
from tests.tiny import TinyCodec
from tests.upstream import ContentSequence, FishTokenizer, TextPart, VQPart

TOLERANCE = 2e-5
CODEC = TinyCodec(n_layer=1, decoder_rates=(32, 16), num_codebooks=4)
MANY_CODES = TinyCodec(n_layer=1, decoder_rates=(32, 16), num_codebooks=3, semantic_codebook_size=1100)
TEXTS = (
    "What the other thing is.",
    "  Two  spaces,\n\nlines…",
    "naïve 123 I'll 'Twas ?!x",
    "日本 the\tend \r\n",
    "🐟🐟",
)


def clip(frames: int, codebooks: int, text: str = "The words\n  of a clip.") -> Reference:
    return Reference(np.random.default_rng(3).integers(0, 64, (codebooks, frames), dtype=np.int16), text)


def test_s1_tokens_match_upstream(tmp_path: Path) -> None:
    write_dual_ar(tmp_path, CODEC)
    theirs, ours = FishTokenizer.from_pretrained(str(tmp_path)), open_source(tmp_path).tokenizer()
    for text in TEXTS:
        assert ours.encode(text) == theirs.encode(text), text
    assert ours.control("<|interleave|>") == theirs.get_token_id("<|interleave|>")


def test_special_tokens_may_be_a_list(tmp_path: Path) -> None:
    write_dual_ar(tmp_path, CODEC)
    path = tmp_path / "special_tokens.json"
    before = open_source(tmp_path).config
    path.write_text(json.dumps(list(json.loads(path.read_text()))))
    assert open_source(tmp_path).config == before


@pytest.mark.parametrize("content", ["[]", "{}", '["\\ud800"]', '{"<|im_end|>": 1, "\\udfff": 2}', "[1]"])
def test_invalid_special_tokens_are_refused_by_file_name(tmp_path: Path, content: str) -> None:
    write_dual_ar(tmp_path, CODEC)
    (tmp_path / "special_tokens.json").write_text(content)
    with pytest.raises(CheckpointError, match=r"special_tokens\.json"):
        _ = open_source(tmp_path).config


def test_s1_prompt_matches_upstream(tmp_path: Path) -> None:
    write_dual_ar(tmp_path, CODEC)
    source, voice, turn = open_source(tmp_path), clip(7, 4), clip(5, 4, "An earlier turn.")
    theirs = ContentSequence(modality="interleave")
    for part in (voice, turn):
        parts = [TextPart(text=part.text), VQPart(codes=torch.from_numpy(part.codes))]
        theirs.append(parts, add_end=True, speaker=0)
    theirs.append([TextPart(text=TEXTS[0])], speaker=0)
    expected, *_ = theirs.encode_for_inference(FishTokenizer.from_pretrained(str(tmp_path)), num_codebooks=4)
    utterance = greedy(TEXTS[0], references=(voice,), history=(turn,))
    prompt = build_prompt(utterance, source.tokenizer(), source.config)
    assert np.array_equal(prompt.ids, expected[0]) and np.array_equal(prompt.codes, expected[1:])
    alone = build_prompt(greedy(TEXTS[0], references=(voice,)), source.tokenizer(), source.config)
    other = build_prompt(greedy("Other.", references=(voice,)), source.tokenizer(), source.config)
    assert alone.prefix == other.prefix > 7
    assert np.array_equal(alone.ids[: alone.prefix], other.ids[: other.prefix])
    assert alone.ids[alone.prefix :].tolist() == source.tokenizer().encode(TEXTS[0])


@pytest.mark.parametrize("sizes", [S1, {**S1, "fast_dim": 64, "fast_n_head": 4, "tie_word_embeddings": True}])
def test_s1_logits_match_upstream(tmp_path: Path, sizes: dict[str, object]) -> None:
    """The fast AR reads the hidden state before the final norm."""
    compare_logits(tmp_path, write_dual_ar(tmp_path, CODEC, sizes))


def test_merged_lora_logits_match_upstream(tmp_path: Path) -> None:
    compare_logits(tmp_path, write_flat(tmp_path, CODEC))
    config = open_source(tmp_path).config
    assert config.family == "S2" and config.fast_reads_norm and config.scales_codes


def test_audio8_logits_match_upstream_with_its_switches(tmp_path: Path) -> None:
    model = write_flat(tmp_path, CODEC, **AUDIO8)
    assert model.layers[0].attention.wqkv.bias is not None
    compare_logits(tmp_path, model)
    assert open_source(tmp_path).config.family == "Audio8"


@torch.inference_mode()
def compare_logits(folder: Path, reference: upstream.DualARTransformer) -> None:
    cpu = torch.device("cpu")
    checkpoint = load(folder, cpu, cpu, torch.float32)
    model, config = checkpoint.model, checkpoint.config
    generator = torch.Generator().manual_seed(1)
    codes = torch.randint(config.codebook_size, (config.num_codebooks, 50), generator=generator)
    spoken = torch.rand(50, generator=generator) < 0.5
    tokens = torch.where(spoken, config.semantic_start + codes[0], torch.randint(200, (50,), generator=generator))
    expected_logits, expected_input = upstream.forward(reference, torch.cat([tokens[None], codes]))
    hidden = model.slow.states(model.embed(tokens[None], codes[None]), torch.arange(50)[None], Causal())
    normed = model.slow.norm(hidden)
    legal = [*range(config.semantic_start, config.semantic_end + 1), config.eos_token]
    assert ((normed @ model.head().T)[0] - expected_logits[:, legal]).abs().max() <= TOLERANCE * 10
    start = model.fast_input(hidden, normed)[0]
    assert (start - expected_input).abs().max() <= TOLERANCE * expected_input.abs().max()
    expected = upstream.fast_logits(reference, start[-1], codes[:, 0])
    x = torch.cat([start[-1:], model.fast.embeddings(codes[:-1, 0])])[None]
    ours = model.fast_logits(x, torch.arange(config.num_codebooks)[None], Causal())[0, 1:]
    assert (ours - expected[:, : ours.shape[1]]).abs().max() <= TOLERANCE * expected.abs().max()


@pytest.mark.parametrize("family", ["S1", "S1 of many codes", "S2", "Audio8"])
async def test_greedy_frames_and_their_audio_match_upstream(tmp_path: Path, family: str) -> None:
    codec = MANY_CODES if "many" in family else CODEC
    if family.startswith("S1"):
        ar = write_dual_ar(tmp_path, codec)
    else:
        ar = write_flat(tmp_path, codec, **(AUDIO8 if family == "Audio8" else {}))
    source = open_source(tmp_path)
    config, tokenizer = source.config, source.tokenizer()
    with running_engine(tmp_path, max_rows=2) as engine:
        assert engine.info.family == family[:6].split(maxsplit=1)[0]
        utterance = greedy("What the reference says, we say.", frames=30, references=(clip(9, codec.num_codebooks),))
        prompt = build_prompt(utterance, tokenizer, config)
        rows = torch.from_numpy(np.concatenate([prompt.ids[None], prompt.codes]))
        expected = upstream.generate_greedily(ar, rows, 30, config.eos_token, config.residual_codes)
        take = await hear(engine, utterance)
        assert expected.shape[1] == 30 and expected[0].unique().numel() > 5
        assert np.array_equal(take.codes, expected.numpy())
        sound = upstream.decode(upstream.load_codec(tmp_path), expected).numpy()
        assert np.abs(take.pcm - sound).max() <= TOLERANCE


def test_s1_residual_codes_are_limited_to_1024(tmp_path: Path) -> None:
    write_dual_ar(tmp_path, MANY_CODES)
    cpu = torch.device("cpu")
    model = load(tmp_path, cpu, cpu, torch.float32).model
    assert len(model.fast_output.weight) == 1024 and len(model.fast.embeddings.weight) == 1100


async def test_audio8_words_are_aligned_to_the_text_as_typed(tmp_path: Path) -> None:
    write_flat(tmp_path, CODEC, **AUDIO8)
    text = "  Two  spaces,\n\n then the end. "
    tokenizer = open_source(tmp_path).tokenizer()
    assert tokenizer.as_read(text) == "Two spaces, then the end."
    spans = tokenizer.spans(text)
    assert "".join(text[start:end].strip() for start, end in spans) == "Twospaces,thentheend."
    assert all(before <= after for (_, before), (after, _) in itertools.pairwise(spans))
    with running_engine(tmp_path, max_rows=1) as engine:
        times = await engine.align(text, clip(12, 4).codes)
    assert len(times) == len(text) + 1 and (np.diff(times) >= 0).all()


async def test_s1_words_are_aligned(tmp_path: Path) -> None:
    write_dual_ar(tmp_path, CODEC)
    with running_engine(tmp_path, max_rows=1) as engine:
        times = await engine.align(TEXTS[0], clip(12, 4).codes)
    assert len(times) == len(TEXTS[0]) + 1 and times[-1] > 0


def test_codec_with_shared_keys_matches_upstream_with_copied_keys(tmp_path: Path) -> None:
    """Like Audio8's second transformer; upstream's class needs keys for every head, so two heads get equal ones."""
    write_flat(tmp_path, CODEC, **AUDIO8)
    whole = torch.load(tmp_path / "codec.pth", weights_only=True)
    shared = dict(whole)
    for key, weight in whole.items():
        if "post_module" in key and key.endswith("wqkv.weight"):
            q, k, v = weight.chunk(3)
            k, v = k[: CODEC.head_dim], v[: CODEC.head_dim]
            shared[key] = torch.cat([q, k, v])
            whole[key] = torch.cat([q, *[k] * CODEC.n_head, *[v] * CODEC.n_head])
    codes = torch.randint(64, (4, 20), generator=torch.Generator().manual_seed(2))
    torch.save(whole, tmp_path / "codec.pth")
    expected = upstream.decode(upstream.load_codec(tmp_path), codes)
    torch.save(shared, tmp_path / "codec.pth")
    cpu = torch.device("cpu")
    ours = load(tmp_path, cpu, cpu, torch.float32).codec.decode(codes[None])[0, 0]
    assert (ours - expected).abs().max() <= TOLERANCE


def test_audio8_codec_sizes_are_read_from_its_config(tmp_path: Path) -> None:
    write_flat(tmp_path, CODEC, codec_post_n_layer=8, codec_post_n_head=16, codec_post_intermediate_size=1216, **AUDIO8)
    (tmp_path / "codec.yaml").unlink()
    config = open_source(tmp_path).codec_config
    assert (config.post_module.intermediate_size, config.pre_module.intermediate_size) == (1216, 3072)


def test_unsupported_backbone_is_refused_by_name(tmp_path: Path) -> None:
    write_flat(tmp_path, CODEC, slow_backbone="falcon_h1", **AUDIO8)
    with pytest.raises(Exception, match="falcon_h1"):
        _ = open_source(tmp_path).config


def test_ranks_without_special_tokens_are_refused(tmp_path: Path) -> None:
    write_dual_ar(tmp_path, CODEC)
    (tmp_path / "special_tokens.json").unlink()
    with pytest.raises(Exception, match=r"special_tokens\.json"):
        _ = open_source(tmp_path).config
    write_ranks(tmp_path, 128)
    (tmp_path / "tokenizer.tiktoken").write_text("dGg= 0\n")
    with pytest.raises(Exception, match=r"tokenizer\.tiktoken"):
        _ = open_source(tmp_path).config
