"""`python app.py` serves the studio, as `fish-voice-studio` does; a Hugging Face Space runs this file."""

from __future__ import annotations

import sys

from launch import main

if __name__ == "__main__":
    sys.exit(main())
