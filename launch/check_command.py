"""fish-voice-studio check MODEL: loads a model, generates sentences, and prints measurements as a table and as JSON.

With --set it speaks the rows of a test set, each with its clip, and measures word errors and likeness.
"""

from __future__ import annotations

import argparse
import io
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rapidfuzz.distance import Levenshtein
from safetensors import SafetensorError, safe_open

from audio.read import read_clip
from audio.resampler import resampled
from audio.voiceprint import Voiceprints, mean_print
from engine import CheckedTake, EngineConfig, EngineError, ModelReport, check_model, is_hub_id, open_regular
from launch import failed
from speechtext.word_times import words_in
from studio import ASSETS
from studio.errors import REFUSALS
from studio.library.private_files import write_whole
from studio.models.catalogue import CATALOGUE, in_catalogue
from studio.models.model_choice import resolve
from studio.settings import Settings
from studio.unicode_text import text_of
from studio.voices.recogniser import RATE, Recogniser, check_name

SENTENCES = Path(__file__).with_name("check-sentences.txt").read_text("utf-8").splitlines()
SET_FILE = "meta.lst"
"""Seed-TTS-eval's list of rows: name|words of the clip|file of the clip|text, and perhaps a recording of the text."""

_QWEN, _KIND = "qwen3_tts", ("model_type", "tts_model_size", "tts_model_type")
_TENSORS = {("0b6", True): 478, ("0b6", False): 402, ("1b7", True): 480, ("1b7", False): 404}
"""Tensors of Qwen3-TTS, by size and by whether it has a voice encoder."""
_FILES: dict[str, dict[str, Any]] = json.loads(Path(__file__).with_name("check-qwen3-tts.json").read_text("utf-8"))
"""Values of its other files."""


@dataclass(frozen=True, slots=True)
class Row:
    """A sentence to speak, with its clip in a test set."""

    text: str
    clip: tuple[np.ndarray, int, str] | None = None
    """Its samples, their rate and its words."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Check a model. Returns 0 on success, 1 after an error (printed on standard error), 2 for wrong arguments."""
    options = _parser().parse_args(arguments)
    try:
        recogniser = _recogniser(options.recogniser)
        rows = _rows(options)
        config = EngineConfig(_path(options.model), options.device, max_rows=1, weights=options.weights)
        for line in _published(Path(config.model)):
            print(line)
        get_clip = None if options.set is None else lambda index: rows[index].clip
        report = check_model(config, [row.text for row in rows], lambda line: print(line, file=sys.stderr), get_clip)
    except (EngineError, *REFUSALS, OSError, RuntimeError, ValueError) as error:
        return failed(error)
    problems = []
    try:
        figures = _figures(report, rows, recogniser)
    except (ImportError, LookupError, MemoryError, OSError, RuntimeError, ValueError) as error:  # of a library
        figures = _figures(report, rows, None)
        name = options.recogniser or Settings.load().transcriber
        problems.append(f"word errors were not counted, since {name} failed: {error}")
    if options.json:
        text = json.dumps(figures, ensure_ascii=False, indent=1) + "\n"
        try:
            write_whole(options.json, io.BytesIO(text.encode()), is_private=False)
        except OSError as error:
            problems.append(f"the measurements were not written: {error}")
    for line in _lines(figures) + (_card(figures) if options.set else []):
        print(line)
    for problem in problems:
        print(f"studio: {problem}", file=sys.stderr)
    return 1 if problems else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="fish-voice-studio check", description="Tests and measures a model.")
    parser.add_argument("model", help="a folder, a GGUF file, a model.pth, a hub id, or a name that “models” lists")
    parser.add_argument("--device", help="cpu, cuda, cuda:1 …; default: a GPU if there is one")
    parser.add_argument("--weights", choices=("bf16", "int8", "int6"), help="format of the weights in memory")
    sentences = parser.add_mutually_exclusive_group()
    sentences.add_argument("--texts", type=Path, help="a file with other sentences, one per line")
    sentences.add_argument("--set", type=Path, metavar="FOLDER", help=f"a test set with clips: {SET_FILE} lists")
    parser.add_argument("--first", type=int, metavar="N", help="only the first N sentences")
    parser.add_argument("--recogniser", help="for word errors, e.g. faster-whisper:base; default: STUDIO_TRANSCRIBER")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the measurements to FILE")
    return parser


def _path(model: str) -> str:
    """The folder of a model of the catalogue that is on this machine; other names stay as they are."""
    return model if in_catalogue(model) is None or is_hub_id(model) else resolve(model)


def _published(folder: Path) -> list[str]:
    """Every value of a Qwen3-TTS folder beside the one that this program was written for: no published weights were
    there to try. Empty for other models."""
    tree = _tree(folder / "config.json")
    kind = [tree.get(key) for key in _KIND]
    known = next((model for model in CATALOGUE if [model.tree.get(key) for key in _KIND] == kind), None)
    if kind[0] != _QWEN or known is None:
        return []
    expected = {"config.json": known.tree | {"tensors": _TENSORS[str(kind[1]), kind[2] == "base"]}, **_FILES}
    rows, differing = [], 0
    for name, values in expected.items():
        found = _tree(folder / name)
        if name == "config.json":
            found = {**found, "tensors": _tensor_count(folder / "model.safetensors")}
        for key, value in _leaves(values):
            actual = _value_at(found, key)
            differing += actual != value
            note = "as expected" if actual == value else f"DIFFERS: expected {value}"
            rows.append(f"{f'{name}: {key}':<72}{actual!s:<28}{note}")
    missing = sorted(name for name in known.files.needed if not (folder / name).is_file())
    end = f"{len(rows) - differing} of {len(rows)} values are as expected for {known.title}"
    return [*rows, *(f"{name} is MISSING" for name in missing), end, ""]


def _tree(path: Path) -> dict[str, Any]:
    """A file of JSON; empty if it cannot be read, as loading the model reports."""
    try:
        with open_regular(path) as file:
            tree = json.loads(file.read(2**20))
    except (OSError, ValueError, RecursionError):
        return {}
    return tree if isinstance(tree, dict) else {}


def _tensor_count(path: Path) -> int | None:
    try:
        with safe_open(path, "numpy") as file:
            return len(file.keys())
    except (OSError, SafetensorError):
        return None


def _leaves(tree: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in tree.items():
        if isinstance(value, Mapping) and value:
            yield from _leaves(value, f"{prefix}{key}.")
        else:
            yield prefix + key, value


def _value_at(tree: object, key: str) -> object:
    """The value at a path of keys, without the list that some conversions put around it; None if it is missing."""
    for name in key.split("."):
        tree = tree.get(name) if isinstance(tree, Mapping) else None
    return tree[0] if isinstance(tree, list) and len(tree) == 1 else tree


def _rows(options: argparse.Namespace) -> Sequence[Row]:
    if options.json and not options.json.absolute().parent.is_dir():
        raise ValueError(f"--json is {options.json}; {options.json.parent} is not a folder")
    if options.first is not None and options.first < 1:
        raise ValueError(f"--first is {options.first}; it must be at least 1")
    source = options.set / SET_FILE if options.set else options.texts
    if options.set and not source.is_file():
        raise ValueError(f"{options.set} is not a test set: it has no {SET_FILE}, as Seed-TTS-eval's sets have")
    lines = text_of(source).splitlines() if source else SENTENCES
    numbered = [(number, line.strip()) for number, line in enumerate(lines, 1) if line.strip()][: options.first]
    if not numbered:
        raise ValueError(f"{source} has no sentences")
    if options.set is None:
        return [Row(line) for _, line in numbered]
    return [_row(options.set, number, line) for number, line in numbered]


def _row(folder: Path, number: int, line: str) -> Row:
    fields = [field.strip() for field in line.split("|")]
    if len(fields) not in (4, 5) or not all(fields[1:4]):
        raise ValueError(f"{folder / SET_FILE}, line {number}: expected name|words of the clip|file of the clip|text")
    clip = folder / fields[2]
    if not clip.is_file():
        raise ValueError(f"{folder / SET_FILE}, line {number}: {clip} is not a file")
    try:
        sound = read_clip(clip.read_bytes())
    except (EngineError, *REFUSALS, OSError, ValueError) as error:  # now, not after hours
        raise ValueError(f"{folder / SET_FILE}, line {number}: {clip}: {error}") from error
    return Row(fields[3], (sound.pcm, sound.sample_rate, fields[1]))


def _recogniser(name: str | None) -> Recogniser | None:
    name = name or Settings.load().transcriber
    if not name:
        return None
    check_name(name)
    recogniser = Recogniser(name.partition(":")[2])
    recogniser.load()  # now, as a model that is not here would be noticed only after hours
    return recogniser


def _figures(report: ModelReport, rows: Sequence[Row], recogniser: Recogniser | None) -> dict[str, Any]:
    info, takes = report.info, report.takes
    seconds = sum(take.seconds for take in takes)
    figures: dict[str, Any] = {
        "model": info.model,
        "family": info.family,
        "licence": info.card.licence,
        "languages": list(info.card.languages),
        "parameters": info.parameters,
        "device": info.device,
        "dtype": info.dtype,
        "frame_path": info.frame_path,
        "load_seconds": round(report.load_seconds, 2),
        "peak_memory_bytes": report.peak_memory,
        "takes": len(takes),
        "seconds": round(seconds, 2),
        "early_ends": sum(take.end == "early" for take in takes),
        "missing_ends": sum(take.end == "missing" for take in takes),
        "level_db": _finite(np.median([take.level_db for take in takes])),
        "longest_silence_seconds": round(max(take.longest_silence for take in takes), 2),
        "real_time_factor": round(sum(take.real_time_factor * take.seconds for take in takes) / max(seconds, 1e-9), 3),
        "word_error": None,
        "likeness": None,
        "by_weights": {weights: asdict(agreement) for weights, agreement in report.by_weights.items()},
        "fish_speech": None if report.fish_speech is None else asdict(report.fish_speech),
        "greedy_frames_kept": report.greedy_frames_kept,
        "sentences": [_sentence(take) for take in takes],
    }
    if recogniser is not None:
        errors = words = 0
        for take, row in zip(takes, figures["sentences"], strict=True):
            row["heard"] = _transcript(take, info.sample_rate, recogniser)
            expected = _words(take.text)
            row["word_errors"] = Levenshtein.distance(expected, _words(row["heard"]))
            errors, words = errors + row["word_errors"], words + len(expected)
        figures["word_error"] = round(errors / max(1, words), 4)
    if rows[0].clip is not None and (prints := Voiceprints(ASSETS / "fry" / "voiceprint.npz")).is_there:
        for take, row, figures_of_row in zip(takes, rows, figures["sentences"], strict=True):
            figures_of_row["likeness"] = _likeness(prints, take, row, info.sample_rate)
        known = [row["likeness"] for row in figures["sentences"] if row["likeness"] is not None]
        figures["likeness"] = round(sum(known) / len(known), 3) if known else None
    return figures


def _likeness(prints: Voiceprints, take: CheckedTake, row: Row, rate: int) -> float | None:
    """The cosine of the take's and the clip's voiceprints; None if one has less than a second of speech."""
    assert row.clip is not None
    spoken, given = prints.spans(take.pcm, rate), prints.spans(*row.clip[:2])
    return round(float(mean_print(spoken) @ mean_print(given)), 3) if len(spoken) and len(given) else None


def _sentence(take: CheckedTake) -> dict[str, Any]:
    return {
        "text": take.text,
        "seconds": round(take.seconds, 2),
        "end": take.end,
        "level_db": _finite(take.level_db),
        "longest_silence_seconds": round(take.longest_silence, 2),
        "real_time_factor": round(take.real_time_factor, 3),
    }


def _transcript(take: CheckedTake, rate: int, recogniser: Recogniser) -> str:
    return recogniser.recognise(resampled(take.pcm, rate, RATE), "").text


def _words(text: str) -> list[str]:
    """Words in small letters; characters, where a language writes no spaces."""
    folded = text.casefold().replace("’", "'")
    return [folded[start:end] for start, end in words_in(folded)]


def _finite(value: float) -> float | None:
    """A rounded value; None for infinity, the level of silence, which JSON cannot express."""
    return round(float(value), 1) if np.isfinite(value) else None


def _lines(figures: dict[str, Any]) -> list[str]:
    rows = {name: value for name, value in figures.items() if name not in ("by_weights", "fish_speech", "sentences")}
    lines = [f"{name.replace('_', ' '):<26}{_as_text(value)}" for name, value in rows.items()]
    compared = dict(figures["by_weights"])
    if figures["fish_speech"]:
        compared["fish-speech"] = figures["fish_speech"]
    if compared:
        lines += ["", f"{'compared with':<14}{'semantic kept':>14}{'KL':>10}{'residual kept':>15}{'KL':>10}"]
    for name, row in compared.items():
        semantic = f"{row['semantic_kept']:>14.4f}{row['semantic_kl']:>10.5f}"
        lines.append(f"{name:<14}{semantic}{row['residual_kept']:>15.4f}{row['residual_kl']:>10.5f}")
    lines += ["", f"{'seconds':>8}{'end':>9}{'dB':>8}{'silence':>9}{'RTF':>7}  sentence"]
    for row in figures["sentences"]:
        level = "–" if row["level_db"] is None else row["level_db"]
        start = f"{row['seconds']:>8}{row['end']:>9}{level:>8}{row['longest_silence_seconds']:>9}"
        lines.append(f"{start}{row['real_time_factor']:>7}  {row['text']}")
    return lines


def _card(figures: dict[str, Any]) -> list[str]:
    """The figures of a test set as a Markdown table, as docs/cards.md collects them."""
    memory = figures["peak_memory_bytes"]
    row = {
        "model": figures["model"],
        "device": figures["device"],
        "weights": figures["dtype"],
        "sentences": figures["takes"],
        "words wrong": "–" if figures["word_error"] is None else f"{figures['word_error']:.1%}",
        "likeness": _as_text(figures["likeness"]),
        "real-time factor": figures["real_time_factor"],
        "memory": "–" if memory is None else f"{memory / 2**30:.1f} GiB",
    }
    return ["", *("| " + " | ".join(map(str, cells)) + " |" for cells in (row, ["---"] * len(row), row.values()))]


def _as_text(value: object) -> str:
    if value is None or value == "" or value == []:
        return "–"
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return f"{value:,}" if isinstance(value, int) else str(value)
