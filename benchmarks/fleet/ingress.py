"""How many listeners the processes before the engines can serve: ever larger loads, until one hears a gap."""

from __future__ import annotations

from typing import Any

from benchmarks.serving.crowd import Crowd, evenly, silence
from benchmarks.serving.loads import Service, failures, summary

PACED = "-m", "benchmarks.fleet.paced_app"
BUFFERED_SECONDS = 1.0
"""Seconds of audio that a listener buffers before playing."""
FOUR = 4
"""Numbers of speech processes to compare."""
REPLICAS = 8
"""Replicas that only simulate timing: enough that the processes in front of them are the limit."""
FIRST_STREAMS, STEP_STREAMS = 300, 25
"""Streams for one process: the first load, and the steps up or down until the limit is found."""
CROWD_SECONDS, SPREAD_SECONDS = 12.0, 3.0
"""Seconds of audio in each stream, and seconds within which all start."""


async def most_streams(service: Service, processes: int, of_one: int | None) -> tuple[int, list[dict[str, Any]]]:
    """Streams at once without a gap for anyone, and all attempts; ``of_one`` is the capacity of one process."""
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
    load = await crowd.listen(service.address, requests, evenly(streams, SPREAD_SECONDS))
    listeners = load.listeners
    row = {"streams": streams} | summary(load)
    row["silence_s"] = round(
        max((silence(listener, BUFFERED_SECONDS) for listener in listeners if not listener.error), default=0.0), 3
    )
    return row | {"why": failures(listeners)}
