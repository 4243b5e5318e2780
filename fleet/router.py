"""A request router for Ray Serve that sends each request to the replica chosen by the fleet."""

from __future__ import annotations

from typing import Any

from ray.serve.request_router import RequestRouter

import fleet.membership


class NamedReplica(RequestRouter):
    """Routes requests by their keyword argument ``replica``.

    The choice needs more than a router knows (fleet/routing.py). Serve copies the class with this module's values, so
    the shared list of replicas is in another module.
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
