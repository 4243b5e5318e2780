"""The voice studio: settings, speech service, HTTP API and page, built on the engine's public names."""

from pathlib import Path

__version__ = "0.1.0"

ROOT = Path(__file__).resolve().parent.parent
"""The folder that contains the packages."""
ASSETS = next(folder for folder in (ROOT / "studio" / "assets", ROOT / "assets") if folder.is_dir())
"""The bundled model, its voices and the page's files: beside the packages, or in this one when installed."""
