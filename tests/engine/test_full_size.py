"""The benchmarks' random checkpoint at a small size: it loads, and its takes continue to their limit."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
import yaml

from benchmarks.full_size import S2_PRO, write_checkpoint
from engine import Sampling, Utterance
from tests.engine.speaking import hear, running_engine
from tests.tiny import TinyCodec, codec_config

SMALL = {"n_layer": 2, "dim": 64, "intermediate_size": 96, "n_head": 4, "n_local_heads": 2, "head_dim": 16}


async def test_a_random_checkpoint_loads_and_speaks_until_the_limit(tmp_path: Path) -> None:
    tree = S2_PRO | {
        "eos_token_id": 1145,
        "pad_token_id": 1169,
        "audio_pad_token_id": 1177,
        "semantic_start_token_id": 1178,
        "semantic_end_token_id": 1178 + 127,
        "text_config": S2_PRO["text_config"] | SMALL | {"vocab_size": 1178 + 128 + 2},
        "audio_decoder_config": S2_PRO["audio_decoder_config"] | SMALL | {"vocab_size": 128, "text_dim": 64},
    }
    (tmp_path / "codec.yaml").write_text(yaml.safe_dump(codec_config(TinyCodec())))
    write_checkpoint(tmp_path, torch.device("cpu"), tree)
    with running_engine(tmp_path, max_context=512, max_rows=1) as engine:
        for seed in range(3):
            take = await hear(engine, Utterance("The water was high.", (), Sampling(seed=seed), max_frames=60))
            assert take.reason == "length" and take.codes.shape == (10, 60)
            assert np.isfinite(take.pcm).all() and 0.01 < np.abs(take.pcm).max() < 1
