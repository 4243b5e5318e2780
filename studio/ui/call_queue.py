"""The queue of Gradio's calls, bounded for each caller; unread answers do not end it."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass
from typing import Any

import gradio as gr
from gradio.queueing import Event, Queue
from gradio.server_messages import EventMessage

MOST_CALLS = 1500
"""Calls of all callers at a time; the engine and the library keep their own order. Gradio keeps 2,000 sessions."""
MOST_OF_CALLER = 100
"""Calls of one caller that wait, are under way, or have an answer that was not fetched."""
MOST_MESSAGES = 4096
"""Of a session that nobody fetches: more than the pieces of the longest take."""
UNREAD_SECONDS = 600
"""How long an answer is kept for its caller."""
LONGEST_SESSION = 128
"""Characters of a session's name, which the caller chooses."""
LOOKS_EVERY, PROGRESS_LOOKS_EVERY = 0.02, 0.1
"""Seconds. Gradio's own (6.31: 0.001 and 0.01) take a twelfth of a slow core from the server's loop at rest."""


@dataclass(slots=True)
class _Call:
    """``owner``: the only caller who may have its answer; None, where no keys are set: anyone who knows its name.

    ``over_since``: a time of the monotonic clock, once it was found to be neither waiting nor under way."""

    caller: str
    owner: str | None
    event: Event
    over_since: float | None = None


class CallQueue(Queue):
    """Gradio's own (6.31) drops the oldest of 2,000 sessions. If a call of that session was waiting, the next message
    to it ended the queue for everybody."""

    def __init__(self, blocks: gr.Blocks) -> None:
        super().__init__(
            live_updates=True,
            concurrency_count=MOST_CALLS,
            update_intervals=1,
            max_size=MOST_CALLS,
            blocks=blocks,
            default_concurrency_limit=None,
        )
        self.sleep_when_free = LOOKS_EVERY
        self.progress_update_sleep_when_free = PROGRESS_LOOKS_EVERY
        self._calls: dict[str, _Call] = {}

    async def push(self, body: Any, request: Any, username: str | None) -> Any:
        """As Gradio's: whether the call was accepted, its id or the reason, and the kind of refusal."""
        if len(body.session_hash or "") > LONGEST_SESSION:
            return False, f"session_hash is too long; it may have {LONGEST_SESSION} characters", "error"
        if body.batched:
            return False, "calls cannot be batched; send them one by one", "error"
        self._settle()
        caller, owner = request.state.caller, request.state.sees
        sharing = (call for call in self._calls.values() if call.event.session_hash == body.session_hash)
        if any(call.owner != owner for call in sharing):
            return False, "session_hash is in use; send another one", "error"
        counts = Counter(call.caller for call in self._calls.values())
        if counts[caller] >= MOST_OF_CALLER or counts.total() >= MOST_CALLS:
            limits = f"{MOST_OF_CALLER} calls of one caller and {MOST_CALLS} of all"
            return False, f"at most {limits} can be under way or unread; fetch their answers first", "queue_full"
        answer = await super().push(body, request, username)
        if answer[0] and (event := self.event_ids_to_events.get(str(answer[1]))) is not None:
            self._calls[event._id] = _Call(caller, owner, event)
        return answer

    def is_of(self, owner: str | None, name: str) -> bool:
        """Whether there are calls of this id, or of this session, and all of them are this owner's."""
        calls = [call for key, call in self._calls.items() if name in (key, call.event.session_hash)]
        return bool(calls) and all(call.owner == owner for call in calls)

    def send_message(self, event: Event, event_message: EventMessage) -> None:
        """A call ends at its next step when its session is gone, or nobody fetches its messages."""
        messages = self.pending_messages_per_session.get(event.session_hash)
        if messages is None or messages.qsize() >= MOST_MESSAGES:
            event.alive = False
        else:
            super().send_message(event, event_message)

    def compute_analytics_summary(self, records: Any) -> Any:
        """For the monitoring page, which is not offered; it would take longer than most calls."""
        return self.cached_event_analytics_summary

    def _settle(self) -> None:
        """Forget the calls that are over: answered and fetched, left by their callers, or not fetched for too long."""
        now = time.monotonic()
        for name, call in list(self._calls.items()):
            if name in self.event_ids_to_events:
                continue
            session = call.event.session_hash
            unread = self.pending_event_ids_session.get(session, set())
            call.over_since = call.over_since or now
            if not call.event.alive or name not in unread or now - call.over_since > UNREAD_SECONDS:
                del self._calls[name]
                unread.discard(name)
                if not unread:
                    self.pending_event_ids_session.pop(session, None)
                    self.pending_messages_per_session.pop(session, None)
