"""Where the files are that come with the studio: beside its packages in a checkout, within this one when installed."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
"""The folder that the packages lie in, whatever the working directory is."""
ASSETS = next(folder for folder in (ROOT / "studio" / "assets", ROOT / "assets") if folder.is_dir())
"""The bundled model, its voices and the page's files."""
