"""Likeness of a kept take to its voice's clip or another clip: per cent, nearest bundled voice, reasons."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import httpx
import numpy as np
import pytest

from audio.voiceprint import Voiceprints
from studio.library import Library, VoiceFields
from studio.library.take import Take
from studio.takes.take_likeness import TakeLikeness
from studio.voices.bundled import import_bundled
from studio.voices.clip_service import ClipService, LibraryPrints
from studio.voices.denoiser import Denoiser
from studio.voices.intake import take_in
from studio.voices.recogniser import Transcriber
from studio.work import CLIPS, DENOISING, TRANSCRIBING, WorkQueue
from tests.audio.test_voiceprint import VOICES
from tests.studio.answers import assert_envelope
from tests.studio.clips import file_of, samples_of
from tests.studio.fake_engine import FakeEngine
from tests.studio.server import Served

Steer = Callable[..., tuple[Served, FakeEngine]]


def clip(*names: str) -> bytes:
    """Four seconds each of bundled recordings, one after the other."""
    read = [samples_of((VOICES / f"{name}.wav").read_bytes()) for name in names]
    return file_of(np.concatenate([pcm[: 4 * rate] for pcm, rate in read]), read[0][1])


def speak(client: httpx.Client, voice: str) -> str:
    """Speak a take of a few seconds; its id."""
    text = "This is said so that the take lasts for long enough to hear a voice in it."
    answer = client.post("/v1/audio/speech", json={"input": text, "voice": voice, "response_format": "wav"})
    assert answer.status_code == 200, answer.text
    return answer.headers["x-request-id"]


def test_take_unlike_its_clip_is_graded_far_with_reasons(steered: Steer) -> None:
    served, _ = steered()
    with served.client() as client:
        fields = {"name": "Both", "ref_text": "What the two of them said in this clip, one after the other."}
        client.post("/v1/audio/voices", data=fields, files={"audio_sample": clip("Clara", "Boris")}).raise_for_status()
        answer = client.get(f"/v1/takes/{speak(client, 'Both')}/likeness").json()
        assert answer["object"] == "audio.take.likeness" and answer["grade"] == "far" and 0 <= answer["percent"] < 40
        assert "people" in [finding["code"] for finding in answer["findings"]]
        sent = {"audio_sample": clip("Clara", "Boris")}
        take = f"/v1/takes/{speak(client, 'random')}/likeness"
        assert client.post(take, files=sent).json()["findings"] == answer["findings"], "of a clip that is not saved too"
        cut = client.post(take, files=sent, data={"end": "4"}).json()
        assert "people" not in [finding["code"] for finding in cut["findings"]]
        assert_envelope(client.post(take, files=sent, data={"start": "9"}), 400, "start")
        assert_envelope(client.post(take, files={"clip": clip("Clara")}), 400, "audio_sample")


async def test_comparison_names_the_closest_bundled_voice(tmp_path: Path) -> None:
    library = Library(tmp_path / "home")
    import_bundled(library, VOICES)
    own = library.voices.create(VoiceFields(name="Own"), [take_in(clip("Boris"), "Words.").sample("Words.")])
    path = tmp_path / "take.wav"
    path.write_bytes(clip("Clara"))
    rate = samples_of(path.read_bytes())[1]
    take = Take("t1", 0.0, f"{own.slug}@1", 7, voice_id=own.id, media_type="audio/wav", sample_rate=rate)
    prints, queue = LibraryPrints(library, Voiceprints(VOICES.parent / "voiceprint.npz")), WorkQueue(CLIPS)
    clips = ClipService(queue, Transcriber(WorkQueue(TRANSCRIBING), ""), Denoiser(WorkQueue(DENOISING)), prints)
    likeness = TakeLikeness(library, prints, clips, queue)
    unlike = await likeness.to_voice(take, path, "me")
    assert unlike.closest is not None and unlike.closest.name == "Clara" and unlike.closest.percent > 85
    assert unlike.percent < 40
    path.write_bytes(clip("Boris"))
    alike = await likeness.to_voice(take, path, "me")
    assert alike.percent > 95 and alike.as_json()["grade"] == "close" and alike.findings == ()


def test_take_without_a_library_voice_cannot_be_compared(steered: Steer) -> None:
    served, _ = steered()
    with served.client() as client:
        assert_envelope(client.get("/v1/takes/req_nobody/likeness"), 404)
        refused = client.get(f"/v1/takes/{speak(client, 'random')}/likeness")
        assert_envelope(refused, 422)
        assert refused.json()["error"]["code"] == "no_likeness"


def test_likeness_is_unavailable_without_voiceprints(steered: Steer, monkeypatch: pytest.MonkeyPatch) -> None:
    original_init = Voiceprints.__init__

    def init_without_file(self: Voiceprints, path: object) -> None:
        original_init(self, VOICES / "nothing.npz")

    monkeypatch.setattr(Voiceprints, "__init__", init_without_file)
    served, _ = steered()
    with served.client() as client:
        take = f"/v1/takes/{speak(client, 'default')}/likeness"
        assert_envelope(client.get(take), 501)
        assert_envelope(client.post(take, files={"audio_sample": clip("Clara")}), 501)
        assert client.post("/v1/voices/advise", files={"audio_sample": clip("Clara")}).json()["closest"] is None
