"""The process of `child_process.py`: python -m studio.work.child MEMORY SECONDS answers one call and exits.

It reads the pickled call from standard input and writes the pickled result. It ends at the end of its input, so also
when the studio is killed, together with the processes that it has started.
"""

from __future__ import annotations

import os
import pickle
import signal
import struct
import sys
import threading

from studio.errors import StudioError

try:
    import resource
except ImportError:  # Windows, where only the time is limited
    resource = None  # type: ignore[assignment]

LENGTH = struct.Struct("<Q")
"""Precedes the call: its size in bytes."""


def main() -> None:
    """Answer (True, the result) or (False, the StudioError); no answer means too much memory or time."""
    memory, seconds = int(sys.argv[1]), int(sys.argv[2])
    if resource is not None:
        resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 1))  # SIGXCPU shows the reason
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # printed output must not mix with the answers
    (length,) = LENGTH.unpack(sys.stdin.buffer.read(LENGTH.size))
    call = sys.stdin.buffer.read(length)
    threading.Thread(target=_end_with_input, daemon=True).start()
    function, values = pickle.loads(call)  # noqa: S301  (sent by the studio itself)
    del call
    try:
        answer: tuple[bool, object] = True, function(*values)
    except StudioError as error:
        answer = False, error
    answers.write(pickle.dumps(answer))
    answers.flush()


def _end_with_input() -> None:
    os.read(sys.stdin.fileno(), 1)
    os.killpg(0, signal.SIGKILL)


if __name__ == "__main__":
    main()
