"""Imports of a start: none shared by the engine's start and the web layer, no more than needed, and no proxy used."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from studio import ROOT

ENGINE = """
app.Engine.start(app.EngineConfig({!r}), lambda doing, fraction: None).stop()
import engine
for module in walk_packages(engine.__path__, "engine."):  # a GPU's, too
    if find_spec("triton"):
        __import__(module.name)
"""
ALONE = "app.create_app(app.Settings(page=False))"
SPEECH_PROCESS = "import fleet.frontends.speech_process_main, fleet.frontends.speech_processes"
PAGE = "import studio.server; studio.server.config_of(app.create_app(app.Settings()), app.Settings())"


PROXIES = {
    "ALL_PROXY": "socks5://127.0.0.1:9/",
    "HTTPS_PROXY": "socks://127.0.0.1:7890/",
    "NO_PROXY": "localhost,::1/128",
    "SSL_CERT_FILE": "/nowhere/ca.pem",
    "GRADIO_TEMP_DIR": "/dev/null",  # a folder that cannot be made, as /tmp/gradio of another user
    "WEB_CONCURRENCY": "",
}
"""Settings that httpx, Gradio or uvicorn does not accept, each by itself; desktops set the second and third."""


def modules(*steps: str) -> list[set[str]]:
    """Third-party modules that a program has imported after each of its steps, since importing `app`."""
    program = "import json, sys\nfrom importlib.util import find_spec\nfrom pkgutil import walk_packages\n"
    program += "from launch import startup as app\nbefore = set(sys.modules)\n"
    program += "\n".join(f"{step}\nprint(json.dumps(sorted(set(sys.modules) - before)))" for step in steps)
    environment = {name: value for name, value in os.environ.items() if "proxy" not in name.lower()} | PROXIES
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return [
        {name for name in json.loads(line) if _is_foreign(name)} for line in done.stdout.splitlines()[-len(steps) :]
    ]


def _is_foreign(name: str) -> bool:
    top = name.partition(".")[0]
    return top not in sys.stdlib_module_names and "_sysconfigdata" not in top


def test_start_imports_are_disjoint_use_no_proxy_and_need_gradio_only_for_the_page(
    quick_checkpoint: Path,
) -> None:
    (engine,) = modules(ENGINE.format(str(quick_checkpoint)))
    alone, speaking, web = modules(ALONE, SPEECH_PROCESS, PAGE)
    assert {"fastapi", "sqlite_utils"} <= alone and not {"fleet", "ray", "gradio", "pandas"} & alone
    assert not {"ray", "gradio", "pandas"} & speaking, "nor does a speech process need a page"
    assert "gradio" in web and "fastapi" in web and not engine & web
