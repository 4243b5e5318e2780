"""The command fish-voice-studio: serves the studio, or manages voices, trash and models, or checks a model."""

from __future__ import annotations

import sys


def main() -> int:
    """Run the command and return its exit code."""
    try:
        return _run()
    except KeyboardInterrupt:  # perhaps while modules are imported
        sys.stderr.write("\nstudio: interrupted\n")
        return 130


def _run() -> int:
    if sys.argv[1:2] in (["voices"], ["trash"]):
        from studio.cli import main as run_command  # needs no model

        return run_command()
    if sys.argv[1:2] == ["models"]:
        from studio.models.models_command import main as manage_models

        return manage_models(sys.argv[2:])
    if sys.argv[1:2] == ["check"]:
        from studio.start.check_command import main as check

        return check(sys.argv[2:])
    from studio.start.startup import main as serve

    return serve()


if __name__ == "__main__":
    sys.exit(main())
