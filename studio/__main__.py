"""The command fish-voice-studio: serves the studio; "voices" and "trash" manage the library, "check" tests a model."""

from __future__ import annotations

import sys


def main() -> int:
    """Run the command and return its exit code."""
    if sys.argv[1:2] in (["voices"], ["trash"]):
        from studio.cli import main as run_command  # needs no model

        return run_command()
    if sys.argv[1:2] == ["check"]:
        from studio.start.check_command import main as check

        return check(sys.argv[2:])
    from studio.start.startup import main as serve

    return serve()


if __name__ == "__main__":
    sys.exit(main())
