"""The check of one take: its transcript compared with its text, and the findings in its audio alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from studio.audio.encode import floats
from studio.library.projects.proof_records import Checked, Kind, ProofFinding
from studio.library.takes.take import Take
from studio.projects.proof.comparison import Comparison, Difference, HeardWord, Text, compare
from studio.projects.proof.sound_check import SoundFigures, sound_figures
from studio.projects.proof.spelling import fold
from studio.projects.proof.verification import Verification
from studio.speech.reading import normalised
from studio.speech.reading.language import guess_language, looks_english
from studio.speech.script.brackets import PAUSE, TAG
from studio.voices.hearing.recogniser import Recogniser, for_recogniser

VERSION = 1
"""Of the check: raised when it finds something else in the same audio, so that stored results are not up to date."""
WEIGHTS: Mapping[Kind, int] = {
    "no_speech": 100,
    "cut_end": 85,
    "repeated": 80,
    "left_out": 70,
    "changed": 60,
    "added": 60,
    "silence": 50,
}
"""By how much listeners mind: lost words most, as they cannot be guessed; pauses least."""
LITTLE_WORD = 3
"""Letters: a fault in an article or a preposition weighs …"""
LITTLE_SHARE = 0.6
"""… this share."""
UNSURE_SHARE = 0.4
"""The share of the weight that stays however unsure the recogniser is of what it heard instead."""
LONGEST_SILENCE = 2.0
"""Seconds: pauses between sentences take up to 1.2 s in the bundled voices."""
TAGGED_PAUSE = 3.0
"""Seconds more, where a tag such as [pause] asks for a pause of the model's choice."""
SHORTEST_SPEECH = 0.1
"""Seconds: audio with less has no words. Recognisers write words of their own for silence."""
FEWEST_LETTERS = 40
"""Of a text that has a pace: a shorter one is spoken at any."""


def check_take(recogniser: Recogniser, name: str, samples: np.ndarray, take: Take, language: str = "") -> Checked:
    """The findings in a take, whose audio are these int16 mono samples (samples,); the same ones always.

    ``name``: of the recogniser; ``language``: of the text, as BCP 47, blank: guessed. Blocking: a tenth of the audio's
    length on a CPU, mostly. Raises OSError, RuntimeError, ValueError of the recogniser, TooCostly, Cancelled.
    """
    text = _text_of(take, language)
    sound = sound_figures(samples, take.sample_rate)
    findings, wrong = list[ProofFinding](), 0
    if text.tokens and sound.speech_s < SHORTEST_SPEECH:
        findings, wrong = [_whole("no_speech", take)], len(text.words)
    elif text.tokens:
        pcm = for_recogniser(floats(samples.tobytes()), take.sample_rate)
        spoken = _language(take.text, language)
        words = recogniser.recognise_exactly(pcm, spoken).words
        heard_words = [HeardWord(word.word, word.start, word.end, float(word.probability)) for word in words]
        comparison = compare(text, heard_words)
        differences = Verification(recogniser, spoken, pcm, text, comparison).differences()
        findings += [_finding(text, difference) for difference in differences]
        findings += _of_sound(text, take, sound, comparison, findings)
        wrong = sum(_words_wrong(difference) for difference in differences)
    letters = sum(len(token.folded) for token in text.tokens)
    return Checked(
        VERSION,
        name,
        len(text.words),
        wrong,
        sound.speech_s,
        sound.level if np.isfinite(sound.level) else None,
        letters / sound.speech_s if letters >= FEWEST_LETTERS and sound.speech_s >= SHORTEST_SPEECH else None,
        tuple(findings),
    )


def missing_audio(name: str, take: Take) -> Checked:
    """The result for a take whose audio file is gone."""
    words = len(TAG.sub(" ", take.text).split())
    return Checked(VERSION, name, words, words, 0.0, None, None, (_whole("no_speech", take),))


def _text_of(take: Take, language: str) -> Text:
    """The text to be spoken, in the reading with which the take was generated."""
    read = take.parameters.get("read_as") or take.text
    if not take.parameters:  # of a version that did not store it
        read = normalised(take.text)
    return Text(take.text, read, language or _language(take.text, language))


def _language(text: str, language: str) -> str:
    """Two or three letters; blank if unknown."""
    return language.partition("-")[0].lower() or guess_language(text) or ("en" if looks_english(text) else "")


def _whole(kind: Kind, take: Take) -> ProofFinding:
    return ProofFinding(kind, WEIGHTS[kind], 0.0, take.seconds, 0, len(take.text))


def _finding(text: Text, difference: Difference) -> ProofFinding:
    first, last = text.characters(difference.first, difference.last)
    return ProofFinding(
        difference.kind, _weight(text, difference), difference.start, difference.end, first, last, difference.heard
    )


def _weight(text: Text, difference: Difference) -> int:
    words = [fold(word) for word in text.words[difference.first : difference.last]] or difference.heard.split()
    share = LITTLE_SHARE if all(len(word) <= LITTLE_WORD for word in words) else 1.0
    if difference.kind in ("changed", "added"):
        share *= UNSURE_SHARE + (1 - UNSURE_SHARE) * difference.certainty
    return max(1, round(WEIGHTS[difference.kind] * share))


def _words_wrong(difference: Difference) -> int:
    return max(difference.last - difference.first, len(difference.heard.split()))


def _of_sound(
    text: Text, take: Take, sound: SoundFigures, comparison: Comparison, others: list[ProofFinding]
) -> Iterator[ProofFinding]:
    """Silence that the text does not ask for, and an end in mid-word that the words do not show."""
    longest = LONGEST_SILENCE + _pause_in(take.text)
    for start, end in sound.silences:
        if end - start > longest:
            word = next(
                (word for word, (begin, _) in sorted(comparison.times.items()) if begin >= start), len(text.words)
            )
            yield ProofFinding("silence", WEIGHTS["silence"], start, end, *text.characters(word, word))
    if sound.is_cut and not any(finding.kind == "cut_end" for finding in others):
        first, last = text.characters(max(0, len(text.words) - 1), len(text.words))
        yield ProofFinding("cut_end", WEIGHTS["cut_end"] // 2, max(0.0, take.seconds - 0.5), take.seconds, first, last)


def _pause_in(text: str) -> float:
    """Seconds of the longest pause that the text asks for."""
    asked = [float(match[1]) / (1000 if match[2].lower() == "ms" else 1) for match in PAUSE.finditer(text)]
    named = [TAGGED_PAUSE for tag in TAG.findall(text) if "pause" in tag or "break" in tag]
    return max([0.0, *asked, *named])
