"""Records what qwen-tts computes with the tiny talker: python -m tests.engine.checkpoint.record_qwen_talker

Needs qwen-tts 0.1.1 (installed with --no-deps) and transformers 4.57.3, which the tests do not.
"""

from __future__ import annotations

import copy
import importlib
import importlib.machinery
import json
import re
import sys
import tempfile
import types
from collections.abc import Callable
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from tests import tiny_qwen
from tests.engine.checkpoint.qwen_cases import CASES, CLIP_CODES, EXPECTED, FRAMES, projected, vector


def upstream(name: str) -> Any:
    """A module of qwen-tts without its package's own imports, which need more than the talker does."""
    root = Path(str(distribution("qwen-tts").locate_file("qwen_tts")))
    for missing in ("librosa", "librosa.filters", "soundfile"):
        sys.modules.setdefault(missing, types.ModuleType(missing))
        sys.modules[missing].__spec__ = importlib.machinery.ModuleSpec(missing, None)
    sys.modules["librosa.filters"].mel = None  # type: ignore[attr-defined]
    for part in ("", ".core", ".core.models", ".core.tokenizer_12hz", ".inference"):
        package = types.ModuleType(f"qwen_tts{part}")
        package.__path__ = [str(root.joinpath(*part.split(".")[1:]))]
        sys.modules.setdefault(f"qwen_tts{part}", package)
    wrapper = types.ModuleType("qwen_tts.inference.qwen3_tts_tokenizer")
    wrapper.Qwen3TTSTokenizer = object  # type: ignore[attr-defined]
    sys.modules.setdefault(wrapper.__name__, wrapper)
    return importlib.import_module(f"qwen_tts.core.models.{name}")


def model_of(tree: dict[str, Any]) -> Any:
    config = upstream("configuration_qwen3_tts").Qwen3TTSConfig(**copy.deepcopy(tree))
    config._attn_implementation = "eager"
    model = upstream("modeling_qwen3_tts").Qwen3TTSForConditionalGeneration(config).eval()
    missing, unexpected = model.load_state_dict(tiny_qwen.weights(tree), strict=False)
    assert not unexpected and not [name for name in missing if name.startswith("talker")], (missing, unexpected)
    return model


def tokens_of(tree: dict[str, Any]) -> Callable[[str], list[int]]:
    """Tokenises a text with control tokens by transformers' own tokenizer."""
    with tempfile.TemporaryDirectory() as folder:
        path = tiny_qwen.write_qwen(Path(folder))
        transformers: Any = importlib.import_module("transformers")
        tokenizer = transformers.Qwen2Tokenizer(str(path / "vocab.json"), str(path / "merges.txt"))
    control = {"<|im_start|>": tree["im_start_token_id"], "<|im_end|>": tree["im_end_token_id"]}

    def ids(text: str) -> list[int]:
        parts = re.split(r"(<\|im_\w+\|>)", text)
        return [i for part in parts for i in ([control[part]] if part in control else tokenizer.encode(part))]

    return ids


def record(case: dict[str, Any]) -> dict[str, Any]:
    """Prompt rows, and the codes of a take's beginning with hidden states, scores and logits."""
    tree = tiny_qwen.config(case["kind"])
    for name, value in tree["talker_config"]["spk_id"].items():
        tree["talker_config"]["spk_id"][name] = value[0] if isinstance(value, list) else value
    model, ids = model_of(tree), tokens_of(tree)
    talker, seen = model.talker, dict[str, Any]()
    generate = talker.generate

    def spy(**arguments: Any) -> Any:
        result = generate(**arguments, output_scores=True)
        seen.update(arguments, scores=torch.cat(result.scores))
        return result

    talker.generate = spy
    more: dict[str, Any] = {}
    if case.get("speaker"):
        more["speakers"] = [case["speaker"]]
    if case.get("instructions"):
        more["instruct_ids"] = [torch.tensor([ids(f"<|im_start|>user\n{case['instructions']}<|im_end|>\n")])]
    if "words" in case:
        has_clip = bool(case["words"])
        more["voice_clone_prompt"] = {
            "ref_code": [torch.from_numpy(CLIP_CODES.T).long() if has_clip else None],
            "ref_spk_embedding": [torch.from_numpy(vector())],
            "x_vector_only_mode": [not has_clip],
            "icl_mode": [has_clip],
        }
        more["ref_ids"] = [torch.tensor([ids(f"<|im_start|>assistant\n{case['words']}<|im_end|>\n")])]
    text = ids(f"<|im_start|>assistant\n{case['text']}<|im_end|>\n<|im_start|>assistant\n")
    codes: list[Tensor] = []
    for seed in range(99):
        torch.manual_seed(seed)
        with torch.no_grad():
            codes, hidden = model.generate(
                input_ids=[torch.tensor([text])],
                languages=[case.get("language") or "auto"],
                non_streaming_mode=True,
                max_new_tokens=FRAMES + 1,
                **more,
            )
        if len(codes[0]) >= FRAMES:
            break
    with torch.no_grad():
        frames, states = codes[0][:FRAMES], hidden[0][:FRAMES]
        residual, _ = talker.forward_sub_talker_finetune(frames, states)
    return {
        "rows": projected(seen["inputs_embeds"][0]),
        "codes": frames.tolist(),
        "hidden": projected(states),
        "scores": [_numbers(score[[*range(tiny_qwen.CODES), 166]]) for score in seen["scores"][:FRAMES]],
        "residual": projected(residual.flatten(0, 1)),
    }


def _numbers(values: Tensor) -> list[float | None]:
    return [None if value == -torch.inf else round(float(value), 5) for value in values]


if __name__ == "__main__":
    EXPECTED.write_text(json.dumps({name: record(case) for name, case in CASES.items()}, separators=(",", ":")) + "\n")
