"""`python app.py` serves the studio, as `fish-voice-studio` does; a Hugging Face Space runs this file."""

from __future__ import annotations

import sys

from studio.__main__ import main
from studio.start.startup import create_app

__all__ = ["create_app", "main"]

if __name__ == "__main__":
    sys.exit(main())
