"""The check of a project's audio without a recogniser: its audio, and its words once there is a recogniser."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from audio.encode import pcm16
from longform.library.proof_records import Checked
from longform.proof.part_check import check_take
from speechtext.reading import normalised
from studio.library.take import Take
from tests.longform.script import RECOGNISER, Script, scripted
from tests.longform.test_projects import Steer, parts_of, post_verb, until
from tests.longform.test_proof import proof, report, run_check, spoken_project, spots
from tests.longform.test_sound_check import RATE, speech
from tests.studio.server import Served

COUNTING = "Six ten one two, six ten one two, six ten one two, six ten one two."


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> Script:
    return scripted(monkeypatch)


def put_silence(served: Served, take_id: str, at: float, seconds: float) -> None:
    """Put silence into the audio of a take."""
    library = served.app.state.studio.library
    path = library.files.path(library.takes.get(take_id).audio)
    wav = path.read_bytes()
    samples = np.frombuffer(wav[44:], "<i2").copy()
    samples[round(at * 44_100) : round((at + seconds) * 44_100)] = 0
    path.chmod(0o600)
    path.write_bytes(wav[:44] + samples.tobytes())


def test_sound_is_checked_without_a_recogniser_and_words_with_one(
    steered: Steer, script: Script, tmp_path: Path
) -> None:
    home = str(tmp_path)
    served, engine = steered(home=home)
    engine.frames_a_word = 60
    runaway = spoken_project(served, "One two three.", language="en")
    engine.frames_a_word = 6
    project = spoken_project(served, "One two three.", COUNTING, language="en")
    put_silence(served, parts_of(served, project)[1]["chosen"], 0.3, 2.1)
    now = run_check(served, project)
    assert (now["recogniser"], now["parts"], now["checked"], now["compared"]) == (False, 2, 2, 0)
    assert (now["words"], now["wrong_per_1000"]) == (0, None) and now["seconds"] > 2
    [silence] = spots(served, project)
    assert (silence["kind"], silence["position"], silence["before"]) == (
        "silence",
        1,
        "Six ten ",
    )
    assert "not compared" in report(served, project, "txt") and "wrong" not in report(served, project, "txt")
    run_check(served, runaway)
    [spot] = spots(served, runaway)
    assert (spot["kind"], spot["start"], spot["words"]) == ("too_long", 0, "One two three.")
    assert spot["end"] == pytest.approx(parts_of(served, runaway)[0]["takes"][0]["seconds"], abs=0.01)
    assert f"too long for its text: {spot['end']:.1f} s" in report(served, runaway, "txt")
    proof(served, project, "PATCH", f"/spots/{silence['id']}", accepted=True)

    again, _ = steered(home=home, transcriber=RECOGNISER)
    before = proof(again, project)
    assert (before["checked"], before["compared"]) == (2, 0)
    script.texts = ["one two", COUNTING]
    after = run_check(again, project)
    assert (after["checked"], after["compared"], after["words"], after["wrong"]) == (2, 2, 19, 1)
    assert [spot["kind"] for spot in spots(again, project)] == ["cut_end"], "the silence stays accepted"
    assert "wrong: 1" in report(again, project, "txt")

    last, _ = steered(home=home)
    for repeated in (False, True):
        assert run_check(last, project, again=repeated)["compared"] == 2, "words that were compared are not forgotten"
    assert [spot["kind"] for spot in spots(last, project)] == ["cut_end"]


def test_best_of_several_takes_is_chosen_by_audio_alone(steered: Steer, script: Script) -> None:
    served, engine = steered()
    engine.frames_a_word = 60
    project = spoken_project(served, "One two three.", language="en")
    run_check(served, project)
    [part] = parts_of(served, project)
    engine.frames_a_word = 6
    improved = proof(served, project, "POST", "/regenerate", part=part["id"])
    assert (improved["replaced"], improved["tries"], improved["weight"]) == (True, 1, 0)
    assert improved["weight_before"] > 0 and spots(served, project) == []
    assert proof(served, project)["checked"] == 1, "the new take is not checked again"


def test_takes_are_compared_by_audio_alone_without_a_recogniser(steered: Steer, script: Script, tmp_path: Path) -> None:
    """Without a recogniser, which checks words, the wrong words of an earlier take do not count."""
    home = str(tmp_path)
    served, _ = steered(home=home, transcriber=RECOGNISER)
    project = spoken_project(served, "One two three.", language="en")
    script.texts = ["one two"]
    run_check(served, project)
    [part] = parts_of(served, project)
    again, engine = steered(home=home)
    engine.frames_a_word = 60
    kept = proof(again, project, "POST", "/regenerate", part=part["id"], tries=2)
    assert (kept["replaced"], kept["weight_before"], kept["weight"]) == (False, 0, 0)
    assert [spot["kind"] for spot in spots(again, project)] == ["cut_end"] and proof(again, project)["compared"] == 1


def test_runaway_is_found_with_a_recogniser_and_does_not_affect_the_pace(steered: Steer, script: Script) -> None:
    served, engine = steered(transcriber=RECOGNISER)
    text = "Four five six seven eight nine ten eleven twelve thirteen."
    project = spoken_project(served, *[text] * 9, language="en")
    engine.frames_a_word = 60
    post_verb(served, project, "speak", parts=[parts_of(served, project)[4]["id"]])
    until(served, project, "done")
    script.texts = [text] * 9
    run_check(served, project)
    # The pitch of these takes follows from their seeds, so that one of them may count as another voice.
    found = [(spot["kind"], spot["position"]) for spot in spots(served, project) if spot["kind"] != "voice"]
    assert found == [("too_long", 4)]


def check_audio(
    text: str, pcm: np.ndarray, speed: float = 1.0, finish_reason: str = "stop", language: str = ""
) -> Checked:
    samples = np.frombuffer(pcm16(pcm), "<i2")
    parameters = {"read_as": normalised(text), "speed": speed}
    seconds = len(pcm) / RATE
    take = Take("take", 0.0, "", 0, text=text, parameters=parameters, seconds=seconds, sample_rate=RATE)
    take = replace(take, finish_reason=finish_reason)
    return check_take(None, "", samples, take, language)


def kinds(result: Checked) -> list[str]:
    return [finding.kind for finding in result.findings]


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("No.", 0.4),
        ("A B C D E F G.", 3.0),
        ("BBC, ITV, CNN, NBC, ABC.", 3.5),
        ("[sighs] Well, [laughs] I suppose so.", 4.5),
        ("1984", 1.2),
        ("Er zahlte 1984 genau 384000 Mark.", 5.5),
        ("그는 아무 말도 하지 않고 창밖을 바라보았다.", 3.2),
        ("彼は何も言わずに窓の外を見ていた。", 2.9),
        ("他一句话也没说，只是看着窗外。", 2.8),
        ("لم يقل شيئا ونظر من النافذة", 2.6),
        ("उसने कुछ नहीं कहा और खिड़की से बाहर देखा।", 2.6),
    ],
)
def test_usual_lengths_are_plausible_and_runaways_are_not(text: str, seconds: float) -> None:
    whole = np.concatenate([speech(seconds), np.zeros(RATE // 10, np.float32)])
    assert kinds(check_audio(text, whole)) == []
    assert kinds(check_audio(text, np.tile(whole, 4))) == ["too_long"]
    assert kinds(check_audio(text, np.concatenate([speech(2 * seconds), np.zeros(RATE)]), speed=0.5)) == []


def test_speech_missing_half_of_its_text_is_too_short() -> None:
    text = "She wiped her hands on her apron and looked out of the window for a while."
    end = np.zeros(RATE // 10, np.float32)
    assert kinds(check_audio(text, np.concatenate([speech(3.9), end]))) == []
    short = check_audio(text, np.concatenate([speech(1.6), end]))
    assert kinds(short) == ["too_short"] and short.pace is None


def test_requested_delivery_is_not_compared_with_other_takes() -> None:
    words = "She wiped her hands on her apron and looked out of the window."
    whole = np.concatenate([speech(3.0), np.zeros(RATE // 10)])
    plain, paused, whispered = (check_audio(text, whole) for text in (words, f"{words} [pause]", f"[whisper] {words}"))
    assert plain.level == paused.level is not None and plain.pace == paused.pace is not None
    assert whispered.level is None is whispered.pace


def test_silence_or_a_cut_at_the_end_is_reported() -> None:
    text, end = "She wiped her hands on her apron.", np.zeros(RATE // 10, np.float32)
    whole = np.concatenate([speech(1.8), end])
    assert kinds(check_audio(text, np.concatenate([whole, np.zeros(RATE * 3)]))) == ["silence"]
    assert kinds(check_audio(text + " [pause:3s]", np.concatenate([whole, np.zeros(RATE * 3)]))) == []
    cut, limited = check_audio(text, speech(1.8)), check_audio(text, whole, finish_reason="length")
    assert kinds(cut) == kinds(limited) == ["cut_end"] and limited.weight > cut.weight
