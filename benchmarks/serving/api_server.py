"""Starts app.py in its own process, on a free port, and waits until it is ready."""

from __future__ import annotations

import http.client
import json
import os
import platform
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
START_TIMEOUT = 300.0


class StudioProcess:
    """One studio; its settings are this process's environment and then the given ones."""

    def __init__(self, *program: str, **settings: str) -> None:
        """``program``: what Python runs instead of app.py, with the same behaviour."""
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port: int = probe.getsockname()[1]
        self._started = time.perf_counter()
        self._output = tempfile.TemporaryFile("w+", encoding="utf-8")  # noqa: SIM115  (it lives as long as the process)
        self._process = subprocess.Popen(
            [sys.executable, *(program or ("app.py",))],
            cwd=ROOT,
            env=os.environ | settings | {"STUDIO_HOST": "127.0.0.1", "STUDIO_PORT": str(self.port)},
            stdout=self._output,
        )

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def pid(self) -> int:
        return self._process.pid

    def wait_until_ready(self) -> tuple[float, dict[str, Any]]:
        """Seconds from the start to the first healthy answer, and the engine's facts.

        Exits with the reason when the studio does not become ready.
        """
        while time.perf_counter() - self._started < START_TIMEOUT:
            if self._process.poll() is not None:
                self._output.seek(0)
                last = "\n".join(self._output.read().splitlines()[-20:])
                sys.exit(f"app.py ended with code {self._process.returncode}:\n{last}")
            try:
                connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=5)
                connection.request("GET", "/health")
                answer = connection.getresponse()
                if answer.status == 200:
                    return time.perf_counter() - self._started, json.load(answer)["engine"]
            except OSError:
                pass  # not listening yet
            time.sleep(0.1)
        self.stop()
        sys.exit(f"app.py was not ready within {START_TIMEOUT:g} s")

    def stop(self) -> float:
        """End the process; returns its peak resident memory in MiB, 0 when it had ended already."""
        if self._process.poll() is not None:
            return 0.0
        self._process.send_signal(signal.SIGTERM)
        _, _, usage = os.wait4(self._process.pid, 0)
        self._process.returncode = 0
        return usage.ru_maxrss / (2**20 if platform.system() == "Darwin" else 2**10)
