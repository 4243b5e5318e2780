"""fish-voice-studio check, in its short form on the bundled model, and what it cannot check."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest

from engine import CheckpointError, EngineConfig, ModelReport, check_model, model_check
from launch import check_command
from launch import main as run_command
from launch.check_command import SENTENCES, main
from studio.models.catalogue import BUNDLED_FOLDER
from studio.voices.recogniser import Transcription
from tests import upstream
from tests.studio.sounds import tone, wav
from tests.tiny_qwen import write_qwen

FRY = str(Path(__file__).resolve().parents[2] / "assets/fry")


SHORT = 2
REPORTS: dict[tuple[EngineConfig, tuple[str, ...]], ModelReport] = {}


@pytest.fixture(autouse=True)
def _checked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Run the same check of the same model only once."""
    assert upstream.DualARTransformer  # with which fish-speech can be imported

    def checked(
        config: EngineConfig, texts: Sequence[str], report: Callable[[str], None], get_clip: Any
    ) -> ModelReport:
        if get_clip is not None:
            return check_model(config, texts, report, get_clip)
        key = config, tuple(texts)
        if key not in REPORTS:
            REPORTS[key] = check_model(config, texts, report)
        return REPORTS[key]

    monkeypatch.setattr(check_command, "check_model", checked)


class Listener:
    """Hears every sentence but for its last word."""

    def __init__(self) -> None:
        self._texts = iter(SENTENCES)

    def recognise(self, pcm: np.ndarray, language: str) -> Transcription:
        assert pcm.dtype == np.float32 and len(pcm) > 8_000
        return Transcription(" ".join(next(self._texts).split()[:-1]), "en")


def test_the_bundled_model_is_checked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(check_command, "_recogniser", lambda name: Listener())
    file = tmp_path / "figures.json"
    assert main([FRY, "--first", "2", "--device", "cpu", "--json", str(file)]) == 0
    figures, table = json.loads(file.read_text()), capsys.readouterr().out
    assert figures["family"] == "S2" and figures["languages"] == ["en"] and figures["parameters"] == 24_429_793
    assert figures["takes"] == SHORT == len(figures["sentences"])
    assert figures["early_ends"] == figures["missing_ends"] == 0
    assert -40 < figures["level_db"] < -10 and figures["longest_silence_seconds"] < 1
    words = sum(len(text.split()) for text in SENTENCES[:SHORT])
    assert figures["word_error"] == round(SHORT / words, 4)
    assert figures["by_weights"]["int8"]["semantic_kl"] < 0.001
    assert figures["fish_speech"]["semantic_kept"] == 1.0 and figures["fish_speech"]["residual_kl"] < 1e-5
    assert figures["greedy_frames_kept"] > 0.9
    assert SENTENCES[0] in table and "int6" in table and "fish-speech" in table


def test_every_value_of_a_qwen_folder_is_shown_beside_the_published_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def unloadable(*given: object) -> None:
        raise CheckpointError("it does not fit")

    monkeypatch.setattr(check_command, "check_model", unloadable)
    folder = write_qwen(tmp_path / "qwen")
    tree = json.loads((folder / "config.json").read_text())
    tree["talker_config"] |= {"codec_pad_id": [2148], "num_code_groups": 16}
    (folder / "config.json").write_text(json.dumps(tree))
    (folder / "merges.txt").unlink()
    assert main([str(folder)]) == 1, "the values come first, whatever happens then"
    lines = capsys.readouterr().out.splitlines()
    (pad,) = (line for line in lines if line.startswith("config.json: talker_config.codec_pad_id "))
    assert pad.split()[2:] == ["2148", "as", "expected"]
    (size,) = (line for line in lines if line.startswith("config.json: talker_config.hidden_size "))
    assert size.split(maxsplit=2)[2].split() == ["64", "DIFFERS:", "expected", "2048"]
    assert any("speech_tokenizer/config.json: decoder_config.sliding_window" in line for line in lines)
    assert any(line.startswith("config.json: tensors") and "DIFFERS: expected 480" in line for line in lines)
    assert "merges.txt is MISSING" in lines and "values are as expected for Qwen3-TTS 1.7B Base" in lines[-2]


def test_a_test_sets_sentences_are_spoken_in_the_voices_of_its_clips(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(check_command, "_recogniser", lambda name: Listener())
    monkeypatch.setattr(model_check, "COMPARED_FRAMES", 5)
    monkeypatch.setattr(check_command, "read_clip", read := Mock(wraps=check_command.read_clip))
    names = ["Greta", "Boris"]
    rows = []
    for name, text in zip(names, SENTENCES, strict=False):
        clip = Path(FRY, "voices", f"{name}.wav")
        (tmp_path / clip.name).write_bytes(clip.read_bytes())
        rows.append(f"{name}|{clip.with_suffix('.txt').read_text().strip()}|{clip.name}|{text}")
    rows[1] += "|recordings/Boris.wav"  # some lists have a recording of the text too
    (tmp_path / "meta.lst").write_text("\n".join(rows) + "\n")
    file = tmp_path / "figures.json"
    assert main([FRY, "--set", str(tmp_path), "--device", "cpu", "--json", str(file)]) == 0
    figures, table = json.loads(file.read_text()), capsys.readouterr().out.splitlines()
    assert [row["text"] for row in figures["sentences"]] == list(SENTENCES[:2]) and read.call_count == 2
    assert all(row["likeness"] > 0.6 for row in figures["sentences"])  # two people have 0.56 on average
    assert table[-3].startswith("| model | device |") and f"| {figures['likeness']} |" in table[-1]
    (tmp_path / "meta.lst").write_text(f"{rows[0]}\nBoris|Words.|nowhere.wav|Text.\n")
    assert main([FRY, "--set", str(tmp_path), "--device", "cpu"]) == 1
    assert capsys.readouterr().err.endswith("meta.lst, line 2: " + str(tmp_path / "nowhere.wav") + " is not a file\n")
    (tmp_path / "short.wav").write_bytes(wav(tone(0.5)))
    (tmp_path / "meta.lst").write_text(f"{rows[0]}\nBoris|Words.|short.wav|Text.\n")
    assert main([FRY, "--set", str(tmp_path), "--device", "cpu"]) == 1  # before anything is generated
    err = capsys.readouterr().err
    assert "generating" not in err and "short.wav: the clip is 0.50 s long; at least 1 s are needed" in err
    (tmp_path / "meta.lst").write_text("Greta|Words.|Greta.wav\n")
    assert main([FRY, "--set", str(tmp_path), "--device", "cpu"]) == 1
    assert "line 1: expected name|words of the clip|file of the clip|text" in capsys.readouterr().err


def test_failed_check_is_reported_in_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    empty = tmp_path / "texts.txt"
    empty.write_text("\n")
    binary = tmp_path / "binary.txt"
    binary.write_bytes(b"\xff\xfe\x00")
    for arguments in (
        [FRY, "--texts", str(binary)],
        ["~nobody-here/x"],
        [str(tmp_path)],
        [FRY, "--texts", str(empty)],
        [FRY, "--recogniser", "ears"],
        [FRY, "--recogniser", "faster-whisper:smal"],
        ["no/such/model"],
    ):
        assert main(arguments) == 1
        captured = capsys.readouterr()
        assert captured.out == "" and captured.err.strip().splitlines()[-1].startswith("studio: ")


def test_unwritable_measurements_are_still_printed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([FRY, "--first", "2", "--device", "cpu", "--json", str(tmp_path / "missing" / "figures.json")]) == 1
    assert "missing is not a folder" in capsys.readouterr().err  # before anything is generated
    assert main([FRY, "--first", "2", "--device", "cpu", "--json", str(tmp_path)]) == 1
    captured = capsys.readouterr()
    assert SENTENCES[0] in captured.out and "were not written" in captured.err.splitlines()[-1]


def test_measurements_are_printed_even_if_the_recogniser_fails(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    class Deaf:
        def recognise(self, pcm: np.ndarray, language: str) -> Transcription:
            raise KeyError("id")

    monkeypatch.setattr(check_command, "_recogniser", lambda name: Deaf())
    assert main([FRY, "--first", "2", "--device", "cpu", "--recogniser", "faster-whisper:base"]) == 1
    captured = capsys.readouterr()
    assert SENTENCES[0] in captured.out
    assert "not counted, since faster-whisper:base failed" in captured.err.splitlines()[-1]


def test_catalogue_name_is_resolved_and_an_interrupt_prints_no_traceback(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(config: EngineConfig, *given: object) -> ModelReport:
        assert config.model == BUNDLED_FOLDER
        raise KeyboardInterrupt

    monkeypatch.setattr(check_command, "check_model", interrupted)
    monkeypatch.setattr("sys.argv", ["fish-voice-studio", "check", "bundled"])
    assert run_command() == 130
    assert capsys.readouterr().err == "\nstudio: interrupted\n"
