"""Scripts that other programs run, as far as they can be checked without them: the workflows, and Pinokio's."""

from __future__ import annotations

import json
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
import yaml

from engine import EngineInfo
from launch.startup import Terminal
from studio.settings import Settings

ROOT = Path(__file__).resolve().parent.parent
WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))
WRITING = {("release", "pypi"): {"id-token"}, ("release", "images"): {"packages"}, ("release", "notes"): {"contents"}}
"""The only jobs that may write, and what."""


def jobs(path: Path) -> dict[str, dict[str, Any]]:
    return dict(yaml.safe_load(path.read_text("utf-8"))["jobs"])


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_actions_are_pinned_and_only_publishing_jobs_may_write(path: Path) -> None:
    text = path.read_text("utf-8")
    used = re.findall(r"uses: (.*)", text)
    assert used and all(re.fullmatch(r"[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", line) for line in used)
    assert yaml.safe_load(text)["permissions"] == {"contents": "read"}
    for name, job in jobs(path).items():
        rights = {right for right, value in job.get("permissions", {}).items() if value == "write"}
        assert rights == WRITING.get((path.stem, name), set())


def test_commands_of_the_workflows_exist() -> None:
    targets = set(re.findall(r"^(\w[\w-]*):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))
    runs = [step["run"] for path in WORKFLOWS for job in jobs(path).values() for step in job["steps"] if "run" in step]
    assert {run.split()[1] for run in runs if run.startswith("make ")} <= targets
    for run in runs:
        for place in re.findall(r"\b(?:tests|requirements)[\w./-]*", run):
            assert (ROOT / place).exists(), place


def test_pinokios_scripts_run_existing_files_and_find_the_address_of_the_page(
    capsys: pytest.CaptureFixture[str],
) -> None:
    scripts = {path.name: json.loads(path.read_text("utf-8"))["run"] for path in (ROOT / "pinokio").glob("*.json")}
    steps = [step for run in scripts.values() for step in run]
    for step in steps:
        assert step["method"] in ("local.set", "script.start", "shell.run")
        for word in step["params"].get("message", "").split():
            assert "." not in word or (ROOT / word).is_file(), word
        assert step["params"].get("uri", "install.json") in scripts
        assert (ROOT / "pinokio" / step["params"].get("path", ".")).resolve() in (ROOT, ROOT / "pinokio")
    environments = {step["params"]["venv"] for step in steps if "venv" in step["params"]}
    assert environments == {"pinokio/env"} and "pinokio/env" in (ROOT / "pinokio.js").read_text("utf-8")
    started = next(step["params"] for step in scripts["start.json"] if step["method"] == "shell.run")
    pattern = started["on"][0]["event"].strip("/").replace("\\/", "/")
    Terminal(Settings()).ready(cast(EngineInfo, SimpleNamespace(device="cpu", dtype="int8")))
    found = re.search(pattern, capsys.readouterr().out)
    assert found and found[1] == Settings().address
