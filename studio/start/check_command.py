"""fish-voice-studio check MODEL: loads a model, generates sentences, and prints measurements as a table and as JSON."""

from __future__ import annotations

import argparse
import io
import json
import re
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from rapidfuzz.distance import Levenshtein

from engine import CheckedTake, EngineConfig, EngineError, ModelReport, check_model, is_hub_id
from studio.audio.resampler import Resampler
from studio.errors import StudioError
from studio.library.audio_files import write_whole
from studio.models.catalogue import in_catalogue
from studio.models.model_choice import resolve
from studio.settings import Settings
from studio.unicode_text import text_of
from studio.voices.hearing.recogniser import RATE, FasterWhisper, Recogniser, check_name

SENTENCES = Path(__file__).with_name("check-sentences.txt").read_text("utf-8").splitlines()
SHORT = 2
"""Number of sentences with --short."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Check a model. Returns 0 on success, 1 after an error (printed on standard error), 2 for wrong arguments."""
    options = _parser().parse_args(arguments)
    try:
        recogniser = _recogniser(options.recogniser)
        texts = _texts(options)
        config = EngineConfig(_path(options.model), options.device, max_rows=1, weights=options.weights)
        report = check_model(config, texts, lambda line: print(line, file=sys.stderr))
    except (EngineError, StudioError, OSError, RuntimeError, ValueError) as error:
        print(f"studio: {error}", file=sys.stderr)
        return 1
    problems = []
    try:
        figures = _figures(report, recogniser)
    except (ImportError, LookupError, MemoryError, OSError, RuntimeError, ValueError) as error:  # of a library
        figures = _figures(report, None)
        name = options.recogniser or Settings.load().transcriber
        problems.append(f"word errors were not counted, since {name} failed: {error}")
    for line in _lines(figures):
        print(line)
    if options.json:
        text = json.dumps(figures, ensure_ascii=False, indent=1) + "\n"
        try:
            write_whole(options.json, io.BytesIO(text.encode()), is_private=False)
        except OSError as error:
            problems.append(f"the measurements were not written: {error}")
    for problem in problems:
        print(f"studio: {problem}", file=sys.stderr)
    return 1 if problems else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="fish-voice-studio check", description="Tests and measures a model.")
    parser.add_argument("model", help="a folder, a GGUF file, a model.pth, a hub id, or a name that “models” lists")
    parser.add_argument("--device", help="cpu, cuda, cuda:1 …; default: a GPU if there is one")
    parser.add_argument("--weights", choices=("bf16", "int8", "int6"), help="format of the weights in memory")
    parser.add_argument("--texts", type=Path, help="a file with other sentences, one per line")
    parser.add_argument("--short", action="store_true", help=f"only the first {SHORT} sentences")
    parser.add_argument("--recogniser", help="for word errors, e.g. faster-whisper:base; default: STUDIO_TRANSCRIBER")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the measurements to FILE")
    return parser


def _path(model: str) -> str:
    """The folder of a model of the catalogue that is on this machine; other names stay as they are."""
    return model if in_catalogue(model) is None or is_hub_id(model) else resolve(model)


def _texts(options: argparse.Namespace) -> Sequence[str]:
    lines = text_of(options.texts).splitlines() if options.texts else SENTENCES
    texts = [line.strip() for line in lines if line.strip()]
    if not texts:
        raise ValueError(f"{options.texts} has no sentences")
    return texts[:SHORT] if options.short else texts


def _recogniser(name: str | None) -> Recogniser | None:
    name = name or Settings.load().transcriber
    if not name:
        return None
    check_name(name)
    return FasterWhisper(name.partition(":")[2])


def _figures(report: ModelReport, recogniser: Recogniser | None) -> dict[str, Any]:
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
    return figures


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
    resampler = Resampler(rate, RATE)
    return recogniser.recognise(np.concatenate([resampler.write(take.pcm), resampler.finish()]), "").text


def _words(text: str) -> list[str]:
    return re.findall(r"[\w']+", text.lower().replace("’", "'"))


def _finite(value: float) -> float | None:
    """A rounded value; None for infinity, the level of silence, which JSON cannot express."""
    return round(float(value), 1) if np.isfinite(value) else None


def _lines(figures: dict[str, Any]) -> list[str]:
    """The table."""
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


def _as_text(value: object) -> str:
    if value is None or value == "" or value == []:
        return "–"
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return f"{value:,}" if isinstance(value, int) else str(value)
