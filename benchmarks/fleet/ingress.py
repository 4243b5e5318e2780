"""How many listeners the processes before the engines carry: larger and larger crowds, until somebody hears a gap."""

from __future__ import annotations

from typing import Any

from benchmarks.fleet.crowd import Crowd, silence
from benchmarks.serving.loads import Client, Service, failures, summary

PACED = "-m", "benchmarks.fleet.paced_app"
IN_HAND = 1.0
"""Seconds of sound that a listener lets come in before playing, where it is asked who hears a gap."""
FOUR = 4
"""Processes, where it is asked what more of them carry."""
REPLICAS = 8
"""That keep time: so many that none has more takes than a GPU would speak, and what is before them is full first."""
FIRST_STREAMS, STEP_STREAMS = 300, 25
"""Of one process: so many at first, and so many more or less until it is known how many are too many."""
CROWD_SECONDS, SPREAD_SECONDS = 12.0, 3.0
"""Of sound in each stream, and within which all begin."""


async def most_streams(service: Service, processes: int, of_one: int | None) -> tuple[int, list[dict[str, Any]]]:
    """Streams at once of which nobody heard a gap, and all that was tried; ``of_one`` is what one process carries."""
    rows: list[dict[str, Any]] = []
    step = STEP_STREAMS * max(1, processes // 2)
    most, streams, is_falling = 0, FIRST_STREAMS if of_one is None else processes * of_one - step, False
    with Crowd() as crowd:
        while streams > 0:
            rows.append(await _try(service, crowd, streams))
            print(rows[-1], flush=True)
            if not rows[-1]["failed"] and not rows[-1]["silence_s"]:
                most, streams = streams, streams + step
                if is_falling:
                    break
            elif most:
                break
            else:
                is_falling, streams = True, streams - step
    return most, rows


async def _try(service: Service, crowd: Crowd, streams: int) -> dict[str, Any]:
    await service.idle()
    requests = [service.request(service.frames(CROWD_SECONDS), voice="random") for _ in range(streams)]
    heards, wall, share = await crowd.listen(service.address, requests, SPREAD_SECONDS)
    row = {"streams": streams} | summary(heards, wall, Client(core_percent=100 * share))
    row["silence_s"] = round(max((silence(heard, IN_HAND) for heard in heards if not heard.error), default=0.0), 3)
    return row | {"why": failures(heards)}
