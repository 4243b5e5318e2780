"""The fleet on Ray Serve: a replica as a deployment, the router to a named replica, and the transport over gRPC."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Collection, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import grpc
from ray import serve
from ray.exceptions import RayError
from ray.serve.exceptions import RayServeException
from ray.serve.handle import DeploymentHandle, DeploymentResponseGenerator
from ray.serve.request_router import RequestRouter

import fleet.membership
from engine import Engine, EngineConfig, EngineError, Utterance, freeze_heap
from fleet.membership import ReplicaLost
from fleet.replica import Replica

CONNECT_SECONDS = 30.0


class EngineDeployment(Replica):
    """A replica that Ray Serve starts in a process of its own."""

    start_engine = staticmethod(Engine.start)

    async def __init__(self, config: EngineConfig, plan: str) -> None:  # type: ignore[misc]  # Serve awaits it
        """Load the engine in a thread, so that the process stays responsive.

        ``plan`` describes the whole fleet; with another plan, Serve replaces all replicas.
        """
        name = serve.get_replica_context().replica_id.unique_id
        super().__init__(name, await asyncio.to_thread(self.start_engine, config))
        await asyncio.to_thread(freeze_heap)


class NamedReplica(RequestRouter):
    """Routes requests by their keyword argument ``replica``, since the choice needs more than a router knows.

    Serve copies the class with this module's values, so the shared list of replicas is in another module.
    """

    def update_replicas(self, replicas: list[Any]) -> None:
        super().update_replicas(replicas)
        self._update()

    def on_replica_actor_died(self, replica_id: Any) -> None:
        super().on_replica_actor_died(replica_id)
        self._update()

    async def choose_replicas(self, candidate_replicas: list[Any], pending_request: Any = None) -> list[list[Any]]:
        """The named replica; any other if it has just stopped, which then refuses the request."""
        if pending_request is None:
            return [candidate_replicas]
        pending_request.routing_context.should_backoff = True
        name = pending_request.kwargs.get("replica")
        selected = [replica for replica in candidate_replicas if replica.replica_id.unique_id == name]
        return [selected or candidate_replicas]

    def _update(self) -> None:
        fleet.membership.UP.clear()
        fleet.membership.UP.update(replica_id.unique_id for replica_id in self.curr_replicas)


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
        return frozenset(fleet.membership.UP)

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
