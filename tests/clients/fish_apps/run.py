"""Runs third-party programs against a studio: python -m tests.clients.fish_apps.run URL [NAME ...]

Each is installed with pip into an environment of its own below --folder: half a gigabyte each, so that the tests do
not run them.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

APPS = {
    "livekit_plugin": "livekit-plugins-fishaudio==1.8.9",
    "livekit_elevenlabs": "livekit-plugins-elevenlabs==1.8.9",
    "pipecat_service": "pipecat-ai[fish]==1.14.0",
    "pipecat_elevenlabs": "pipecat-ai[elevenlabs]==1.14.0",
    "vision_agents_plugin": "vision-agents-plugins-fish==0.6.9",
}
SECONDS = 300


def main() -> int:
    """Returns 0 if every program spoke."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("url", help="the studio's address")
    parser.add_argument("names", nargs="*", choices=[*APPS, []], help="absent: all")
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "fish-apps")
    options = parser.parse_args()
    failed = [name for name in options.names or APPS if not _run(name, options.folder / name, options.url)]
    print("all of them spoke" if not failed else f"did not speak: {', '.join(failed)}")
    return len(failed)


def _run(name: str, folder: Path, url: str) -> bool:
    python = folder / "bin" / "python"
    if not (folder / "installed").exists():
        print(f"installing {APPS[name]}")
        venv.create(folder, with_pip=True, clear=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", APPS[name]], check=True)
        (folder / "installed").touch()
    print(f"{name}:")
    return (
        subprocess.run([python, Path(__file__).with_name(f"{name}.py"), url], timeout=SECONDS, check=False).returncode
        == 0
    )


if __name__ == "__main__":
    sys.exit(main())
