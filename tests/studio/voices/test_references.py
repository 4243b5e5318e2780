"""Speaking in the library's voices: when clips are encoded, which words and codes the engine gets, what is stored."""

from __future__ import annotations

import base64
import dataclasses
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import numpy as np
import pytest

from audio import Cut
from audio.measure import SPEECH_DB, speech_level
from engine import Engine
from studio.errors import LibraryFull
from studio.library import Library, NewSample, VoiceFields
from studio.library.library import Codes
from studio.settings import Settings
from studio.voices.intake import take_in
from tests.studio.clips import WORDS, file_of, samples_of, spoken
from tests.studio.fake_engine import FakeEngine
from tests.studio.server import Served, serve
from tests.tiny_qwen import write_qwen
from tests.waiting import wait_until_true

SPEECH = "/v1/audio/speech"
Steered = tuple[Served, FakeEngine]


def library_of(served: Served) -> Library:
    library: Library = served.app.state.studio.speech.voices.library
    return library


def sample(text: str = WORDS, speaker: int = 0, cut: Cut | None = None) -> NewSample:
    return take_in(spoken(), text, cut).sample(text, speaker)


def speak(served: Served, voice: str, **fields: object) -> bytes:
    with served.client() as client:
        answer = client.post(SPEECH, json={"input": "Two words.", "voice": voice, "response_format": "wav"} | fields)
    assert answer.status_code == 200, answer.text
    return answer.content


def encodings(engine: FakeEngine) -> list[int]:
    """The lengths of the encoded clips, except the bundled voices', which are encoded in the background."""
    return [samples for samples, _, text in engine.encoded if not text.startswith("My name")]


def texts(engine: FakeEngine) -> list[str]:
    return [reference.text for reference in engine.utterances[-1].references]


def test_sample_is_encoded_once_and_an_edited_transcript_is_used(steered: Callable[..., Steered]) -> None:
    served, engine = steered()
    library = library_of(served)
    library.voices.create(VoiceFields(name="Eve"), [sample()])
    speak(served, "eve")
    speak(served, "EVE")
    assert texts(engine) == [WORDS]
    library.voices.revise("eve", lambda now: [dataclasses.replace(now[0], text="Other words.")])
    speak(served, "eve")
    assert texts(engine) == ["Other words."]
    speak(served, "eve@1")
    assert texts(engine) == [WORDS]
    assert len(encodings(engine)) == 1


def test_full_disk_does_not_keep_a_voice_from_speaking(
    steered: Callable[..., Steered], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*arguments: object) -> None:
        raise LibraryFull("the library has no room left on its disk")

    monkeypatch.setattr(Codes, "put", full)
    served, engine = steered()
    library_of(served).voices.create(VoiceFields(name="Eve"), [sample()])
    speak(served, "eve")
    speak(served, "eve")
    assert texts(engine) == [WORDS] and len(encodings(engine)) == 1, "the codes are kept in memory"
    wait_until_true(lambda: len(engine.encoded) == 3)
    with served.client() as client:
        assert client.get("/health").json()["background"]["warming"]["ok"]


def test_another_cut_of_the_same_clip_is_encoded_separately(steered: Callable[..., Steered]) -> None:
    served, engine = steered()
    library = library_of(served)
    library.voices.create(VoiceFields(name="Eve"), [sample()])
    speak(served, "eve")
    whole = encodings(engine)[-1]
    library.voices.revise("eve", lambda now: [sample(cut=Cut(1, 3))])
    speak(served, "eve")
    assert encodings(engine)[-1] < whole


def test_codes_of_another_codec_are_not_used(steered: Callable[..., Steered]) -> None:
    served, engine = steered()
    library_of(served).voices.create(VoiceFields(name="Eve"), [sample()])
    speak(served, "eve")
    engine.info = dataclasses.replace(engine.info, codec_fingerprint="a new codec")
    speak(served, "eve")
    assert len(encodings(engine)) == 2


def test_samples_keep_their_order_and_speaker_numbers(steered: Callable[..., Steered]) -> None:
    served, engine = steered()
    library_of(served).voices.create(VoiceFields(name="Two"), [sample("I."), sample("You.", 1), sample("I again.", 0)])
    speak(served, "two", input="<|speaker:0|>Hello.<|speaker:1|>Hi.")
    assert texts(engine) == ["I.", "You.", "<|speaker:0|>I again."]


def test_voice_defaults_apply_unless_the_request_sets_them(steered: Callable[..., Steered]) -> None:
    served, engine = steered()
    library_of(served).voices.create(VoiceFields(name="Eve", defaults={"temperature": 0.25, "seed": 11}), [sample()])
    speak(served, "eve", seed=12)
    sampling = engine.utterances[-1].sampling
    assert (sampling.temperature, sampling.seed) == (0.25, 12)
    speak(served, "eve", temperature=1.5)
    sampling = engine.utterances[-1].sampling
    assert (sampling.temperature, sampling.seed) == (1.5, 11)


def test_own_voice_may_have_the_name_of_an_openai_voice(steered: Callable[..., Steered]) -> None:
    served, engine = steered()
    speak(served, "nova")
    assert texts(engine) != [WORDS]
    library_of(served).voices.create(VoiceFields(name="Nova"), [sample()])
    speak(served, "nova")
    assert texts(engine) == [WORDS]


def test_take_of_a_voice_deleted_meanwhile_is_finished(steered: Callable[..., Steered]) -> None:
    served, engine = steered()
    library = library_of(served)
    library.voices.create(VoiceFields(name="Eve"), [sample()])
    whole = speak(served, "eve", seed=3)
    engine.later_frames_gate.clear()
    body = {"input": "Two words.", "voice": "eve", "seed": 3, "response_format": "wav"}
    with served.client() as client, client.stream("POST", SPEECH, json=body) as answer:
        pieces = answer.iter_raw()
        piece = next(pieces)
        library.voices.delete("eve")
        library.trash.empty(None)
        engine.later_frames_gate.set()
        piece += b"".join(pieces)
    assert piece == whole
    with served.client() as client:
        refused = client.post(SPEECH, json=body)
    assert refused.status_code == 400 and refused.json()["error"]["code"] == "voice_not_found"


def test_bundled_voices_are_imported_at_the_first_start_and_stay_deleted(
    tmp_path: Path, voices_folder: Path, steered: Callable[..., Steered]
) -> None:
    home = {"home": str(tmp_path / "home")}
    served, _ = steered(**home)
    library = library_of(served)
    assert [voice.slug for voice in library.voices.page(bundled=True)] == ["anna", "bert"]
    library.voices.delete("bert")
    library.trash.empty(None)
    library.voices.edit("anna", VoiceFields(name="Hanna"))
    again, _ = steered(**home)
    assert [voice.slug for voice in library_of(again).voices.page()] == ["anna"]


def test_favourites_are_encoded_before_the_first_request(steered: Callable[..., Steered], tmp_path: Path) -> None:
    library = Library(tmp_path / "home")
    library.voices.create(VoiceFields(name="Eve", favourite=True), [sample()])
    library.voices.create(VoiceFields(name="Not yet"), [sample("Not encoded.", cut=Cut(1, 3))])
    served, engine = steered(home=str(tmp_path / "home"))
    served.until(finished=1)
    assert texts(engine) == [WORDS] and engine.utterances[-1].max_frames == 1
    assert len(encodings(engine)) == 1


@pytest.fixture(params=["S2", "Qwen3-TTS"])
def real(
    quick_checkpoint: Path, voices_folder: Path, tmp_path: Path, request: pytest.FixtureRequest
) -> Callable[[], AbstractContextManager[Served]]:
    model = quick_checkpoint if request.param == "S2" else write_qwen(tmp_path / "qwen")
    settings = Settings(model=str(model), voices=str(voices_folder), home=str(tmp_path / "home"), threads=1)
    return lambda: serve(settings, Engine.start)


def test_speech_from_stored_codes_is_equal_after_a_restart(
    real: Callable[[], AbstractContextManager[Served]], tmp_path: Path
) -> None:
    with real() as served:
        voice = library_of(served).voices.create(VoiceFields(name="Eve"), [sample()])
        first = speak(served, "eve", seed=5, max_new_tokens=8)
        info = served.app.state.studio.speech.host.engine().info
    library = Library(tmp_path / "home")
    codes, vector = library.codes.get(voice.samples[0].cut_key, info.codec_fingerprint) or (None, None)
    assert codes is not None and codes.dtype == np.int16 and codes.shape[0] == info.num_codebooks
    assert (vector is not None) == (info.family == "Qwen3-TTS")
    other = library.voices.create(VoiceFields(name="Ada"), [sample(cut=Cut(1, 3))])
    if vector is not None:
        library.codes.put(other.samples[0].cut_key, info.codec_fingerprint, codes, -vector)
    library.files.remove(voice.samples[0].clip)  # nothing is left to encode from
    with real() as served:
        assert speak(served, "eve", seed=5, max_new_tokens=8) == first
        if vector is not None:
            assert speak(served, "ada", seed=5, max_new_tokens=8) != first, "only its vector tells the voice apart"


@pytest.mark.parametrize("level", [1.0, 10 ** (-36 / 20), 10 ** (-50 / 20)], ids=["usual", "at -58 dB", "at -70 dB"])
@pytest.mark.parametrize("entrance", ["voice", "request"])
def test_quiet_clip_is_amplified_before_it_is_encoded(
    steered: Callable[..., Steered], level: float, entrance: str
) -> None:
    served, engine = steered()
    pcm, rate = samples_of(spoken())
    clip = file_of(pcm * np.float32(level), rate, subtype="FLOAT")
    if entrance == "voice":
        library_of(served).voices.create(VoiceFields(name="Eve"), [take_in(clip, WORDS).sample(WORDS)])
        speak(served, "eve")
    else:
        address = f"data:audio/wav;base64,{base64.b64encode(clip).decode()}"
        speak(served, "default", ref_audio=address, ref_text=WORDS)
    sound = next(sound for sound, text in engine.clips if text == WORDS)
    if level == 1.0:
        np.testing.assert_array_equal(sound, pcm)
    else:
        np.testing.assert_allclose(sound, pcm * (np.abs(sound).max() / np.abs(pcm).max()), atol=1e-5)
        assert speech_level(sound, rate) == pytest.approx(SPEECH_DB, abs=4)


def test_codes_of_a_quiet_clip_encoded_without_amplification_are_not_used(steered: Callable[..., Steered]) -> None:
    served, engine = steered()
    library = library_of(served)
    pcm, rate = samples_of(spoken())
    quiet = take_in(file_of(pcm * np.float32(0.01), rate, subtype="FLOAT"), WORDS).sample(WORDS)
    voice = library.voices.create(VoiceFields(name="Eve"), [quiet])
    library.codes.put(voice.samples[0].cut_key, engine.info.codec_fingerprint, np.ones((10, 7), np.int16))
    speak(served, "eve")
    assert encodings(engine) == [len(pcm)]
