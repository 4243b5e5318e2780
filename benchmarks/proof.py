"""python -m benchmarks.proof [FOLDER]: how many planted faults the check of the audio finds, and its false alarms.

FOLDER holds a recogniser as faster-whisper reads it, such as Whisper base; without one the sound alone is checked. The
bundled model generates 60 sentences in four voices; then in each of them one fault of each kind is planted by the word
times. With --varied it generates headings, lists, numbers and the like, and plants only faults of length. A finding
counts if it is of the right kind and within a second; in the sentences without faults every finding is a false alarm.
"""

from __future__ import annotations

import argparse
import json
import random
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import httpx
import numpy as np

from audio.encode import WAV_HEADER, floats, pcm16
from benchmarks.proofing.faults import FAULTS, OF_LENGTH, Planted, Spoken
from benchmarks.proofing.sentences import SENTENCES
from benchmarks.proofing.varied_texts import VARIED
from benchmarks.serving.api_server import StudioProcess
from longform.library.proof_records import Checked, ProofFinding
from longform.proof.part_check import check_take
from speechtext.reading import normalised
from speechtext.word_times import Timed
from studio.library.take import Take
from studio.voices.recogniser import Recogniser

RATE = 44_100
VOICES = ("Clara", "Otto", "Nora", "Alan")
NEAR = 1.0
"""Seconds."""
KINDS = {
    "left out": {"left_out", "changed"},
    "doubled": {"repeated", "added"},
    "wrong word": {"changed", "left_out", "added"},
    "cut end": {"cut_end", "changed", "left_out"},
    "silence": {"silence"},
    "noise": {"too_long"},
    "loop": {"too_long"},
    "half": {"too_short", "cut_end", "left_out", "changed"},
}
"""What a planted fault may be called: a word whose neighbours carry its rests is heard as another one."""


def spoken_texts(folder: Path, texts: Sequence[str]) -> list[Spoken]:
    """The texts with audio and word times, generated once and kept in the folder."""
    if not (folder / f"{len(texts) - 1:02}.wav").exists():
        _generate(folder, texts)
    return [_read(folder / f"{number:02}.wav") for number in range(len(texts))]


def _read(path: Path) -> Spoken:
    facts = json.loads(path.with_suffix(".json").read_text())
    words = tuple(Timed(word["text"], word["start"], word["end"]) for word in facts["times"])
    return Spoken(facts["text"], facts["voice"], floats(path.read_bytes()[WAV_HEADER:]), words)


def _generate(folder: Path, texts: Sequence[str]) -> None:
    with tempfile.TemporaryDirectory() as home:
        studio = StudioProcess(STUDIO_HOME=home, STUDIO_PAGE="0")
        try:
            studio.wait_until_ready()
            with httpx.Client(base_url=studio.address, timeout=600) as client:
                for number, text in enumerate(texts):
                    voice = VOICES[number % len(VOICES)]
                    body = {"input": text, "voice": voice, "seed": 7, "response_format": "wav"}
                    answer = client.post("/v1/audio/speech", json=body)
                    times = client.get(f"/v1/takes/{answer.headers['x-request-id']}/timestamps").json()["timestamps"]
                    facts = {"text": text, "voice": voice, "times": times}
                    (folder / f"{number:02}.json").write_text(json.dumps(facts))
                    (folder / f"{number:02}.wav").write_bytes(answer.content)
        finally:
            studio.stop()


def check(recogniser: Recogniser | None, text: str, pcm: np.ndarray) -> Checked:
    """As a project checks a take."""
    samples = np.frombuffer(pcm16(pcm), "<i2")
    parameters = {"read_as": normalised(text)}
    take = Take("take", 0.0, "", 0, text=text, parameters=parameters, seconds=len(pcm) / RATE, sample_rate=RATE)
    return check_take(recogniser, "benchmark" if recogniser else "", samples, take, "en")


def is_found(planted: Planted, findings: Sequence[ProofFinding]) -> bool:
    return any(
        finding.kind in KINDS[planted.kind] and finding.start - NEAR <= planted.at <= finding.end + NEAR
        for finding in findings
    )


def main() -> None:
    parser = argparse.ArgumentParser("python -m benchmarks.proof", description=__doc__)
    parser.add_argument("recogniser", nargs="?", help="a folder with a recogniser as faster-whisper reads it")
    parser.add_argument("--varied", action="store_true", help="varied texts instead of the sentences")
    parser.add_argument("--count", type=int, default=None, help="of sentences or texts; default: all")
    parser.add_argument(
        "--planted", type=int, default=0, help="of the last ones, in how many faults are planted; 0: all"
    )
    parser.add_argument("--audio", type=Path, help="a folder that keeps the generated sentences")
    wanted = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        texts = (VARIED if wanted.varied else SENTENCES)[: wanted.count]
        sentences = spoken_texts(wanted.audio or Path(scratch), texts)
    recogniser = Recogniser(wanted.recogniser) if wanted.recogniser else None
    detected, planted, alarms, words = Counter[str](), Counter[str](), 0, 0
    begun, cpu = time.perf_counter(), time.process_time()
    for sentence in sentences:
        checked = check(recogniser, sentence.text, sentence.pcm)
        words += checked.words
        alarms += len(checked.findings)
        for finding in checked.findings:
            phrase = sentence.text[finding.first : finding.last]
            print(f"false alarm: {finding.kind} {phrase!r}, heard {finding.heard!r}: {sentence.text}", flush=True)
    seconds = sum(len(sentence.pcm) for sentence in sentences) / RATE
    spent, cpu = time.perf_counter() - begun, time.process_time() - cpu
    print(f"{words} words, {seconds:.0f} s of audio, checked in {spent:.0f} s ({cpu:.0f} s of CPU time)", flush=True)
    for number, sentence in list(enumerate(sentences))[-wanted.planted :]:
        choose = random.Random(number)
        for plant in OF_LENGTH if wanted.varied else FAULTS:
            fault = plant(sentence, sentences, RATE, choose)
            planted[fault.kind] += 1
            findings = check(recogniser, sentence.text, fault.pcm).findings
            if is_found(fault, findings):
                detected[fault.kind] += 1
            else:
                others = [(finding.kind, finding.heard) for finding in findings]
                print(f"missed: {fault.kind} {fault.word!r} at {fault.at:.1f} s, {others}: {sentence.text}", flush=True)
    print("\n| planted fault | found |\n|---|---|")
    for kind in planted:
        print(f"| {kind} | {detected[kind]} of {planted[kind]} |")
    print(f"| all | {detected.total()} of {planted.total()} ({detected.total() / planted.total():.1%}) |")
    print(f"| false alarms per 1,000 words | {1000 * alarms / words:.1f} ({alarms} in {words}) |")


if __name__ == "__main__":
    main()
