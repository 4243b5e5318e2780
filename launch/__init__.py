"""The command fish-voice-studio: serves the studio or agents, manages voices, trash and models, or checks a model."""

from __future__ import annotations

import gc
import io
import os
import sys

COLLECTIONS = gc.get_threshold()
"""How often Python collects garbage, except during the start."""
STARTING = 100_000
"""Objects between collections during the start, of 400,000 that stay: with the usual 700 they take a tenth of it."""


def main() -> int:
    """Run the command and return its exit code. Each command imports only what it needs."""
    command, arguments = sys.argv[1:2], sys.argv[2:]
    if isinstance(sys.stdout, io.TextIOWrapper):  # consoles of Windows lack most letters, and print them as \uXXXX then
        sys.stdout.reconfigure(errors="backslashreplace")
    if bundle := os.environ.get("REQUESTS_CA_BUNDLE"):  # which is how many networks are set up, and httpx ignores
        os.environ.setdefault("SSL_CERT_FILE", bundle)
    try:
        if command in (["voices"], ["trash"]):
            from launch.library_command import main as run_command

            return run_command()
        if command == ["models"]:
            from launch.models_command import main as manage_models

            return manage_models(arguments)
        if command == ["check"]:
            from launch.check_command import main as check

            return check(arguments)
        if command == ["mcp"]:
            from protocols.mcp.command import main as serve_agents

            return serve_agents(arguments)
        gc.set_threshold(STARTING)
        from launch.startup import main as serve

        return serve()
    except KeyboardInterrupt:  # perhaps while modules are imported
        sys.stderr.write("\nstudio: interrupted\n")
        return 130
