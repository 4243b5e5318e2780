"""A studio in a process of its own, for the test that kills it.

python -m tests.longform.studio_process HOME VOICES LEASE: prints its address as the first line. The engine
speaks all parts but those with the word "stop", which it blocks forever. LEASE: seconds until a part lease expires.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncGenerator

from engine import AudioChunk, Utterance
from longform import worker
from longform.library import part_queue
from studio.settings import Settings
from tests.studio.fake_engine import FakeEngine
from tests.studio.server import serve


class HoldingEngine(FakeEngine):
    async def speak(self, utterance: Utterance) -> AsyncGenerator[AudioChunk, None]:
        if "stop" in utterance.text:
            await asyncio.Event().wait()
        async for chunk in super().speak(utterance):
            yield chunk


if __name__ == "__main__":
    part_queue.LEASE_SECONDS = float(sys.argv[3])
    worker.RENEW_SECONDS = part_queue.LEASE_SECONDS / 10
    settings = Settings(model="test/model", home=sys.argv[1], voices=sys.argv[2], max_rows=4)
    with serve(settings, HoldingEngine.start) as served:
        print(served.url, flush=True)
        sys.stdin.read()
