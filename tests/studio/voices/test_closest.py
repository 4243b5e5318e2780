"""The bundled voice closest to a clip, reported before it is saved, and clear messages about unusual clips."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

from audio.voiceprint import Voiceprints
from studio.library import Library, VoiceFields
from studio.voices.bundled import import_bundled
from studio.voices.clip_service import LibraryPrints
from studio.voices.intake import take_in
from tests.audio.test_voiceprint import VOICES
from tests.studio.answers import assert_envelope
from tests.studio.clips import file_of, samples_of
from tests.studio.fake_engine import FakeEngine
from tests.studio.server import Served
from tests.studio.sounds import tone
from tests.studio.voices.test_intake import whispered

Steer = Callable[..., tuple[Served, FakeEngine]]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two bundled voices of real people."""
    for name in ("Clara", "Boris"):
        for kind in ("wav", "txt"):
            shutil.copy(VOICES / f"{name}.{kind}", tmp_path)
    return tmp_path


@pytest.fixture
def client(steered: Steer, folder: Path) -> Iterator[httpx.Client]:
    """A client of a studio with these voices."""
    with steered(voices=str(folder))[0].client() as client:
        yield client


def recording(name: str) -> tuple[np.ndarray, int]:
    return samples_of((VOICES / f"{name}.wav").read_bytes())


def chords(rate: int) -> np.ndarray:
    """Six seconds of music."""
    seconds = np.arange(6 * rate) / rate
    notes = [hertz * overtone for hertz in (220, 277, 330) for overtone in (1, 2, 3, 4)]
    sound = sum(np.sin(2 * np.pi * hertz * seconds) / hertz for hertz in notes) * np.exp(-2 * (seconds % 0.5))
    return (0.5 * sound / np.abs(sound).max()).astype(np.float32)


def advice(client: httpx.Client, pcm: np.ndarray, rate: int, **fields: str) -> dict[str, Any]:
    answer = client.post("/v1/voices/advise", data=fields, files={"audio_sample": file_of(pcm, rate)})
    assert answer.status_code == 200, answer.text
    return answer.json()


def codes(answer: dict[str, Any]) -> set[str]:
    return {finding["code"] for finding in answer["findings"] if finding["severity"] != "hint"}


def test_closest_bundled_voice_is_named_and_two_people_are_detected(client: httpx.Client) -> None:
    (clara, rate), (boris, _) = recording("Clara"), recording("Boris")
    answer = advice(client, clara[len(clara) // 2 :], rate)
    closest = answer["closest"]
    assert (closest["slug"], closest["name"], closest["among"]) == ("clara", "Clara", 2) and closest["percent"] > 85
    assert client.get(f"/v1/voices/{closest['id']}").json()["slug"] == "clara"
    assert "people" not in codes(answer)
    both = advice(client, np.concatenate([clara[: 4 * rate], boris[: 4 * rate]]), rate)
    assert "people" in codes(both) and both["score"] < answer["score"]
    alone = advice(client, np.concatenate([clara[: 4 * rate], boris[: 4 * rate]]), rate, start="4")
    assert alone["closest"]["name"] == "Boris" and "people" not in codes(alone)


def test_odd_clips_get_clear_messages(client: httpx.Client) -> None:
    clara, rate = recording("Clara")
    noise = 0.1 * np.random.default_rng(0).standard_normal(4 * rate).astype(np.float32)
    odd = {
        "noise": [tone(4, rate), chords(rate), noise, clara[: 6 * rate] + 0.5 * chords(rate)[: len(clara)]],
        "whisper": [whispered(clara, rate), noise],
        "short": [clara[rate : 2 * rate + rate // 2]],
    }
    for code, clips in odd.items():
        for number, pcm in enumerate(clips):
            assert code in codes(advice(client, pcm, rate)), (code, number)
    burst = np.zeros(4 * rate, np.float32)
    burst[rate : rate + rate // 2] = clara[rate : rate + rate // 2]
    assert advice(client, burst, rate)["closest"] is None, "half a second of speech has no voice"
    silent = {"audio_sample": file_of(np.zeros(4 * rate, np.float32), rate)}
    refused = client.post("/v1/voices/advise", files=silent)
    assert_envelope(refused, 400, "audio_sample")
    assert "silent" in refused.json()["error"]["message"]


def test_closest_voice_is_none_without_bundled_voices(client: httpx.Client) -> None:
    clara, rate = recording("Clara")
    for slug in ("clara", "boris"):
        client.delete(f"/v1/voices/{slug}").raise_for_status()
    assert advice(client, clara, rate)["closest"] is None


def test_damaged_bundled_voice_is_left_out(folder: Path) -> None:
    library = Library(folder / "home")
    import_bundled(library, folder)
    clara = library.voices.get("clara").samples[0]
    next((folder / "home").rglob(f"{clara.clip}*")).write_bytes(b"not audio")
    prints = LibraryPrints(library, Voiceprints(VOICES.parent / "voiceprint.npz"))
    closest = prints.closest(prints.prints.of_clip(take_in((VOICES / "Clara.wav").read_bytes()).clip), "me")
    assert closest is not None and (closest.name, closest.among) == ("Boris", 1)


def test_private_bundled_voice_is_not_named_to_others(folder: Path) -> None:
    library = Library(folder / "home", has_keys=True)
    import_bundled(library, folder)
    library.assign_owners({}, "owner Ada")
    library.voices.edit("clara", VoiceFields(sharing="private"))
    prints = LibraryPrints(library, Voiceprints(VOICES.parent / "voiceprint.npz"))
    spans = prints.prints.of_clip(take_in((VOICES / "Clara.wav").read_bytes()).clip)
    names = [closest.name for caller in ("owner Ada", "owner Ben") if (closest := prints.closest(spans, caller))]
    assert names == ["Clara", "Boris"]
