"""ElevenLabs' voices, models, account, history and transcripts with the real SDK: the library in its forms."""

from __future__ import annotations

import base64
import io
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile
from elevenlabs.client import ElevenLabs
from elevenlabs.core.api_error import ApiError

from studio.library import VoiceFields
from studio.library.take import NewTake
from studio.settings import Settings, read_keys
from studio.voices.recogniser import RATE, Recogniser, Transcription, Word
from tests.studio.conftest import Steered
from tests.studio.fake_engine import FakeEngine
from tests.studio.library.worker import stored_take
from tests.studio.server import Served, serve
from tests.studio.sounds import tone, wav

Steer = Callable[..., Steered]


class Counting(Recogniser):
    """A recogniser that always hears the same two words."""

    def recognise(self, pcm: np.ndarray, language: str, **options: Any) -> Transcription:
        seconds = len(pcm) / RATE
        half = seconds / 2
        words = Word("hello", 0.0, half - 0.1, 0.9), Word("there", half, seconds, 0.9)
        return Transcription("hello there", language or "en", words)


@pytest.fixture
def hearing(voices_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Served]:
    """A studio with a recogniser."""
    monkeypatch.setattr("studio.voices.recogniser.Recogniser", Counting)
    settings = Settings(
        model="test/model", voices=str(voices_folder), home=str(tmp_path), transcriber="faster-whisper:base"
    )
    with serve(settings, FakeEngine.start) as served:
        yield served


RACHEL = "21m00Tcm4TlvDq8ikWAM"  # a hosted voice that programs have built in


def client_of(served: Served, key: str = "none") -> ElevenLabs:
    return ElevenLabs(api_key=key, base_url=served.url)


def refused(call: Callable[[], Any]) -> tuple[int, str]:
    """Status and message of an error."""
    with pytest.raises(ApiError) as error:
        call()
    body: Any = error.value.body
    return int(error.value.status_code or 0), body["detail"]["message"]


def clip(hertz: float = 220) -> bytes:
    return wav(tone(2.0, hertz=hertz))


def test_a_voice_is_designed_and_kept(steered: Steer) -> None:
    served, engine = steered()
    client, words = client_of(served), "An old sailor, hoarse, warm."
    status, message = refused(lambda: client.text_to_voice.design(voice_description=words))
    assert status == 400 and "Qwen3-TTS 1.7B VoiceDesign" in message
    engine.info = replace(engine.info, clones=False, instructs=True, designs=True, remembers=False)
    assert "voice_description is blank" in refused(lambda: client.text_to_voice.design(voice_description=" "))[1]
    designed = client.text_to_voice.design(voice_description=words, seed=7, output_format="pcm_16000")
    assert [utterance.sampling.seed for utterance in engine.utterances] == [7, 8, 9]
    client.text_to_voice.design(voice_description=words, seed=2**63 - 1, output_format="pcm_16000")
    assert [utterance.sampling.seed for utterance in engine.utterances[3:]] == [2**63 - 1, 0, 1]
    assert {(utterance.instructions, utterance.text) for utterance in engine.utterances} == {(words, designed.text)}
    assert all(take.live for take in served.app.state.studio.library.takes.page())  # nobody asked to keep them
    first = designed.previews[0]
    pcm = np.frombuffer(base64.b64decode(first.audio_base_64), np.int16)
    assert first.media_type.startswith("audio/pcm") and len(pcm) / 16_000 == pytest.approx(first.duration_secs, 0.01)
    kept: dict[str, Any] = {"voice_name": "Sailor", "voice_description": words, "labels": {"gender": "male"}}
    voice = client.text_to_voice.create(generated_voice_id=first.generated_voice_id, **kept)
    assert (voice.name, voice.description, voice.labels) == ("Sailor", words, {"gender": "male"})
    with served.client() as http:
        assert http.get("/v1/voices/sailor").json()["samples"][0]["text"] == designed.text
    assert "req_none" in refused(lambda: client.text_to_voice.create(generated_voice_id="req_none", **kept))[1]
    untitled = {"generated_voice_id": first.generated_voice_id} | kept | {"voice_name": " "}
    assert "voice_name is missing or blank" in refused(lambda: client.text_to_voice.create(**untitled))[1]


def test_voices_are_listed_searched_and_read(steered: Steer) -> None:
    served, _ = steered()
    client = client_of(served)
    voices = client.voices.get_all().voices
    assert [(voice.name, voice.category) for voice in voices] == [("Anna", "premade"), ("Bert", "premade")]
    found = client.voices.search(search="bert")
    assert (found.total_count, found.has_more, [voice.name for voice in found.voices]) == (1, False, ["Bert"])
    first = client.voices.search(page_size=1, sort="name", sort_direction="desc")
    assert first.has_more and [voice.name for voice in first.voices] == ["Bert"]
    options: Any = {"page_size": 1, "sort": "name", "sort_direction": "desc"}
    second = client.voices.search(next_page_token=first.next_page_token, **options)
    assert not second.has_more and [voice.name for voice in second.voices] == ["Anna"]
    assert client.voices.search(category="cloned").total_count == 0
    assert client.voices.search(category="professional").total_count == 0
    assert client.voices.search(voice_type="default", category="premade").total_count == 2
    anna = client.voices.get("anna").voice_id
    assert re.fullmatch("[a-zA-Z0-9]{10,40}", anna)  # other ids are refused by some programs
    assert {client.voices.get(name).voice_id for name in (anna, f"voice_{anna}", voices[0].voice_id)} == {anna}
    assert client.voices.get(RACHEL).name in ("Anna", "Bert")
    assert refused(lambda: client.voices.get("nobody"))[0] == 404
    unknown: Any = {"next_page_token": "x"}
    assert "next_page_token" in refused(lambda: client.voices.search(**unknown))[1]


def test_a_preview_is_the_clip_of_the_voice(steered: Steer) -> None:
    served, _ = steered()
    voice = client_of(served).voices.get("anna")
    with served.client() as http:
        audio = http.get(str(voice.preview_url)).content
    assert soundfile.info(io.BytesIO(audio)).duration == pytest.approx(1.5)
    assert voice.samples and voice.samples[0].sample_id
    same = client_of(served).voices.samples.audio.get(voice_id=voice.voice_id, sample_id=voice.samples[0].sample_id)
    assert b"".join(same) == audio


def test_settings_are_a_temperature_and_come_back(steered: Steer, monkeypatch: pytest.MonkeyPatch) -> None:
    served, engine = steered()
    client = client_of(served)
    assert client.voices.settings.get_default().stability == 0.5
    request: Any = {"stability": 0.25, "similarity_boost": 0.5}
    client.voices.settings.update("anna", request=request)
    assert client.voices.settings.get("anna").stability == 0.25
    list(client.text_to_speech.convert("anna", text="Hello."))
    assert engine.utterances[0].sampling.temperature == 0.95
    assert refused(lambda: client.voices.settings.update(RACHEL, request=request))[0] == 404
    faster: Any = {"speed": 1.2}
    assert "speed" in refused(lambda: client.voices.settings.update("anna", request=faster))[1]

    def meanwhile(stability: float) -> float:
        served.app.state.studio.library.voices.edit("anna", VoiceFields(defaults={"top_p": 0.9}))
        return stability

    monkeypatch.setattr("protocols.elevenlabs.eleven_library.temperature_of", meanwhile)
    assert refused(lambda: client.voices.settings.update("anna", request=request))[0] == 412
    with served.client() as http:
        assert http.get("/v1/voices/anna").json()["defaults"] == {"top_p": 0.9}, "somebody else's change stays"


def test_a_voice_is_cloned_edited_and_deleted(hearing: Served) -> None:
    client = client_of(hearing)
    labels = {"accent": "British", "gender": "female", "age": "young", "use_case": "narration"}
    made = client.voices.ivc.create(name="Cora", files=[io.BytesIO(clip())], description="mine", labels=labels)
    assert not made.requires_verification
    voice = client.voices.get(made.voice_id)
    assert (voice.name, voice.category, voice.description, voice.labels) == ("Cora", "cloned", "mine", labels)
    assert client.voices.ivc.create(name="Cora", files=[clip()]).voice_id != made.voice_id  # names may repeat there
    assert [found.name for found in client.voices.search(category="cloned").voices] == ["Cora", "Cora 2"]
    assert list(client.text_to_speech.convert(made.voice_id, text="Hello."))
    client.voices.update(made.voice_id, name="Clara", files=[clip(300)], labels={"gender": "non-binary"})
    voice = client.voices.get(made.voice_id)
    assert (voice.name, voice.description, voice.labels) == ("Clara", "mine", {"gender": "neutral"})
    assert len(voice.samples or ()) == 2
    client.voices.delete(made.voice_id)
    assert refused(lambda: client.voices.get(made.voice_id))[0] == 404


def test_what_a_new_voice_lacks_is_said(steered: Steer, hearing: Served) -> None:
    served, _ = steered()
    status, message = refused(lambda: client_of(served).voices.ivc.create(name="Cora", files=[clip()]))
    assert status == 400 and "no recogniser is installed" in message
    client = client_of(hearing)
    assert "name" in refused(lambda: client.voices.ivc.create(name=" ", files=[clip()]))[1]
    assert "files" in refused(lambda: client.voices.ivc.create(name="Cora", files=[]))[1]
    assert "nine" in refused(lambda: client.voices.ivc.create(name="C", files=[clip()], labels={"gender": "nine"}))[1]
    with hearing.client() as http:
        for labels in ("[1]", '{"age": 5}', "x"):
            files = {"files": ("a.wav", clip())}
            answer = http.post("/elevenlabs/v1/voices/add", data={"name": "C", "labels": labels}, files=files)
            assert answer.status_code == 400 and "labels must be" in answer.json()["detail"]["message"]
    assert client.voices.search(category="cloned").total_count == 0


def test_models_user_and_subscription_have_their_fields(steered: Steer) -> None:
    served, _ = steered()
    client = client_of(served)
    (model,) = client.models.list()
    assert model.model_id == "test/model" and model.can_do_text_to_speech
    user = client.user.get()
    assert len(user.user_id) == 32 and user.subscription.character_limit > 0
    assert client.user.subscription.get().can_use_instant_voice_cloning


def test_history_lists_plays_and_deletes_takes(steered: Steer) -> None:
    served, _ = steered()
    client = client_of(served)
    for text in ("One.", "Two.", "Three."):
        list(client.text_to_speech.convert("anna", text=text))
    served.until_left()
    first = client.history.list(page_size=2)
    assert first.has_more and [item.text for item in first.history] == ["Three.", "Two."]
    rest = client.history.list(page_size=2, start_after_history_item_id=first.last_history_item_id)
    assert not rest.has_more and [item.text for item in rest.history] == ["One."]
    assert [item.text for item in client.history.list(search="two").history] == ["Two."]
    assert not client.history.list(voice_id=client.voices.get("bert").voice_id).history
    anna = client.voices.get("anna").voice_id
    assert {item.voice_id for item in client.history.list(voice_id=anna).history} == {anna}
    list(client.text_to_speech.convert(RACHEL, text="Four."))
    served.until_left()
    assert client.history.list(voice_id=RACHEL).history[0].text == "Four."
    assert "sort_direction" in refused(lambda: client.history.list(sort_direction="asc"))[1]
    item = client.history.get(rest.history[0].history_item_id)
    audio = b"".join(client.history.get_audio(item.history_item_id))
    assert soundfile.info(io.BytesIO(audio)).duration > 0.2
    client.history.delete(item.history_item_id)
    assert refused(lambda: client.history.get(item.history_item_id))[0] == 404
    many = [NewTake(stored_take(f"req_{number}", "One more.", "anna")) for number in range(1000)]
    served.app.state.studio.library.takes.add_all(many)
    page = client.history.list(page_size=1000)
    assert page.has_more and len(page.history) == 1000


def test_callers_see_their_own_voices_and_takes(steered: Steer) -> None:
    served, _ = steered(api_keys=read_keys("one=key-one-123456789,two=key-two-123456789"))
    one, two = client_of(served, "key-one-123456789"), client_of(served, "key-two-123456789")
    list(one.text_to_speech.convert("anna", text="Hello."))
    served.until_left(headers={"Authorization": "Bearer key-one-123456789"})
    (item,) = one.history.list().history
    assert not two.history.list().history
    assert refused(lambda: two.history.get(item.history_item_id))[0] == 404
    assert one.user.get().user_id != two.user.get().user_id


def test_recordings_are_transcribed_with_spaces_between_words(hearing: Served, steered: Steer) -> None:
    client = client_of(hearing)
    heard: Any = client.speech_to_text.convert(model_id="scribe_v1", file=io.BytesIO(clip()))
    assert (heard.text, heard.language_code) == ("hello there", "en")
    assert [(word.text, word.type) for word in heard.words] == [("hello", "word"), (" ", "spacing"), ("there", "word")]
    times = [(word.start, word.end) for word in heard.words]
    assert times == [(0.0, 0.9), (0.9, 1.0), (1.0, 2.0)]
    plain: Any = client.speech_to_text.convert(model_id="x", file=clip(), timestamps_granularity="none")
    assert plain.words == []
    finer: Any = {"model_id": "x", "file": clip(), "timestamps_granularity": "character"}
    assert "none or word" in refused(lambda: client.speech_to_text.convert(**finer))[1]
    deaf, _ = steered()
    options: Any = {"max_retries": 0}
    convert = client_of(deaf).speech_to_text.convert
    assert refused(lambda: convert(model_id="x", file=clip(), request_options=options))[0] == 501
