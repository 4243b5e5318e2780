"""Finds a Chromium: the system's, else the one that Playwright has installed.

python -m benchmarks.common.chromium prints its path; if none starts, it says so and exits with code 1.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


class NoChromium(Exception):
    """No browser was found; the message says how to get one."""


def find(*preferred: str) -> str:
    """Path of a Chromium that starts, one of these names if there is one. Raises NoChromium."""
    for name in (*preferred, *NAMES):
        program = shutil.which(name) or shutil.which(name, path=os.defpath)
        if program and _starts(program):
            return program
    if importlib.util.find_spec("playwright"):
        from playwright.sync_api import sync_playwright

        with sync_playwright() as playwright:
            program = playwright.chromium.executable_path
        if _starts(program):
            return program
    raise NoChromium("no Chromium that starts: run scripts/programs, or install it so that it is on PATH")


def _starts(program: str) -> bool:
    """Whether a program starts: it may lack libraries, or be a stub that only says how to install it."""
    try:
        return subprocess.run([program, "--version"], check=False, capture_output=True, timeout=60).returncode == 0
    except OSError:
        return False


if __name__ == "__main__":
    try:
        print(find())
    except NoChromium as missing:
        sys.exit(str(missing))
