"""The queue of Gradio's calls, bounded for each caller; unread answers do not end it."""

from __future__ import annotations

import asyncio
import re
import time
from collections import Counter
from dataclasses import dataclass
from typing import Any

import gradio as gr
from gradio.queueing import Event, Queue
from gradio.server_messages import EventMessage, ProcessCompletedMessage

MOST_CALLS = 1500
"""Calls of all callers at a time; the engine and the library keep their own order. Gradio keeps 2,000 sessions."""
MOST_OF_CALLER = 100
"""Calls of one caller that wait, are under way, or have an answer that was not fetched …"""
MOST_BYTES = 16 * 2**20
"""… and the bytes of those that are not over."""
MOST_MESSAGES = 4096
"""Of a session that nobody fetches: more than the pieces of the longest take."""
UNREAD_SECONDS = 600
"""How long an answer is kept for its caller."""
SETTLE_SECONDS = 60
"""Between two looks for answers that have expired."""
SESSION = re.compile(r"[A-Za-z0-9_-]{1,128}")
"""Names of sessions, which callers choose."""
LOOKS_EVERY, PROGRESS_LOOKS_EVERY = 0.02, 0.1
"""Seconds. Gradio's own (6.31: 0.001 and 0.01) take a twelfth of a slow core from the server's loop at rest."""


@dataclass(slots=True)
class _Call:
    """``owner``: the only caller who may have its answer; None, where no keys are set: anyone who knows its id.

    ``size``: bytes of its body. ``over_since``: a time of the monotonic clock, once it is neither waiting nor running.
    """

    caller: str
    owner: str | None
    size: int
    event: Event
    over_since: float | None = None
    is_cancelled: bool = False


class CallQueue(Queue):
    """Gradio's own (6.31) drops the oldest of 2,000 sessions. If a call of that session was waiting, the next message
    to it ended the queue for everybody. It also keeps the body of a call until its answer is fetched. Nothing public
    tells which calls are under way or unread, so its fields are read; ``tests/browser/hosting`` fails if they change.
    """

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
        self._next_look: asyncio.TimerHandle | None = None

    async def push(self, body: Any, request: Any, username: str | None) -> Any:
        """As Gradio's: whether the call was accepted, its id or the reason, and the kind of refusal."""
        caller, owner = request.state.caller, request.state.sees
        if body.session_hash is not None and not SESSION.fullmatch(body.session_hash):
            return False, "session_hash may have 1 to 128 letters, digits, _ and -", "error"
        if self.is_foreign(owner, body.session_hash):
            return False, "session_hash is in use; send another one", "error"
        if body.batched:
            return False, "calls cannot be batched; send them one by one", "error"
        length = request.headers.get("content-length", "")
        size = int(length) if length.isdecimal() and len(length) < 12 else MOST_BYTES // 4
        if (refusal := self._refusal(caller, size)) is not None:
            return False, refusal, "queue_full"
        answer = await super().push(body, request, username)
        if answer[0] and (event := self.event_ids_to_events.get(str(answer[1]))) is not None:
            self._calls[event._id] = _Call(caller, owner, size, event)
            self._look_again()
        return answer

    def is_foreign(self, owner: str | None, session: str | None) -> bool:
        """Whether a session has calls of another owner."""
        return any(call.owner != owner for call in self._calls.values() if call.event.session_hash == session)

    def can_fetch(self, owner: str | None, name: str) -> bool:
        """Whether there are messages of the call of this id, or of this session, and they are for this owner."""
        calls = [call for key, call in self._calls.items() if name in (key, call.event.session_hash)]
        sessions = {call.event.session_hash for call in calls}
        return bool(calls) and not any(
            self.is_foreign(owner, session) or session not in self.pending_messages_per_session for session in sessions
        )

    async def cancel(self, owner: str | None, name: str) -> bool:
        """End the call of this id; whether there is one of this owner.

        Gradio's own cancels all calls of the session to the same endpoint, and answers only one of them.
        """
        call = self._calls.get(name)
        if call is None or call.owner != owner:
            return False
        if not call.is_cancelled:
            call.is_cancelled = True  # to cancel a task that is ending already would keep it from ending
            await self.remove_from_queue(name)
            tasks = [task for task in self._asyncio_tasks if task.get_name().endswith(f"<gradio-sep>{name}")]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            if name in self.pending_event_ids_session.get(call.event.session_hash, ()):
                self.send_message(call.event, ProcessCompletedMessage(output={}, success=True))
        return True

    def send_message(self, event: Event, event_message: EventMessage) -> None:
        """A call ends at its next step when its session is gone, or nobody fetches its messages."""
        messages = self.pending_messages_per_session.get(event.session_hash)
        if messages is None or messages.qsize() >= MOST_MESSAGES:
            event.alive = False
        else:
            super().send_message(event, event_message)
        if isinstance(event_message, ProcessCompletedMessage):
            event.data = event.request = None  # type: ignore[assignment]  # nothing needs the body any more

    def compute_analytics_summary(self, records: Any) -> Any:
        """For the monitoring page, which is not offered; it would take longer than most calls."""
        return self.cached_event_analytics_summary

    def _refusal(self, caller: str, size: int) -> str | None:
        """Why a caller cannot make another call now."""
        self._settle()
        counts = Counter(call.caller for call in self._calls.values())
        if counts.total() >= MOST_CALLS:
            largest = counts.most_common(1)[0][0]
            over = (name for name, call in self._calls.items() if call.caller == largest and call.over_since)
            if (oldest := next(over, None)) is not None:
                self._drop(oldest)
                counts[largest] -= 1
        if counts[caller] >= MOST_OF_CALLER or counts.total() >= MOST_CALLS:
            limits = f"{MOST_OF_CALLER} calls of one caller and {MOST_CALLS} of all"
            return f"at most {limits} can be under way or unread; fetch their answers first"
        unfinished = sum(call.size for call in self._calls.values() if call.caller == caller and not call.over_since)
        if unfinished + size > MOST_BYTES:
            return f"at most {MOST_BYTES >> 20} MiB of one caller's calls can be under way; wait for some of them"
        return None

    def _settle(self) -> None:
        """Forget the calls that are over: answered and fetched, left by their callers, or not fetched for too long."""
        now = time.monotonic()
        under_way = {event._id for waiting in self.event_queue_per_concurrency_id.values() for event in waiting.queue}
        under_way |= {event._id for job in self.active_jobs if job is not None for event in job}
        for name, call in list(self._calls.items()):
            if name in under_way:
                call.over_since = None
                continue
            call.over_since = call.over_since or now
            unread = self.pending_event_ids_session.get(call.event.session_hash, ())
            if not call.event.alive or name not in unread or now - call.over_since > UNREAD_SECONDS:
                self._drop(name)

    def _drop(self, name: str) -> None:
        session = self._calls.pop(name).event.session_hash
        self.event_ids_to_events.pop(name, None)
        unread = self.pending_event_ids_session.get(session, set())
        unread.discard(name)
        if not unread:
            self.pending_event_ids_session.pop(session, None)
            self.pending_messages_per_session.pop(session, None)

    def _look_again(self) -> None:
        """As long as there are calls, also when no further one comes."""

        def look() -> None:
            self._next_look = None
            self._settle()
            if self._calls:
                self._look_again()

        if self._next_look is None:
            self._next_look = asyncio.get_running_loop().call_later(SETTLE_SECONDS, look)
