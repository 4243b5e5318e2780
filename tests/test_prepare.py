"""`scripts/prepare`: which Python it uses, when it recreates the environment, and its error messages."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
STAND_IN = """#!/bin/sh
# Says that it is Python {version}, and makes environments and installs packages in name only.
case "$1" in
    --version) echo "Python {version}" ;;
    -c) exec {python} -c "import sys; sys.version_info = ({parts}, 'final', 0)
$2" ;;
    *) case "$2" in
        venv) mkdir -p "$3/bin"; cp "$0" "$3/bin/python"; echo {version} > "$3/pyvenv.cfg" ;;
        pip) echo "installed: $*" ;;
    esac ;;
esac
"""


class Machine:
    """A copy of the files that prepare needs, and a PATH with the system's tools and the Pythons that a test adds."""

    def __init__(self, folder: Path) -> None:
        self.root, self._bin = folder / "project", folder / "bin"
        (self.root / "scripts").mkdir(parents=True)
        self._bin.mkdir()
        shutil.copy(ROOT / "scripts" / "prepare", self.root / "scripts")
        for file in [*ROOT.glob("requirements*.txt"), ROOT / "package-lock.json"]:
            shutil.copy(file, self.root)
        for tool in ("sh", "cat", "cp", "cksum", "dirname", "mkdir", "rm", "touch", "tr"):
            (self._bin / tool).symlink_to(str(shutil.which(tool)))

    def add_python(self, name: str, version: str) -> None:
        stand_in = STAND_IN.format(version=version, parts=version.replace(".", ", "), python=sys.executable)
        (self._bin / name).write_text(stand_in)
        (self._bin / name).chmod(0o755)

    def add_program(self, name: str, does: str) -> None:
        (self._bin / name).write_text(f"#!/bin/sh\n{does}\n")
        (self._bin / name).chmod(0o755)

    def prepare(self, purpose: str = "run", **variables: str) -> subprocess.CompletedProcess[str]:
        inherited = {name: value for name, value in os.environ.items() if name not in ("PYTHON", "VENV")}
        environment = inherited | {"PATH": str(self._bin)} | variables
        command = [str(self.root / "scripts" / "prepare"), purpose]
        return subprocess.run(command, env=environment, check=False, capture_output=True, text=True)

    def add_npm(self, does: str) -> None:
        """Add an npm, as if installed with the tests' packages, that runs this."""
        npm = self.root / ".venv" / "bin" / "npm"
        npm.write_text(f"#!/bin/sh\n{does}\n")
        npm.chmod(0o755)

    def python_of(self, venv: str = ".venv") -> str:
        return (self.root / venv / "pyvenv.cfg").read_text().strip()


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


@pytest.mark.parametrize("version", ["3.11.0", "3.13.1"])
def test_tested_python_is_used_without_a_message(machine: Machine, version: str) -> None:
    machine.add_python("python3", version)
    done = machine.prepare()
    assert done.returncode == 0 and machine.python_of() == version
    assert "installed: -m pip" in done.stdout and "newer" not in done.stdout and done.stderr == ""


def test_a_newer_python_is_used_and_reported(machine: Machine) -> None:
    machine.add_python("python3", "3.15.2")
    done = machine.prepare()
    assert done.returncode == 0 and machine.python_of() == "3.15.2"
    assert "newer than the versions that the project is tested on (3.11 to 3.13)" in done.stdout


@pytest.mark.parametrize("newer", ["python3.11", "python3.14"])
def test_old_python_is_skipped_for_a_suitable_one(machine: Machine, newer: str) -> None:
    machine.add_python("python3", "3.10.12")  # Ubuntu 22.04's
    refused = machine.prepare()
    assert refused.returncode == 1 and "needs Python 3.11 or newer; python3 is: Python 3.10.12" in refused.stderr
    assert "sudo apt-get install python3.11-venv) or uv" in refused.stderr and not (machine.root / ".venv").exists()
    version = f"{newer.removeprefix('python')}.4"
    machine.add_python(newer, version)
    assert machine.prepare().returncode == 0 and machine.python_of() == version


def test_uv_provides_a_python_if_there_is_none(machine: Machine) -> None:
    machine.add_python("python3", "3.10.12")
    machine.add_python("hidden", "3.13.2")
    machine.add_program("uv", 'case "$2" in find) echo hidden ;; install) echo "installing $3" ;; esac')
    done = machine.prepare()
    assert done.returncode == 0 and machine.python_of() == "3.13.2"
    assert "Installing Python 3.13 with uv" in done.stderr and "installing 3.13" in done.stderr


def test_environment_is_kept_until_another_python_is_requested(machine: Machine) -> None:
    machine.add_python("python3", "3.11.4")
    machine.add_python("python3.13", "3.13.0")
    machine.prepare()
    assert machine.prepare().stdout == ""
    assert machine.prepare(PYTHON="python3").stdout == ""
    apart = machine.prepare(PYTHON="python3.13", VENV=".venv-3.13")
    assert apart.returncode == 0 and machine.python_of(".venv-3.13") == "3.13.0" and machine.python_of() == "3.11.4"
    again = machine.prepare(PYTHON="python3.13")
    assert "Python 3.13.0" in again.stdout and machine.python_of() == "3.13.0"


def test_folder_without_an_environment_is_never_deleted(machine: Machine) -> None:
    machine.add_python("python3", "3.11.4")
    (machine.root / "scripts" / "mine.txt").write_text("mine")
    done = machine.prepare(VENV="scripts")
    assert done.returncode == 1 and "scripts exists, but is not a virtual environment" in done.stderr
    assert (machine.root / "scripts" / "mine.txt").exists()


def test_page_checkers_are_installed_once_per_lock_file(machine: Machine) -> None:
    machine.add_python("python3", "3.11.4")
    assert machine.prepare("test").returncode == 0
    machine.add_npm('rm -rf node_modules; mkdir node_modules; echo "npm: $1"')
    for expected in (True, False):
        done = machine.prepare("checks")
        assert done.returncode == 0 and ("npm: ci" in done.stdout) is expected
    (machine.root / "package-lock.json").write_text("{}")
    assert "npm: ci" in machine.prepare("checks").stdout
    assert len(list((machine.root / "node_modules").glob(".installed-*"))) == 1


def test_unreachable_registry_is_reported_and_retried_next_time(machine: Machine) -> None:
    machine.add_python("python3", "3.11.4")
    machine.prepare("test")
    machine.add_npm('echo "npm error ENOTFOUND" >&2; mkdir -p node_modules; exit 1')
    refused = machine.prepare("checks")
    assert refused.returncode == 1 and "npm error ENOTFOUND" in refused.stderr
    assert "registry.npmjs.org" in refused.stderr and "Run the same command again" in refused.stderr
    machine.add_npm('echo "npm: $1"')
    assert "npm: ci" in machine.prepare("checks").stdout
