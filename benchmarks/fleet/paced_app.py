"""python -m benchmarks.fleet.paced_app: app.py before replicas that only keep time; ENGINES says how many."""

from __future__ import annotations

import sys
from typing import Any

from fleet import start
from studio.start.startup import main as serve


def main() -> int:
    deploy = start.deploy

    def deploy_paced(*arguments: Any) -> None:
        from benchmarks.fleet.paced import PacedDeployment  # not before Ray's settings are set, which it reads at once
        from fleet import deployment

        deployment.EngineDeployment = PacedDeployment  # type: ignore[misc]
        deploy(*arguments)

    start.deploy = deploy_paced  # type: ignore[assignment]
    return serve()


if __name__ == "__main__":
    sys.exit(main())
