"""A replica as Ray Serve's deployment: what Serve calls, and to whom a request was addressed."""

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
    """One engine. ``replica`` is always the name of that which the caller means."""

    async def __init__(self, config: EngineConfig, plan: str) -> None:  # type: ignore[misc]  # Serve awaits it
        """``plan`` says what the whole fleet is to be: another one is another version, and Serve replaces all."""
        self._name = serve.get_replica_context().replica_id.unique_id
        self._replica = await self.begin(self._name, config)
        await asyncio.to_thread(freeze_heap)

    @staticmethod
    async def begin(name: str, config: EngineConfig) -> Replica:
        """What answers in the end."""
        return await Replica.start(name, config)

    async def name(self) -> str:
        return self._name

    async def info(self, replica: str) -> EngineInfo:
        return self._meant(replica).info

    async def process(self, replica: str) -> int:
        """Its id on its machine."""
        self._meant(replica)
        return os.getpid()

    async def stats(self, replica: str) -> EngineStats:
        return self._meant(replica).stats()

    async def speak(self, utterance: Utterance, replica: str, may_wait: bool = True) -> AsyncGenerator[Item, None]:
        """A studio of earlier code, whose takes go on during an update, says nothing of waiting."""
        items = self._meant(replica).speak(utterance, may_wait)
        try:
            async for item in items:
                yield item
        finally:
            await items.aclose()

    async def encode_reference(self, pcm: np.ndarray, sample_rate: int, text: str, replica: str) -> Reference:
        return await self._meant(replica).encode_reference(pcm, sample_rate, text)

    async def align(self, text: str, codes: np.ndarray, replica: str) -> np.ndarray:
        return await self._meant(replica).align(text, codes)

    async def check_health(self) -> None:
        self._replica.check_health()

    def _meant(self, replica: str) -> Replica:
        if replica != self._name:
            raise EngineStopped(f"replica {replica} has gone")
        return self._replica


def application(config: EngineConfig, plan: str, **options: Any) -> serve.Application:
    """The deployment of replicas, as `serve.run` takes it."""
    return serve.deployment(EngineDeployment, **options).bind(config, plan)
