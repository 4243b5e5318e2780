"""Ray Serve's side of the choosing: it hands a request to the replica that the fleet has named."""

from __future__ import annotations

from typing import Any

from ray.serve.request_router import RequestRouter

import fleet.membership


class NamedReplica(RequestRouter):
    """A router for requests that say in their keyword argument ``replica`` where they want to go.

    Serve keeps the list of replicas; whom a take goes to depends on more than a router is told (fleet/routing.py).
    Serve copies the class, with this module's values: what it is to share is therefore in another module.
    """

    def update_replicas(self, replicas: list[Any]) -> None:
        super().update_replicas(replicas)
        self._note()

    def on_replica_actor_died(self, replica_id: Any) -> None:
        super().on_replica_actor_died(replica_id)
        self._note()

    async def choose_replicas(self, candidate_replicas: list[Any], pending_request: Any = None) -> list[list[Any]]:
        """The named one; any, if that has just gone: the replica itself then refuses what was not meant for it."""
        if pending_request is None:
            return [candidate_replicas]
        pending_request.routing_context.should_backoff = True
        wanted = pending_request.kwargs.get("replica")
        named = [replica for replica in candidate_replicas if replica.replica_id.unique_id == wanted]
        return [named or candidate_replicas]

    def _note(self) -> None:
        fleet.membership.UP.clear()
        fleet.membership.UP.update(replica_id.unique_id for replica_id in self.curr_replicas)
