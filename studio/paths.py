"""Paths of the bundled files: beside the packages in a checkout, inside this package when installed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
"""The folder that contains the packages."""
ASSETS = next(folder for folder in (ROOT / "studio" / "assets", ROOT / "assets") if folder.is_dir())
"""The bundled model, its voices and the page's files."""


def json_beside(module: str, name: str) -> Any:
    """The content of a JSON file beside a module; ``module``: its __file__."""
    return json.loads(Path(module).with_name(name).read_text("utf-8"))
