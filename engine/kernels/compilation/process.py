"""Compiles kernels in a process that does not use the GPU: python -m engine.kernels.compilation.process TARGET

TARGET is a GPUTarget in JSON. Each line of the input is a `Specialisation` in JSON; an empty line answers it, once the
kernel is in Triton's cache. A kernel that cannot be compiled ends the process with Triton's error, and the caller then
compiles it alone.
"""

from __future__ import annotations

import importlib
import json
import os
import sys

from triton.backends.compiler import GPUTarget
from triton.runtime.driver import driver

from engine.kernels.compilation.processes import Specialisation


class CompilingDriver:
    """The part of Triton's driver that compiling needs: there is one GPU, of this target."""

    def __init__(self, target: GPUTarget) -> None:
        self._target = target

    def get_current_device(self) -> int:
        return 0

    def get_current_stream(self, device: int) -> int:
        return 0

    def get_current_target(self) -> GPUTarget:
        return self._target


def main() -> None:
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # so that printed text is not taken for an answer
    driver.set_active(CompilingDriver(GPUTarget(**json.loads(sys.argv[1]))))
    import engine.kernels  # noqa: F401  (imports all kernels before the first request)

    for line in sys.stdin:
        specialisation = Specialisation(*json.loads(line))
        getattr(importlib.import_module(specialisation.module), specialisation.function).preload(specialisation.data)
        print(file=answers, flush=True)


if __name__ == "__main__":
    main()
