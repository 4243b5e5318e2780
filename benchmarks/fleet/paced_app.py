"""python -m benchmarks.fleet.paced_app: app.py with STUDIO_ENGINES replicas that only simulate timing, and with
PACED_PROCESSES speech processes."""

from __future__ import annotations

import os
import sys
from typing import Any

from fleet import start
from fleet.frontends import speech_processes
from launch.startup import main as serve


def main() -> int:
    deploy = start.deploy

    def deploy_paced(*arguments: Any) -> None:
        from benchmarks.fleet.paced import PacedDeployment  # not before Ray's settings are set, which it reads at once
        from fleet import ray_serve

        ray_serve.EngineDeployment = PacedDeployment  # type: ignore[misc]
        deploy(*arguments)

    count = int(os.environ["PACED_PROCESSES"])
    speech_processes.speech_process_count = lambda *_: count
    start.deploy = deploy_paced  # type: ignore[assignment]
    return serve()


if __name__ == "__main__":
    sys.exit(main())
