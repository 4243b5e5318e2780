"""Subtitles say who speaks in many ways; sounds for the hearing impaired are listed, not spoken."""

from __future__ import annotations

import pytest

from manuscript.cast import Casting, split_by_speaker
from manuscript.documents import kind_of, read_document
from manuscript.passages import Document, InvalidDocument
from manuscript.subtitles import read_srt, write_vtt
from tests.growth import check, pieces

TIMES = "00:00:01,000 --> 00:00:03,000"
ASS = """[Script Info]
ScriptType: v4.00+

[Events]
Format: Layer, Start, End, Style, Name, MarginL, MarginR, MarginV, Effect, Text
Dialogue: 0,0:00:04.00,0:00:06.50,Default,Ben,0,0,0,,At {\\p1}m 0 0 l 9 9{\\p0\\i1}work,{\\i0}\\Nas {\\i1}always{\\i0}.
Comment: 0,0:00:03.00,0:00:04.00,Default,,0,0,0,,not spoken
Dialogue: 0,0:00:01.00,0:00:03.00,Default,Anna,0,0,0,,Where were you, Ben?
Dialogue: 0,0:00:07.00,0:00:08.00,Sign,,0,0,0,,{\\p1}m 0 0 l 9 9{\\p0}
"""


def spoken(document: Document) -> list[tuple[str, str]]:
    return [(passage.speaker, passage.text) for passage in document.passages]


@pytest.mark.parametrize(
    ("text", "turns"),
    [
        ("ANNA: Where were you?", [("ANNA", "Where were you?")]),
        (">> BEN: At work.", [("BEN", "At work.")]),
        (">> Ben: At work.", [("Ben", "At work.")]),
        (">> At work.", [("", "At work.")]),
        ("[SPEAKER_01]: At work.", [("SPEAKER_01", "At work.")]),
        ("- ANNA: Where?\n- At work.", [("ANNA", "Where?"), ("", "At work.")]),
        ("ANNA: Where\nwere you?\nBEN: Here.", [("ANNA", "Where\nwere you?"), ("BEN", "Here.")]),
        ("[MRS. O’NEIL]: So.", [("MRS. O’NEIL", "So.")]),
        ("He said: no.", [("", "He said: no.")]),
        ("Note: it is 5:30.", [("", "Note: it is 5:30.")]),
    ],
)
def test_names_before_a_colon_are_speakers_in_capitals_or_with_signs(text: str, turns: list[tuple[str, str]]) -> None:
    assert spoken(read_srt(f"1\n{TIMES}\n{text}".encode())) == turns


def test_files_may_have_been_joined_with_their_byte_order_marks() -> None:
    joined = b"".join(f"\ufeff{at}\n00:00:0{at},000 --> 00:00:0{at},900\nWell.\n\n".encode() for at in (1, 2))
    assert spoken(read_document(joined, "srt")) == [("", "Well.")] * 2


def test_two_speakers_of_a_cue_share_its_time() -> None:
    first, second = read_srt(f"1\n{TIMES}\nANNA: Yes.\nBEN: Certainly not.".encode()).passages
    assert (first.start, second.end) == (1.0, 3.0)
    assert first.end == second.start is not None and 1.0 < second.start < 2.0


def test_sounds_are_left_out_and_listed() -> None:
    lines = ["[DOOR CREAKS]", "(sighs) I am late [pause:1s] again.", "[rain]", "[whisper] Come (if you can) now.",
             "(He never came back to the house.)", "He [LAUGHS] and (GUNSHOT) left."]  # fmt: skip
    cues = "\n\n".join(f"{at}\n00:00:0{at},000 --> 00:00:0{at},900\n{line}" for at, line in enumerate(lines, 1))
    document = read_srt(cues.encode())
    assert [passage.text for passage in document.passages] == [
        "I am late [pause:1s] again.", "[whisper] Come (if you can) now.", "(He never came back to the house.)",
        "He and left.",
    ]  # fmt: skip
    [skipped] = document.skipped
    assert skipped.startswith("5 descriptions of sounds are left out: ") and "[DOOR CREAKS], (sighs)" in skipped


def test_voices_of_webvtt_survive_a_round_trip() -> None:
    cues = [
        (1.0, 2.0, "Where were you?", "Anna"),
        (3.0, 4.0, "At work.", "Ben & Co"),
        (5.0, 6.0, "<sighs> So a<b & c>d &amp; 1 --> 2.", ""),
    ]
    document = read_srt("".join(write_vtt(cues)).encode())
    assert [(line.start, line.end, line.text, line.speaker) for line in document.passages] == cues
    cast = split_by_speaker(document, Casting({"Anna": "maya"}), find_speakers=False)
    assert [(person.name, person.voice) for person in cast.cast] == [("Anna", "maya"), ("Ben & Co", None)]


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_substation_alpha_is_read_with_its_speakers(end: str) -> None:
    document = read_document(ASS.replace("\n", end).encode("utf-8-sig"), kind_of("Film.ASS"))
    assert [(line.start, line.end, line.text, line.speaker) for line in document.passages] == [
        (1.0, 3.0, "Where were you, Ben?", "Anna"),
        (4.0, 6.5, "At work,\nas always.", "Ben"),
    ]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (ASS.replace("0:00:01.00", "soon"), "line 8: expected a line of dialogue"),
        (ASS.partition("Dialogue")[0], "no lines of dialogue"),
    ],
)
def test_unreadable_substation_alpha_is_refused_with_the_reason(text: str, why: str) -> None:
    with pytest.raises(InvalidDocument, match=why):
        read_srt(text.encode())


LINES = {"names": "A B: c\n", "voices": "<v A>b ", "brackets": "[A] ", "parentheses": "(a ", "signs": ">> "}


@pytest.mark.parametrize("kind", LINES)
def test_a_cue_is_read_in_linear_time(kind: str) -> None:
    check(lambda text: read_srt(f"1\n{TIMES}\n{text}a".encode()), pieces(LINES[kind]), 16_384)
    check(lambda text: read_srt(f"{ASS}Dialogue: 0,0:00:01.00,0:00:03.00,D,A,0,0,0,,{text}a".encode()),
        pieces(LINES[kind].strip()), 16_384)  # fmt: skip
