"""The check of one take: the findings in its sound and, with a recogniser, its transcript compared with its text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from audio.encode import floats
from audio.resampler import resampled
from audio.voiceprint import Voiceprints, mean_print
from longform.expected_length import plausible_seconds
from longform.library.proof_records import Checked, Kind, ProofFinding
from longform.library.usual_sound import packed
from longform.proof.comparison import Difference, HeardWord, Text, compare
from longform.proof.sound_check import SoundFigures, sound_figures
from longform.proof.spelling import fold
from longform.proof.verification import Verification
from speechtext.language import guess_language, looks_english
from speechtext.tags import PAUSE, TAG
from speechtext.word_times import Timed, places_of
from studio.library.take import Take
from studio.voices.recogniser import RATE, Recogniser

VERSION = 3
"""Version of the check: increased when its findings in the same audio change, so that stored results are outdated."""
WEIGHTS: Mapping[Kind, int] = {
    "no_speech": 100,
    "too_long": 90,
    "cut_end": 85,
    "repeated": 80,
    "left_out": 70,
    "too_short": 70,
    "changed": 60,
    "added": 60,
    "silence": 50,
}
"""How much each kind disturbs listeners: lost words most, because they cannot be guessed; pauses least."""
LITTLE_WORD = 3  # letters, at most, of an article or a preposition
LITTLE_SHARE = 0.6  # of the weight of a fault in such a word
UNSURE_SHARE = 0.4
"""Minimum share of the weight, even if the recogniser is unsure of the word it heard instead."""
LONGEST_SILENCE = 2.0
"""Maximum seconds of a pause: between sentences the bundled voices pause for up to 1.3 s."""
TAGGED_PAUSE = 3.0  # additional seconds if a tag such as [pause] requests a pause of the model's choice
TAGGED_SOUND = 1.5  # seconds of sound that any other tag may add, such as [laughing]
FAR_TOO_LONG = 2.0
"""Multiple of the longest plausible speech that has the full weight; less has a proportional one."""
SHORTEST_SPEECH = 0.1  # seconds of audio with words, at least: recognisers invent words for silence
SHORTEST_VOICE = 2.5
"""Seconds of speech from which a voice is compared: of 182 texts of a few words in their own voice, 17 shorter ones
were farther from it than the limits."""
PRINTS = 4  # spans of each half of which voiceprints are computed; longer halves are sampled
FEWEST_LETTERS = 40  # minimum length of a text with a pace; a shorter one may be spoken at any pace


def check_take(
    recogniser: Recogniser | None,
    name: str,
    samples: np.ndarray,
    take: Take,
    language: str = "",
    times: Sequence[Timed] = (),
    voiceprints: Voiceprints | None = None,
) -> Checked:
    """The findings in a take with this audio, int16 mono (samples,); deterministic.

    ``recogniser``: None to check the sound alone; ``name``: of the recogniser, blank without one; ``language``: of the
    text, as BCP 47, blank: guessed; ``times``: the stored word times, which place silence in the text if no recogniser
    does; ``voiceprints``: None: voices are not compared. Blocking: with a recogniser on a CPU, a tenth of the audio's
    length, mostly; without, a thousandth; and up to 0.1 s for the voiceprints. Raises OSError, RuntimeError, ValueError
    of the recogniser, TooCostly, Cancelled.
    """
    language = language.partition("-")[0].lower() or guess_language(take.text) or ""
    language = language or ("en" if looks_english(take.text) else "")
    # In the reading with which the take was generated.
    text = Text(take.text, take.parameters.get("read_as") or take.text, language)
    sound = sound_figures(samples, take.sample_rate)
    findings, wrong_words = list[ProofFinding](), 0
    if text.tokens and sound.speech_s < SHORTEST_SPEECH:
        findings, wrong_words = [_whole_take("no_speech", take)], len(text.words)
    elif text.tokens:
        if recogniser is None:
            places = places_of(take.text, [word.text for word in times])
            starts = [(word.start, place) for word, place in zip(times, places, strict=True)]
        else:
            pcm = resampled(floats(samples.tobytes()), take.sample_rate, RATE)
            words = recogniser.recognise_exactly(pcm, language).words
            heard_words = [HeardWord(word.word, word.start, word.end, float(word.probability)) for word in words]
            comparison = compare(text, heard_words)
            differences = Verification(recogniser, language, pcm, text, comparison).differences()
            for difference in differences:
                wrong_words += max(difference.last - difference.first, len(difference.heard.split()))
                weight, (first, last) = _weight(text, difference), text.characters(difference.first, difference.last)
                start, end, heard = difference.start, difference.end, difference.heard
                findings.append(ProofFinding(difference.kind, weight, start, end, first, last, heard))
            starts = [(start, text.places[word]) for word, (start, _) in comparison.times.items()]
        findings += _of_sound(text, take, sound, starts, findings)
    # A pace or level requested by the text, or of a runaway take, is not representative.
    is_usual = not _directions(take.text) and all(not finding.kind.startswith("too_") for finding in findings)
    letters = sum(len(token.folded) for token in text.tokens)
    has_pace = is_usual and letters >= FEWEST_LETTERS and sound.speech_s >= SHORTEST_SPEECH
    return Checked(
        VERSION,
        name,
        len(text.words),
        wrong_words if name else 0,
        sound.speech_s,
        sound.level if is_usual and np.isfinite(sound.level) else None,
        letters / sound.speech_s if has_pace else None,
        tuple(findings),
        _print(voiceprints, floats(samples.tobytes()), take.sample_rate)
        if voiceprints and is_usual and sound.speech_s >= SHORTEST_VOICE
        else b"",
    )


def _print(voiceprints: Voiceprints, pcm: np.ndarray, rate: int) -> bytes:
    """The prints of both halves; blank where one of them has too little speech."""
    halves = [voiceprints.spans(half, rate, PRINTS) for half in (pcm[: len(pcm) // 2], pcm[len(pcm) // 2 :])]
    return packed(np.stack([mean_print(half) for half in halves])) if all(map(len, halves)) else b""


def missing_audio(name: str, take: Take) -> Checked:
    """The result for a take whose audio file is gone."""
    words = len(TAG.sub(" ", take.text).split())
    return Checked(VERSION, name, words, words if name else 0, 0.0, None, None, (_whole_take("no_speech", take),))


def _whole_take(kind: Kind, take: Take, share: float = 1.0) -> ProofFinding:
    return ProofFinding(kind, round(WEIGHTS[kind] * share), 0.0, take.seconds, 0, len(take.text))


def _weight(text: Text, difference: Difference) -> int:
    words = [fold(word) for word in text.words[difference.first : difference.last]] or difference.heard.split()
    share = LITTLE_SHARE if all(len(word) <= LITTLE_WORD for word in words) else 1.0
    if difference.kind in ("changed", "added"):
        share *= UNSURE_SHARE + (1 - UNSURE_SHARE) * difference.certainty
    return max(1, round(WEIGHTS[difference.kind] * share))


def _of_sound(
    text: Text, take: Take, sound: SoundFigures, starts: Sequence[tuple[float, int]], findings: Sequence[ProofFinding]
) -> Iterator[ProofFinding]:
    """Find silence not requested by the text, an end in mid-word that the words do not show, an implausible length.

    ``starts``: the second at which words begin, and the place of each in the text.
    """
    requested = [float(match[1]) / (1000 if match[2].lower() == "ms" else 1) for match in PAUSE.finditer(take.text)]
    requested += [TAGGED_PAUSE for tag in TAG.findall(take.text) if _is_pause(tag)]
    longest_silence = LONGEST_SILENCE + max(requested, default=0.0)
    for start, end in sound.silences:
        if end - start > longest_silence:
            place = min((word for word in starts if word[0] >= start), default=(end, len(take.text)))[1]
            yield ProofFinding("silence", WEIGHTS["silence"], start, end, place, place)
    is_limited = take.finish_reason == "length"
    if (sound.is_cut or is_limited) and not any(finding.kind == "cut_end" for finding in findings):
        first, last = text.characters(max(0, len(text.words) - 1), len(text.words))
        weight = WEIGHTS["cut_end"] if is_limited else WEIGHTS["cut_end"] // 2
        yield ProofFinding("cut_end", weight, max(0.0, take.seconds - 0.5), take.seconds, first, last)
    shortest, longest = plausible_seconds(text.read)
    speech_seconds = sound.speech_s * float(take.parameters.get("speed") or 1.0)
    if speech_seconds > longest + TAGGED_SOUND * _directions(take.text):
        yield _whole_take("too_long", take, min(1.0, speech_seconds / longest / FAR_TOO_LONG))
    elif speech_seconds < shortest:
        yield _whole_take("too_short", take)


def _directions(text: str) -> int:
    """The number of tags other than pauses: [whisper], [laughing]."""
    return sum(tag.startswith("[") and not _is_pause(tag) for tag in TAG.findall(text))


def _is_pause(tag: str) -> bool:
    return "pause" in tag or "break" in tag
