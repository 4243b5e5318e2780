"""Lets a thread write what this process prints and logs: an output that nobody reads must not hold up the studio."""

from __future__ import annotations

import contextlib
import io
import os
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any

MOST_BYTES = 1_000_000  # that wait to be read: the log of some 10,000 requests
EXIT_SECONDS = 1.0  # for which the end waits until they are


@contextlib.contextmanager
def background_output() -> Iterator[None]:
    """Write standard output and standard error in the background meanwhile.

    What exceeds MOST_BYTES while nobody reads is lost, as is everything once the reader has ended.
    """
    before, outputs = {name: getattr(sys, name) for name in ("stdout", "stderr")}, []
    for name, stream in before.items():
        if isinstance(stream, io.TextIOWrapper):
            stream.flush()
            outputs.append(_Output(getattr(stream.buffer, "raw", stream.buffer)))
            setattr(sys, name, io.TextIOWrapper(outputs[-1], stream.encoding, stream.errors, line_buffering=True))
    try:
        yield
    finally:
        deadline = time.monotonic() + EXIT_SECONDS
        for output in outputs:
            output.wait_until_written(deadline)
        vars(sys).update(before)


class _Output(io.RawIOBase):
    def __init__(self, stream: Any) -> None:
        self._stream, self.isatty, self.fileno = stream, stream.isatty, stream.fileno  # type: ignore[method-assign]
        self._begin()
        if hasattr(os, "register_at_fork"):  # a forked process has none of the threads
            os.register_at_fork(after_in_child=self._begin)

    def _begin(self) -> None:
        self._waiting, self._changed = bytearray(), threading.Condition()
        threading.Thread(target=self._write_forever, name="output", daemon=True).start()

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        with self._changed:
            self._waiting += data if len(self._waiting) < MOST_BYTES else b""
            self._changed.notify_all()
        return len(data)

    def wait_until_written(self, deadline: float) -> None:
        with self._changed:
            self._changed.wait_for(lambda: not self._waiting, deadline - time.monotonic())

    def _write_forever(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._waiting)
                piece = bytes(self._waiting[:65_536])
            try:
                written = self._stream.write(piece)
            except OSError:  # the reader has ended, or a disk is full
                written = len(piece)
            if written is None:  # nobody reads a pipe that another program has set not to block
                time.sleep(0.1)
            with self._changed:
                del self._waiting[: written or 0]
                self._changed.notify_all()
