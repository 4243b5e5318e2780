"""The page in a real Firefox, driven over WebDriver BiDi: type, hear, record, reload, go back. Expected to fail where
there is none."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from websockets.sync.client import ClientConnection, connect

from tests.browser.screen import PATIENCE_MS
from tests.studio.server import Served
from tests.waiting import wait_until

CONTROL, ENTER = "\ue009", "\ue007"
PREFERENCES = {
    "media.navigator.streams.fake": True,  # a microphone that records tones
    "media.navigator.permission.disabled": True,
    "media.autoplay.default": 0,
    "datareporting.policy.dataSubmissionEnabled": False,
    "browser.shell.checkDefaultBrowser": False,
    "app.update.disabledForTesting": True,
}
BUTTON = "[...document.querySelectorAll('button')].find((one) => one.textContent === {} && one.checkVisibility())"

HAS_SOUND = """new Promise((tell) => {
  const context = new AudioContext();
  context.onstatechange = () => tell(context.state === 'running');
  setTimeout(tell, 2000, false);
})"""


class Firefox:
    """One tab of a Firefox."""

    def __init__(self, socket: ClientConnection) -> None:
        self._socket = socket
        self._sent = 0
        self._send("session.new", capabilities={})
        self._tab = self._send("browsingContext.getTree")["contexts"][0]["context"]

    def _send(self, method: str, **params: Any) -> Any:
        self._sent += 1
        self._socket.send(json.dumps({"id": self._sent, "method": method, "params": params}))
        while (answer := json.loads(self._socket.recv(PATIENCE_MS / 1000))).get("id") != self._sent:
            pass  # an event
        assert answer["type"] == "success", answer
        return answer["result"]

    def open(self, url: str) -> None:
        self._send("browsingContext.navigate", context=self._tab, url=url, wait="complete")

    def reload(self) -> None:
        self._send("browsingContext.reload", context=self._tab, wait="complete")

    def back(self) -> None:
        self._send("browsingContext.traverseHistory", context=self._tab, delta=-1)

    def see(self, expression: str) -> Any:
        """The value of an expression on the page: a string, a number or a boolean; None for anything else."""
        where = {"context": self._tab}
        told = self._send(
            "script.evaluate", expression=expression, target=where, awaitPromise=True, userActivation=True
        )
        assert told["type"] == "success", told
        return told["result"].get("value")

    def until(self, expression: str) -> None:
        """Wait until an expression is true on the page."""
        wait_until(lambda value: value is True, lambda: self.see(f"Boolean({expression})"))

    def press(self, keys: str, held: str = "") -> None:
        """Press keys one after the other, while another one is held."""
        strokes = [{"type": kind, "value": key} for key in keys for kind in ("keyDown", "keyUp")]
        if held:
            strokes = [{"type": "keyDown", "value": held}, *strokes, {"type": "keyUp", "value": held}]
        keyboard = {"type": "key", "id": "keyboard", "actions": strokes}
        self._send("input.performActions", context=self._tab, actions=[keyboard])

    def click(self, name: str) -> None:
        button = BUTTON.format(json.dumps(name))
        self.until(button)
        self.see(f"{button}.click()")


@pytest.fixture
def firefox(tmp_path: Path) -> Iterator[Firefox]:
    program = shutil.which("firefox") or shutil.which("firefox-esr")
    if not program:
        pytest.xfail("there is no Firefox on PATH: the page is tested in Chromium only")
    lines = [f"user_pref({json.dumps(name)}, {json.dumps(value)});" for name, value in PREFERENCES.items()]
    (tmp_path / "user.js").write_text("\n".join(lines))
    command = [program, "--headless", "--remote-debugging-port=0", "--profile", str(tmp_path)]
    log = tmp_path / "log"
    with log.open("w") as file, subprocess.Popen(command, stderr=file, stdout=file) as process:
        try:
            told = r"listening on (ws://\S+)\n"
            [listening] = wait_until(
                bool, lambda: re.findall(told, log.read_text()) or [""] * (process.poll() is not None)
            )
            assert listening, f"Firefox ended before it listened: {log.read_text()}"
            with connect(f"{listening}/session", max_size=None) as socket:
                yield Firefox(socket)
        finally:
            process.kill()


def test_words_are_heard_recorded_kept_by_a_reload_and_saved_after_going_back(
    steered: Callable[..., Served], firefox: Firefox
) -> None:
    studio = steered()
    with studio.client() as client:
        project = client.post("/v1/projects", json={"input": "One.", "title": "A book"}).json()["id"]
        saved = lambda: client.get(f"/v1/projects/{project}/parts").json()["data"][0]["text"]  # noqa: E731

        firefox.open(studio.url)
        firefox.until("document.body.dataset.studio === 'ready'")
        firefox.press("a", held=CONTROL)
        firefox.press("Two words.")
        firefox.press(ENTER, held=CONTROL)
        firefox.until("document.querySelector('#takes li')")
        firefox.see("document.querySelector('#source input[value=clip]').click()")
        if firefox.see(HAS_SOUND):  # otherwise Firefox, unlike Chromium, neither plays nor records
            firefox.until("studio.heard.rendered > 0 && document.querySelector('#dock').dataset.state === 'over'")
            firefox.click("Record")
            firefox.until("/0:0[3-9]/.test(document.querySelector('#own-clip .recording-time').textContent)")
            firefox.click("Stop recording")
            firefox.until("document.querySelector('#own-clip').textContent.includes('out of 100')")
        else:
            firefox.until("document.querySelector('#dock [data-part=status]').textContent.includes('no sound')")
            assert firefox.see("document.querySelector('#dock').dataset.state") == "paused"
            firefox.click("Record")
            firefox.until("document.querySelector('#own-clip').textContent.includes('only with a sound device')")
            firefox.until("document.querySelector('#own-clip .recording').dataset.state === 'idle'")

        firefox.see("document.querySelector('#script textarea').select()")
        firefox.press("Typed last")
        firefox.reload()
        firefox.until("document.querySelector('#script textarea')?.value === 'Typed last'")

        firefox.open(f"{studio.url}/#projects/{project}")
        part = "document.querySelector('.long-parts textarea')"
        firefox.until(f"{part}?.value")
        firefox.see(f"{part}.focus(), {part}.setSelectionRange(99, 99)")
        firefox.press(" Two.")
        firefox.open(f"{studio.url}/health")
        firefox.back()
        firefox.until(f"{part}?.value === 'One. Two.'")
        wait_until("One. Two.".__eq__, saved)
