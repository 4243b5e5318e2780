"""fish-voice-studio, or python -m studio: serves the studio.

After "voices" or "trash" it is the library's command line, after "check" it checks a model.
"""

from __future__ import annotations

import sys


def main() -> int:
    """The exit code of what was asked for."""
    if sys.argv[1:2] in (["voices"], ["trash"]):
        from studio.cli import main as run_command  # which needs no model

        return run_command()
    if sys.argv[1:2] == ["check"]:
        from studio.start.check_command import main as check

        return check(sys.argv[2:])
    from studio.start.startup import main as serve

    return serve()


if __name__ == "__main__":
    sys.exit(main())
