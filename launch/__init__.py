"""The command fish-voice-studio: serves the studio or agents, manages voices, trash and models, or checks a model."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import importlib.util
import io
import os
import re
import sys
import threading
from pathlib import Path
from types import ModuleType

COLLECTIONS = gc.get_threshold()  # how often Python collects garbage, except during the start
STARTING = 100_000
"""Objects between collections during the start, of 400,000 that stay: with the usual 700 they take a tenth of it."""


def main() -> int:
    """Run the command and return its exit code. Each command imports only what it needs."""
    _understand_every_letter()
    command, arguments = sys.argv[1:2], sys.argv[2:]
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:  # closed by a service manager; pythonw on Windows has none
            # Takes the closed one's number, which a file of the library could get otherwise, for child processes too.
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115  # until the program ends
            os.set_inheritable(getattr(sys, name).fileno(), True)
    if isinstance(sys.stdout, io.TextIOWrapper):  # consoles of Windows lack most letters, and print them as \uXXXX then
        sys.stdout.reconfigure(errors="backslashreplace")
    if bundle := os.environ.get("REQUESTS_CA_BUNDLE"):  # which is how many networks are set up, and httpx ignores
        os.environ.setdefault("SSL_CERT_FILE", bundle)
    os.environ.setdefault("PATH", os.defpath)  # some service managers set none, and a package of the page needs one
    status = 0
    try:
        os.getcwd()
    except FileNotFoundError:  # PyTorch cannot be loaded then
        return failed(ValueError("the folder in which this program was started was deleted: change to another one"))
    try:
        status = _run(command, arguments)
    except KeyboardInterrupt:  # perhaps while modules are imported
        sys.stderr.write("\nstudio: interrupted\n")
        status = 130
    except BrokenPipeError as error:
        status = failed(error)
    except (ValueError, OSError) as error:  # perhaps of a library, whose import reads a variable
        if (variable := _refused_variable(error)) is None:
            raise
        reason = str(error).strip()
        status = failed(ValueError(f"the variable {variable} cannot be used; correct or remove it: {reason}"))
    finally:  # also after --help
        try:
            sys.stdout.flush()
        except OSError as error:
            drop_output()
            status = status or failed(error)
    return status


def _understand_every_letter() -> None:
    """Run again in Python's UTF-8 mode, if the locale knows only the letters of ASCII: a name such as 张伟 would arrive
    broken, and a path with it could neither be loaded nor stored. Python itself does so in most such locales.
    """
    if sys.getfilesystemencoding() == "ascii" and os.environ.get("PYTHONUTF8") != "1" and sys.executable:
        os.environ["PYTHONUTF8"] = "1"  # for the processes that this one starts too
        os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])  # noqa: S606  # the same command, without a shell


def drop_output() -> None:
    """Let what is printed go nowhere from now on: nobody reads it, and Python would fail to flush it at its exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def failed(error: Exception) -> int:
    """Print the reason for which a command failed, and return its exit code."""
    ended = "the program that reads the output has ended before it had all of it"
    sys.stderr.write(f"studio: {ended if isinstance(error, BrokenPipeError) else error}\n")
    return 1


def _refused_variable(error: ValueError | OSError) -> str | None:
    """The name of the environment variable that caused the error, None if none did: its value is not a number, is the
    path of a file that cannot be opened, or appears in the message together with its name."""
    reason = str(error)
    is_number = reason.startswith(("invalid literal for int()", "could not convert string to float"))
    for name, value in os.environ.items():
        is_refused = (is_number and reason.endswith(repr(value))) or value == getattr(error, "filename", None)
        if value and (is_refused or (value in reason and re.search(rf"\b{re.escape(name)}\b", reason))):
            return name
    return None


def _run(command: list[str], arguments: list[str]) -> int:
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
    from studio.output import background_output

    with background_output():
        from launch.startup import main as serve

        return serve()


def import_torch() -> None:
    """Import torch (2.13) in two thirds of the time.

    - Another thread loads its library for processors, while this one imports what does not need torch. Not beside a
      library for GPUs, whose dependencies torch loads in an order of its own.
    - A quarter of the import describes operators on tensors without data, for torch's compiler. The studio never
      compiles; a compiler that is imported later imports the descriptions first.
    """
    found = importlib.util.find_spec("torch")
    if "torch" in sys.modules or not (found and found.origin):
        return
    folder, suffix = Path(found.origin).parent / "lib", {"linux": "so", "darwin": "dylib"}.get(sys.platform)
    has_gpu = any((folder / f"libtorch_{kind}.{suffix}").exists() for kind in ("cuda", "hip", "xpu"))

    def load() -> None:
        with contextlib.suppress(OSError):  # the import reports it
            ctypes.CDLL(str(folder / f"libtorch_global_deps.{suffix}"), ctypes.RTLD_GLOBAL)  # as torch does
            ctypes.CDLL(str(folder / f"libtorch_cpu.{suffix}"))

    loading = threading.Thread(target=load)
    if suffix and not has_gpu:
        loading.start()
    import studio.settings  # noqa: F401  # a fifth of what is imported before the engine starts

    if loading.ident:
        loading.join()
    sys.modules[_BeforeCompiler.NEEDS] = ModuleType(_BeforeCompiler.NEEDS)
    import torch

    del sys.modules[_BeforeCompiler.NEEDS], vars(torch)[_BeforeCompiler.NEEDS.removeprefix("torch.")]
    sys.meta_path.insert(0, _BeforeCompiler())


class _BeforeCompiler:
    """Imports what torch's compiler expects to be imported."""

    NEEDS = "torch._meta_registrations"

    def find_spec(self, name: str, *_: object) -> None:
        if name in ("torch._dynamo", "torch._inductor") and self in sys.meta_path:
            sys.meta_path.remove(self)
            importlib.import_module(self.NEEDS)
