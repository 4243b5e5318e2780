"""`python app.py` serves the studio, as `fish-voice-studio` does; a Hugging Face Space runs this file."""

from __future__ import annotations

import os
import sys

if sys.flags.safe_path:  # by PYTHONSAFEPATH or -P: then Python does not look for modules beside this file
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from launch import main

if __name__ == "__main__":
    sys.exit(main())
