"""Paths of the bundled files: beside the packages in a checkout, inside this package when installed."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
"""The folder that contains the packages."""
ASSETS = next(folder for folder in (ROOT / "studio" / "assets", ROOT / "assets") if folder.is_dir())
"""The bundled model, its voices and the page's files."""
