"""A replica as a deployment of Ray Serve; it answers only requests addressed to it by name."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator
from typing import Any

import numpy as np
from ray import serve

from engine import EngineConfig, EngineInfo, EngineStats, EngineStopped, Reference, Utterance, freeze_heap
from fleet.replica import Item, Replica


class EngineDeployment:
    """One engine. ``replica`` is the name of the replica that the caller addresses."""

    async def __init__(self, config: EngineConfig, plan: str) -> None:  # type: ignore[misc]  # Serve awaits it
        """``plan`` describes the whole fleet; with another plan, Serve replaces all replicas."""
        self._name = serve.get_replica_context().replica_id.unique_id
        self._replica = await self.begin(self._name, config)
        await asyncio.to_thread(freeze_heap)

    @staticmethod
    async def begin(name: str, config: EngineConfig) -> Replica:
        """Start the replica."""
        return await Replica.start(name, config)

    async def name(self) -> str:
        return self._name

    async def info(self, replica: str) -> EngineInfo:
        return self._addressed(replica).info

    async def process(self, replica: str) -> int:
        """The process id of the replica."""
        self._addressed(replica)
        return os.getpid()

    async def stats(self, replica: str) -> EngineStats:
        return self._addressed(replica).stats()

    async def speak(self, utterance: Utterance, replica: str, may_wait: bool = True) -> AsyncGenerator[Item, None]:
        """``may_wait`` has a default because studios of an earlier version, during an update, do not send it."""
        items = self._addressed(replica).speak(utterance, may_wait)
        try:
            async for item in items:
                yield item
        finally:
            await items.aclose()

    async def encode_reference(self, pcm: np.ndarray, sample_rate: int, text: str, replica: str) -> Reference:
        return await self._addressed(replica).encode_reference(pcm, sample_rate, text)

    async def align(self, text: str, codes: np.ndarray, replica: str) -> np.ndarray:
        return await self._addressed(replica).align(text, codes)

    async def check_health(self) -> None:
        self._replica.check_health()

    def _addressed(self, replica: str) -> Replica:
        if replica != self._name:
            raise EngineStopped(f"replica {replica} no longer exists")
        return self._replica


def application(config: EngineConfig, plan: str, **options: Any) -> serve.Application:
    """The deployment of replicas, as `serve.run` takes it."""
    return serve.deployment(EngineDeployment, **options).bind(config, plan)
