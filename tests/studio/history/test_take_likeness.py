"""How much a kept take sounds like the clip of its voice, over HTTP: per cent, nearest bundled voice, reasons."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import httpx
import numpy as np
import pytest

from studio.history.take_likeness import TakeLikeness
from studio.library import Library, VoiceFields
from studio.library.takes.take import Take
from studio.voices.bundled import import_bundled
from studio.voices.hearing.voiceprint import Voiceprints
from studio.voices.intake import take_in
from studio.work.work_queue import WorkQueue
from studio.work.work_queues import CLIPS
from tests.studio.answers import assert_envelope
from tests.studio.clips import file_of, samples_of
from tests.studio.fake_engine import FakeEngine
from tests.studio.server import Served
from tests.studio.voices.hearing.test_voiceprint import VOICES

Steer = Callable[..., tuple[Served, FakeEngine]]


def clip(*names: str) -> bytes:
    """Four seconds each of bundled recordings, one after the other."""
    read = [samples_of((VOICES / f"{name}.wav").read_bytes()) for name in names]
    return file_of(np.concatenate([pcm[: 4 * rate] for pcm, rate in read]), read[0][1])


def spoken(client: httpx.Client, voice: str) -> str:
    """The id of a take of some seconds."""
    text = "This is said so that the take lasts for long enough to hear a voice in it."
    answer = client.post("/v1/audio/speech", json={"input": text, "voice": voice, "response_format": "wav"})
    assert answer.status_code == 200, answer.text
    return answer.headers["x-request-id"]


def test_a_take_unlike_its_clip_says_so_and_why(steered: Steer) -> None:
    served, _ = steered()
    with served.client() as client:
        told = {"name": "Both", "ref_text": "What the two of them said in this clip, one after the other."}
        client.post("/v1/audio/voices", data=told, files={"audio_sample": clip("Clara", "Boris")}).raise_for_status()
        answer = client.get(f"/v1/takes/{spoken(client, 'Both')}/likeness").json()
        assert answer["object"] == "audio.take.likeness" and answer["grade"] == "far" and 0 <= answer["percent"] < 40
        assert "people" in [finding["code"] for finding in answer["findings"]]


async def test_a_take_like_a_bundled_voice_names_it(tmp_path: Path) -> None:
    library = Library(tmp_path / "home")
    import_bundled(library, VOICES)
    own = library.voices.create(VoiceFields(name="Own"), [take_in(clip("Boris"), "Words.").sample("Words.")])
    path = tmp_path / "take.wav"
    path.write_bytes(clip("Clara"))
    rate = samples_of(path.read_bytes())[1]
    take = Take("t1", 0.0, f"{own.slug}@1", 7, voice_id=own.id, media_type="audio/wav", sample_rate=rate)
    prints = Voiceprints(VOICES.parent / "voiceprint.npz")
    likeness = TakeLikeness(library, prints, WorkQueue(CLIPS))
    unlike = await likeness.get(take, path, "me")
    assert unlike.closest is not None and unlike.closest.name == "Clara" and unlike.closest.percent > 85
    assert unlike.percent < 40
    path.write_bytes(clip("Boris"))
    alike = await likeness.get(take, path, "me")
    assert alike.percent > 95 and alike.as_json()["grade"] == "close" and alike.findings == ()


def test_a_take_without_a_voice_of_the_library_cannot_be_compared(steered: Steer) -> None:
    served, _ = steered()
    with served.client() as client:
        assert_envelope(client.get("/v1/takes/req_nobody/likeness"), 404)
        refused = client.get(f"/v1/takes/{spoken(client, 'random')}/likeness")
        assert_envelope(refused, 422)
        assert refused.json()["error"]["code"] == "no_likeness"


def test_a_studio_that_cannot_tell_voices_says_so(steered: Steer, monkeypatch: pytest.MonkeyPatch) -> None:
    began = Voiceprints.__init__

    def without(self: Voiceprints, path: object) -> None:
        began(self, VOICES / "nothing.npz")

    monkeypatch.setattr(Voiceprints, "__init__", without)
    served, _ = steered()
    with served.client() as client:
        assert_envelope(client.get(f"/v1/takes/{spoken(client, 'default')}/likeness"), 501)
