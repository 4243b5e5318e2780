"""The load generator of the benchmarks: a listener's arithmetic, and every load once against a real server."""

from __future__ import annotations

from urllib.parse import urlsplit

import httpx
import pytest

from benchmarks.bench_gpu import figures
from benchmarks.serving.crowd import Crowd
from benchmarks.serving.listener import Address, Listener
from benchmarks.serving.loads import VOICE, Service, bare_client, cancel, one_caller, poisson, together
from tests.studio.server import Served


@pytest.mark.parametrize(
    ("pieces", "underruns", "still"),
    [
        ([(0.1, 0.05)], 0, 0.0),
        ([(0.1, 0.05), (0.14, 0.2), (0.29, 0.6)], 0, 0.0),
        # The second piece is 20 ms late; the third is late even for a player that stalled for that time.
        ([(0.1, 0.05), (0.17, 0.1), (0.25, 0.5)], 2, 0.05),
        # Late once; the next piece is in time for a player that has waited.
        ([(0.1, 0.05), (0.25, 0.2), (0.39, 0.5)], 1, 0.1),
    ],
)
def test_player_underrun_is_counted_if_audio_arrives_late(
    pieces: list[tuple[float, float]], underruns: int, still: float
) -> None:
    listener = Listener(pieces)
    assert listener.playback()[0] == underruns
    assert listener.playback()[1] == pytest.approx(still)
    # A player that had waited that long before starting would have had no gap.
    first, *later = pieces
    assert Listener([(first[0] + still + 1e-9, first[1]), *later]).playback()[0] == 0


async def test_every_load_completes_without_failures(studio: Served) -> None:
    port = urlsplit(studio.url).port or 0
    with Crowd(2) as crowd:
        async with httpx.AsyncClient(base_url=studio.url, timeout=60) as http:
            service = Service(Address("127.0.0.1", port), http, frame_rate=21.5)
            await service.upload_voice()
            try:
                rows = await one_caller(service, repeat=1, frames=4)
                assert [(row["failed"], row["why_failed"]) for row in rows] == [(0, "-")] * 4
                row, why = await together(service, crowd, 2, seconds=0.5, spread=0.0)
                assert (row["requests"], row["failed"], why) == (2, 0, [])
                row, why = await poisson(service, crowd, rate=4, seconds=0.5)
                assert row["requests"] > 0 and not why
                assert (await cancel(service, 2))["counted_as_cancelled"] == 2
                refused = await service.address.listen({"input": "", "voice": VOICE})
                assert "400" in refused.error and "blank" in refused.error
            finally:
                await http.delete(f"/v1/audio/voices/{VOICE}")


async def test_load_generators_own_time_is_measured() -> None:
    with Crowd(1) as crowd:
        share = await bare_client(crowd, 3)
    assert share["client_ms"] and share["client_ms_64_at_once"]


def test_figures_are_read_from_the_results_of_their_stage() -> None:
    values = figures({"engine": {"frames": {"frame_ms_b1": 6.1}, "stream_64_tf32": {"xrt_with_codec": 78}}})
    assert (values["frame_ms_b1"], values["xrt_b64_with_codec"], values["upstream_ms"]) == (6.1, 78, None)
