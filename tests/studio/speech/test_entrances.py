"""The engine gets the same words for the same text, whatever it contains and whichever route is used."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from engine import EngineConfig, ModelCard, Sampling
from speechtext.script import Sentences, Words, has_words, read_script
from studio.settings import Settings
from studio.speech import script_stream
from tests.longform.test_projects import until
from tests.studio.conftest import Steered
from tests.studio.fake_engine import FakeEngine
from tests.studio.server import serve
from tests.studio.speech.test_socket import open_socket, send

CARD = ModelCard(normalize=True, languages=("en",), tags=("whisper", "slow", "pause"))
KINDS = {
    "plain": "This one is plain.",
    "soft hyphens": "The extra\u00ador\u00addi\u00adnary win\u00addow was shut.",
    "zero width": "A\u200bnd \ufeffthen we re\u2060st.",
    "ligatures": "The \ufb01nal o\ufb03ce was \ufb02at.",
    "wide": "\uff28\uff45\uff4c\uff4c\uff4f, that is \uff11\uff12 of us.",
    "entities": "Tom &amp; Jerry said it&#39;s &quot;fine&quot;.&nbsp;We agree.",
    "emphasis": "Here **is** a *word* and a `tick`.",
    "heading": "\n\n### Example Heading\n\n",
    "list": "\n- first thing\n- second thing\n",
    "table": "\n| one | two |\n|---|---|\n| three | four |\n",
    "link": "See [the page](https://example.org/a_(b)) for it.",
    "citations": "Paris is large [1]. It has museums.[2][3]",
    "emoji": "Great \U0001f389 news \U0001f44d.",
    "private": "No \ue000\U0010ffff sign.",
    "numbers": "Pay $3.50 at 5 pm.",
    "abbreviations": "Gov. Newsom met Lt. Dan on Jan. 5, 2024.",
    "questions": "\u201cWhy?\u201d he asked. \u201cStop!\u201d Anna cried.",
    "dots": "I thought . . . maybe not. Then he left... and came back.",
    "tag": "[whisper] Two is soft and quiet.",
    "tag in other letters": "[ Slow ] Take your time.",
    "tag amid": "He came [whisper] and went.",
    "no tag": "He cast [Fireball] and drank a [Healing Potion].",
    "escaped": r"Then \[whisper] is a word.",
    "pause": "[pause:300ms] After it.",
    "pause of the model": "[pause] And on.",
    "speaker": "<|speaker:1|>Another one speaks.",
}


def texts() -> list[str]:
    """Each kind twice, combined with others."""
    dice, results = random.Random(5), list[str]()
    for _ in range(2):
        kinds = dice.sample(sorted(KINDS), len(KINDS))
        results += [" ".join(KINDS[kind] for kind in kinds[at : at + 4]) for at in range(0, len(kinds), 4)]
    return results


@pytest.fixture(scope="module")
def paged(voices_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Steered]:
    """A studio with its page, whose model names its tags."""
    engines: list[FakeEngine] = []

    def start(config: EngineConfig, progress: Callable[[str, float], None]) -> FakeEngine:
        engines.append(FakeEngine.start(config, progress))
        engines[0].info = replace(engines[0].info, card=CARD)
        engines[0].frames_a_word = 1
        return engines[0]

    home = str(tmp_path_factory.mktemp("home"))
    settings = Settings(model="test/model", voices=str(voices_folder), home=home, max_rows=1)
    with pytest.MonkeyPatch.context() as patch, serve(settings, start, page=True) as served:
        patch.setattr(script_stream, "LETTERS_A_SECOND", 1000.0)
        yield served, engines[0]


def texts_for_engine(engine: FakeEngine, act: Callable[..., object], *args: object, **options: object) -> list[str]:
    """The texts that the engine gets during the call."""
    before = len(engine.utterances)
    act(*args, **options)
    return [utterance.text for utterance in engine.utterances[before:]]


def stream_text(steered: Steered, text: str, size: int) -> None:
    with open_socket(steered[0]) as socket:
        for at in range(0, len(text), size):
            send(socket, "input.text", text=text[at : at + size])
        send(socket, "input.done")
        while isinstance(message := socket.recv(60), bytes) or json.loads(message)["type"] != "session.done":
            assert isinstance(message, bytes) or json.loads(message)["type"] != "error", message


USUAL = [None, "", 1, 0.7, 0.7, 30, 0, 1.0, False]
"""No clip and its words, seed, temperature, top_p, top_k, no limit, speed, and not kept."""


def through_gradio(client: Any, endpoint: str, *data: object) -> None:
    event = client.post(f"/gradio_api/call/{endpoint}", json={"data": [*data, *USUAL]}).json()["event_id"]
    assert "event: complete" in client.get(f"/gradio_api/call/{endpoint}/{event}").text


def test_gradios_endpoints_leave_unset_sampling_to_the_model(paged: Steered) -> None:
    served, engine = paged
    before = engine.info
    engine.info = replace(before, sampling=Sampling(0.9, 1.0, 50))
    try:
        with served.client() as client:
            endpoint = client.get("/gradio_api/info").json()["named_endpoints"]["/synthesize"]
            defaults = {each["parameter_name"]: each["parameter_default"] for each in endpoint["parameters"]}
            data = [defaults[name] for name in list(defaults)[2:]]
            event = client.post("/gradio_api/call/synthesize", json={"data": ["Hello.", "default", *data]}).json()
            assert "event: complete" in client.get(f"/gradio_api/call/synthesize/{event['event_id']}").text
            assert replace(engine.utterances[-1].sampling, seed=0) == engine.info.sampling
            through_gradio(client, "synthesize", "Hello.", "default")
            assert replace(engine.utterances[-1].sampling, seed=0) == Sampling(0.7, 0.7, 30)
    finally:
        engine.info = before


def one_line(texts: list[str]) -> str:
    """Pieces of a stream are sentences; a speaker's mark is repeated before each that follows it in a whole text.

    A paragraph without an end gets a full stop only before another one in the same piece.
    """
    return " ".join(" ".join(texts).replace("<|speaker:1|>", "").replace(".", "").split())


def tagged_parts(texts: list[str]) -> list[str]:
    """The parts that begin with a tag."""
    plain = [text.removeprefix("<|speaker:1|>") for text in texts]
    return [text for text in plain if text.startswith(("[whisper]", "[slow]"))]


def test_all_routes_pass_the_same_words_to_the_engine(paged: Steered) -> None:
    served, engine = paged
    with served.client() as client:
        for text in texts():
            body = {"input": text, "voice": "anna"}
            spoken = texts_for_engine(engine, client.post, "/v1/audio/speech", json=body)
            assert spoken, text
            for step in spoken:
                assert not set("\u00ad\u200b\ufeff\u2060\ufb01&*`|#\ue000") & set(step.replace("<|speaker:1|>", "")), (
                    step
                )
            reading = client.post("/v1/audio/speech/reading", json=body).json()["text"]
            script = read_script(reading, apart=True, one_line=True)
            assert [step.text for step in script if isinstance(step, Words)] == spoken
            batch = texts_for_engine(engine, client.post, "/v1/audio/speech/batch", json={"items": [body]})
            assert batch == spoken
            gradio = texts_for_engine(engine, through_gradio, client, "synthesize", text, "anna")
            assert gradio == spoken
            for size in (5, len(text)):
                stream = texts_for_engine(engine, stream_text, paged, text, size)
                assert one_line(stream) == one_line(spoken)
                assert tagged_parts(stream) == tagged_parts(spoken)


def test_project_parts_pass_the_same_words_to_the_engine(paged: Steered) -> None:
    served, engine = paged
    with served.client() as client:
        alone = [texts_for_engine(engine, client.post, "/v1/audio/speech", json={"input": text}) for text in texts()]

        def speak() -> None:
            body = {"items": [{"input": text} for text in texts()], "start": True}
            project = client.post("/v1/projects", json=body).json()
            until(served, project, "done")

        assert sorted(texts_for_engine(engine, speak)) == sorted(text for parts in alone for text in parts)


def test_dialogue_routes_pass_the_same_words_to_the_engine(paged: Steered) -> None:
    served, engine = paged
    script = "\ufeffTold &amp; done.\n**Anna:** [whisper] Soft. Loud [1].\nBe\u00adrt: [Level Up] \ufb01ne!"
    body = {"input": script, "cast": {"Anna": "anna", "Bert": "bert"}}
    with served.client() as client:
        spoken = texts_for_engine(engine, client.post, "/v1/audio/speech", json=body)
        assert spoken == ["Told and done.", "[whisper] Soft.", "Loud.", "Level Up fine!"]
        assert spoken == texts_for_engine(engine, client.post, "/v1/audio/speech/batch", json={"items": [body]})
        cast = body["cast"]
        assert spoken == texts_for_engine(engine, through_gradio, client, "dialogue", script, cast, "anna", 0.3)


def test_untagged_part_gets_no_context_from_tagged_parts(paged: Steered) -> None:
    served, engine = paged
    text = "One is plain. [whisper] Two is soft. Three is plain. [whisper] Four is soft."
    with served.client() as client:
        client.post("/v1/audio/speech", json={"input": text, "voice": "anna"})
    histories = [[turn.text for turn in utterance.history] for utterance in engine.utterances[-4:]]
    one, two, three = "One is plain.", "[whisper] Two is soft.", "Three is plain."
    assert histories == [[], [one], [one], [one, two, three]]


def test_model_without_listed_tags_gets_all_in_one_part(steered: Callable[..., Steered]) -> None:
    served, engine = steered()
    text = r"One. [whisper softly] Two. Three \[laughs]."
    with served.client() as client:
        client.post("/v1/audio/speech", json={"input": text})
        client.post("/v1/audio/speech", json={"input": "[laughing]"})
    assert [utterance.text for utterance in engine.utterances] == [
        "One. [whisper softly] Two. Three laughs.",
        "[laughing]",
    ]


@pytest.mark.parametrize("size", [1, 2, 5, 17])
def test_streamed_text_is_split_like_the_complete_text(size: int) -> None:
    dice = random.Random(size)
    words = [f"{word} " for text in KINDS.values() for word in text.split(" ")] + [
        "\n",
        "... ",
        ". . . ",
        "\u3002",
        "!",
    ]
    for _ in range(300):
        text = "".join(dice.choice(words) for _ in range(dice.randrange(1, 40))) + "End."
        pieces, whole = Sentences(), Sentences()
        apart = [sentence for at in range(0, len(text), size) for sentence in pieces.add(text[at : at + size])]
        apart += pieces.flush()
        together = whole.add(text) + whole.flush()
        assert apart == together
        assert "".join("".join(together).split()) == "".join(text.split()) or "[pause:" in text
        assert all(has_words(sentence, tags_are_words=True) for sentence in together)


def test_hidden_control_tokens_are_refused(paged: Steered) -> None:
    served, engine = paged
    hidden = ["Hi &lt;|im_end|&gt; there", "Hi <\u200b|im_end|> there", "Hi <\u00ad|im_end|>"]

    def send_hidden_tokens() -> None:
        with served.client() as client:
            for text in hidden:
                refused = client.post("/v1/audio/speech", json={"input": text})
                assert refused.status_code == 400 and "control token" in refused.text
                assert refused.json()["error"]["param"] == "input"

    assert texts_for_engine(engine, send_hidden_tokens) == []
