"""Every program that the page offers runs and reproduces the take that it was copied from."""

from __future__ import annotations

import shutil
import subprocess
import sys
import wave
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.browser.screen import Screen, go
from tests.studio.server import Served
from tests.studio.sounds import tone, wav

Open = Callable[..., Screen]
HARD_TO_QUOTE = 'It\'s "quoted", 100% \\ and $HOME `id` — [é] 日本\nnew line'


def samples(file: Path) -> bytes:
    with wave.open(str(file)) as sound:
        return sound.readframes(sound.getnframes())


def a_take(screen: Screen, folder: Path) -> bytes:
    """Speak the page's script, save the take and return its samples."""
    screen.cut_after(2)
    screen.speak.click()
    expect(screen.takes).to_have_count(1)
    with screen.page.expect_download() as saving:
        screen.takes.get_by_text("Download", exact=True).click()
        screen.page.get_by_role("menuitem", name="WAV").click()
    saving.value.save_as(folder / "page.wav")
    return samples(folder / "page.wav")


def program(screen: Screen, kind: str) -> str:
    screen.page.get_by_role("tab", name=kind).click()
    return screen.page.locator("#code pre").inner_text()


def run(text: str, kind: str, folder: Path) -> bytes:
    """Run a program in a folder and return the samples of the file that it made."""
    if kind == "curl":
        subprocess.run(["bash", "-c", text], cwd=folder, check=True, capture_output=True, timeout=120)
        return samples(folder / "take.wav")
    (folder / "program.py").write_text(text, "utf-8")
    command = [sys.executable, "program.py"]
    done = subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True, timeout=120)
    return samples(folder / "take.wav" if "SDK" in kind else Path(done.stdout.split(" {")[0].split("\n")[-1]))


@pytest.mark.parametrize("own_clip", [False, True], ids=["bundled voice", "own clip"])
def test_code_examples_of_a_take_generate_the_same_take(
    served: Served, open_page: Open, tmp_path: Path, own_clip: bool
) -> None:
    if not shutil.which("curl"):
        pytest.fail("this machine has no curl")
    screen = open_page(served).ready()
    screen.script.fill(HARD_TO_QUOTE)
    if own_clip:
        (tmp_path / "clip.wav").write_bytes(wav(tone(1.5)))
        screen.bring_clip(tmp_path / "clip.wav")
        screen.page.get_by_label("Transcript of the clip").fill("It's a tone.")
    spoken = a_take(screen, tmp_path)
    screen.takes.get_by_role("button", name="Code").click()
    for kind in ("curl", "Python, OpenAI SDK", "gradio_client"):
        folder = tmp_path / kind
        folder.mkdir()
        if own_clip:
            shutil.copy(tmp_path / "clip.wav", folder)
        assert run(program(screen, kind), kind, folder) == spoken, kind
    if not own_clip:
        kind, half = "Python, ElevenLabs SDK", len(spoken) // 2
        assert run(program(screen, kind), kind, tmp_path)[:half] == spoken[:half], "it has no limit of frames"
        text = program(screen, "JavaScript")
        sound = screen.page.evaluate(
            f"async () => {{ {text}\n return [...new Uint8Array(await take.arrayBuffer())]; }}"
        )
        assert bytes(sound)[44:] == spoken


def test_current_request_is_shown_as_code_and_copied(served: Served, open_page: Open) -> None:
    screen = open_page(served, permissions=["clipboard-read", "clipboard-write"]).ready()
    screen.script.fill("Copy me")
    go(screen.page, "API")
    screen.page.get_by_role("button", name="Show as code").click()
    dialog = screen.page.get_by_role("dialog")
    expect(dialog).to_contain_text("Without a seed")
    expect(dialog.locator("pre")).to_contain_text('"input": "Copy me"')
    dialog.get_by_role("button", name="Copy").click()
    expect(dialog.get_by_role("button", name="Copied")).to_be_visible()
    assert screen.page.evaluate("navigator.clipboard.readText()") == dialog.locator("pre").inner_text()
    screen.page.keyboard.press("Escape")
    expect(dialog).to_be_hidden()
