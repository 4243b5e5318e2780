"""What a start imports: nothing that the engine's start and the web layer both would, and no more than is needed."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from studio.paths import ROOT

TOLD = """import json, sys
from studio.start import startup as app
before = set(sys.modules)
{}
print(json.dumps(sorted(set(sys.modules) - before)))"""
ENGINE = """
from importlib.util import find_spec
from pkgutil import walk_packages
app.Engine.start(app.EngineConfig({!r}), lambda doing, fraction: None).stop()
import engine
for module in walk_packages(engine.__path__, "engine."):  # a GPU's, too
    if find_spec("triton"):
        __import__(module.name)
"""
WEB = """
import fleet.frontends.worker_pool
app.create_app(app.Settings())
"""


def modules(program: str) -> set[str]:
    """Of other packages than Python's own: what a program imports that has imported `app`."""
    command = [sys.executable, "-c", TOLD.format(program)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    found = json.loads(done.stdout.splitlines()[-1])
    tops = {name: name.partition(".")[0] for name in found}
    return {name for name, top in tops.items() if top not in sys.stdlib_module_names and "_sysconfigdata" not in top}


def test_the_engine_and_the_web_layer_import_nothing_in_common(quick_checkpoint: Path) -> None:
    engine, web = modules(ENGINE.format(str(quick_checkpoint))), modules(WEB)
    assert "gradio" in web and "fastapi" in web and not engine & web
