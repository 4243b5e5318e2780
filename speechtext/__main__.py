"""`python -m speechtext "At 5 p.m. …"`: prints each part of a text as it is said, one line each."""

from __future__ import annotations

import sys

from speechtext import Pause, TextError, as_said, clean_signs, read_script


def main() -> int:
    """Reads the arguments, or standard input if there are none."""
    text = " ".join(sys.argv[1:]) or sys.stdin.read()
    try:
        for step in read_script(as_said(clean_signs(text))):
            print(f"[{step.seconds:g} s of silence]" if isinstance(step, Pause) else step.text)
    except TextError as error:
        print(f"speechtext: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
