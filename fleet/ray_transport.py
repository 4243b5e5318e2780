"""Connects to the replicas through Ray Serve: streams and calls over gRPC, and translated errors."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import grpc
from ray.exceptions import RayError
from ray.serve.exceptions import RayServeException
from ray.serve.handle import DeploymentHandle, DeploymentResponseGenerator

from engine import EngineError, Utterance
from fleet.membership import UP, ReplicaLost

CONNECT_SECONDS = 30.0


class RayTransport:
    """One handle, created and used in one event loop."""

    def __init__(self, handle: DeploymentHandle) -> None:
        self._handle = handle.options(_by_reference=False)

    async def discover(self) -> None:
        """Let the router discover the replicas, even if some do not answer. Raises ReplicaLost if it cannot."""
        responses = self._handle.broadcast("name")
        with translated_errors(), suppress(TimeoutError):
            await responses.results_async(timeout_s=CONNECT_SECONDS, return_exceptions=True)

    def names(self) -> Collection[str]:
        return frozenset(UP)

    def open(self, replica: str, utterance: Utterance, may_wait: bool) -> RayStream:
        handle = self._handle.options(stream=True, method_name="speak")
        return RayStream(handle.remote(utterance, replica=replica, may_wait=may_wait))

    async def call(self, replica: str, method: str, *arguments: object) -> Any:
        response = self._handle.options(method_name=method).remote(*arguments, replica=replica)
        try:
            with translated_errors():
                return await response
        finally:
            response.cancel()

    async def close(self) -> None:
        await self._handle.shutdown_async()


class RayStream:
    """A take from a replica, item by item."""

    def __init__(self, items: DeploymentResponseGenerator) -> None:
        self._items = items

    def __aiter__(self) -> AsyncIterator[Any]:
        return self

    async def __anext__(self) -> Any:
        with translated_errors():
            return await self._items.__anext__()

    def cancel(self) -> None:
        self._items.cancel()


@contextmanager
def translated_errors() -> Iterator[None]:
    """Raise errors of Ray and gRPC as ReplicaLost; the engine's own errors pass."""
    try:
        yield
    except EngineError:
        raise
    except (RayError, RayServeException, grpc.RpcError) as error:
        raise ReplicaLost(str(error).partition("\n")[0] or type(error).__name__) from error
