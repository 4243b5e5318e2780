"""File names are valid on every system, whatever the name of the project, chapter or take."""

from __future__ import annotations

import io
import unicodedata
import zipfile
from collections.abc import Callable
from urllib.parse import unquote

import pytest

from studio.takes.take_export import file_name
from studio.unicode_text import LONGEST_FILE_NAME, safe_file_name
from tests.longform.test_projects import PROJECTS, create_project, until
from tests.studio.conftest import Steered
from tests.studio.library.worker import stored_take

Steer = Callable[..., Steered]
HOSTILE = '../..\\\u202egpj.exe\u2066: "C:\\*?<|>\u200b\u2028 '


@pytest.mark.parametrize(
    ("stem", "name"),
    [
        ("A plain title", "A plain title.wav"),
        ("../../etc/passwd", "etc passwd.wav"),
        ("..\\..\\autoexec", "autoexec.wav"),
        ("invoice\u202egpj.exe", "invoicegpj.exe.wav"),
        ("soft\u00adhyphen, \ufeffmark", "softhyphen, mark.wav"),
        ('<Tom> & "Jerry": who|what?*', "Tom & Jerry who what.wav"),
        ("two\r\nlines\tand\u2028more\x00", "two lines and more.wav"),
        ("private \ue000 and half \ud800", "private and half.wav"),
        (".hidden. ", "hidden.wav"),
        ("CON", "_CON.wav"),
        ("nul.txt", "_nul.txt.wav"),
        ("Console", "Console.wav"),
        ("日本語の本", "日本語の本.wav"),
        ("כותר עברי", "כותר עברי.wav"),
        ("Grüße, wie geht’s? – gut!", "Grüße, wie geht’s – gut!.wav"),
        ("", "untitled.wav"),
        (" ./\\. \u202e", "untitled.wav"),
    ],
)
def test_file_names_are_valid_on_every_system(stem: str, name: str) -> None:
    assert safe_file_name(stem, "wav") == name


@pytest.mark.parametrize("sign", ["x", "é", "本", "😀", ". "])
def test_a_long_name_is_cut_between_characters_and_keeps_its_extension(sign: str) -> None:
    name = safe_file_name(f"a{sign * 100_000}", "opus")
    assert len(name.encode()) <= LONGEST_FILE_NAME and name.endswith(".opus")
    assert set(name.removesuffix(".opus")) <= {"a", sign}


def test_the_files_of_a_project_have_safe_names(steered: Steer) -> None:
    served, _ = steered()
    items = [{"input": "One.", "chapter": HOSTILE}, {"input": "Two.", "chapter": "本" * 90}]
    project = create_project(served, items=items, title=f"Mein Büchlein {HOSTILE}", start=True)
    until(served, project, "done")
    with served.client() as client:
        for path in ("audio", "audio?format=m4b", "audio?format=mp3", "chapters", "zip", "subtitles"):
            header = client.get(f"{PROJECTS}/{project['id']}/{path}").headers["content-disposition"]
            plain, encoded = header.removeprefix('attachment; filename="').split("\"; filename*=UTF-8''")
            assert plain.startswith("Mein B_chlein .. .. gpj.exe C") and plain.isascii()
            assert unquote(encoded).startswith("Mein Büchlein .. .. gpj.exe C")
            for name in (plain, unquote(encoded)):
                assert not set(name) & set('/\\<>:"|?*')
                assert not {unicodedata.category(sign) for sign in name} & {"Cc", "Cf", "Zl", "Zp"}
        archive = zipfile.ZipFile(io.BytesIO(client.get(f"{PROJECTS}/{project['id']}/chapters").content))
    first, second = archive.namelist()
    assert first == "01 gpj.exe C.mp3"
    assert second.startswith("02 本本") and second.endswith("本.mp3") and len(second.encode()) < 255


def test_take_of_many_voices_has_a_valid_file_name() -> None:
    take = stored_take("req_1", "Hello \u202ethere", ", ".join(f"somebody-{number}" for number in range(60)))
    name = file_name(take, "flac")
    assert len(name.encode()) <= LONGEST_FILE_NAME
    assert name.endswith("_hello-there_seed-1.flac") and "\u202e" not in name
