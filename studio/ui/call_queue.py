"""Gradio's call queue with limits for each caller; unread answers do not block it."""

from __future__ import annotations

import asyncio
import re
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import gradio as gr
from gradio.queueing import Event, Queue
from gradio.server_messages import EventMessage, ProcessCompletedMessage

from studio.supervisor import end_tasks
from studio.work import PLACE

MAX_CALLS = 1500
"""Concurrent calls of all callers; the engine and the library have their own queues. Gradio keeps 2,000 sessions."""
MAX_CALLS_PER_CALLER = 100
"""Maximum calls of one caller that wait, run, or have an unread answer."""
MAX_BYTES_PER_CALLER = 16 * 2**20
"""Maximum bytes of one caller's unfinished calls."""
MAX_MESSAGES = 4096
"""Maximum unread messages of a session: more than the pieces of the longest take."""
UNREAD_SECONDS = 600  # time for which an unread answer is kept
SETTLE_SECONDS = 60  # interval of the search for expired answers
SESSION = re.compile(r"[A-Za-z0-9_-]{1,128}")
"""Valid session names, which callers choose."""
POLL_SECONDS, PROGRESS_POLL_SECONDS = 0.02, 0.1
"""Gradio's own values (6.31: 0.001 and 0.01) take a twelfth of a slow core while the server is idle."""


@dataclass(slots=True)
class _Call:
    """``owner``: the only caller that may read the answer; None without keys: anyone who knows the call's id.

    ``size``: bytes of the body. ``finished_at``: monotonic time at which it no longer waited or ran.
    """

    caller: str
    owner: str | None
    size: int
    event: Event
    finished_at: float | None = None
    is_cancelled: bool = False


class CallQueue(Queue):
    """Limits the calls of each caller.

    Gradio's own queue (6.31) drops the oldest of 2,000 sessions; a waiting call of a dropped session then ended the
    queue for all callers. It also keeps the body of a call until the answer is read. It has no public list of running
    or unread calls, so this class reads its fields; ``tests/browser/hosting`` fails if they change.
    """

    def __init__(self, blocks: gr.Blocks) -> None:
        super().__init__(
            live_updates=True,
            concurrency_count=MAX_CALLS,
            update_intervals=1,
            max_size=MAX_CALLS,
            blocks=blocks,
            default_concurrency_limit=None,
        )
        self.sleep_when_free = POLL_SECONDS
        self.progress_update_sleep_when_free = PROGRESS_POLL_SECONDS
        self._calls: dict[str, _Call] = {}
        self._read = set[str]()  # sessions with a reader
        self._next_check: asyncio.TimerHandle | None = None

    async def push(self, body: Any, request: Any, username: str | None) -> Any:
        """Add a call, as in Gradio. Returns whether it was accepted, its id or the reason, and the kind of refusal."""
        caller, owner = request.state.caller, request.state.owner_filter
        request.state.place = PLACE.get()
        if body.session_hash is not None and not SESSION.fullmatch(body.session_hash):
            return False, "session_hash may have 1 to 128 letters, digits, _ and -", "error"
        if self.is_foreign(owner, body.session_hash):
            return False, "session_hash is in use; send another one", "error"
        if body.batched:
            return False, "calls cannot be batched; send them one by one", "error"
        length = request.headers.get("content-length", "")
        size = int(length) if length.isdecimal() and len(length) < 12 else MAX_BYTES_PER_CALLER // 4
        if (refusal := self._refusal(caller, size)) is not None:
            return False, refusal, "queue_full"
        answer = await super().push(body, request, username)
        if answer[0] and (event := self.event_ids_to_events.get(str(answer[1]))) is not None:
            self._calls[event._id] = _Call(caller, owner, size, event)
            self._schedule_check()
        return answer

    async def process_events(self, events: list[Event], *values: Any) -> None:
        """Run a call, as in Gradio, in the name of its sender, for the studio's queues."""
        if events[0].request is not None:  # it was not cancelled
            PLACE.set(events[0].request.state.place)
        await super().process_events(events, *values)

    def is_foreign(self, owner: str | None, session: str | None) -> bool:
        """Whether a session has calls of another owner."""
        return any(call.owner != owner for call in self._calls.values() if call.event.session_hash == session)

    @contextmanager
    def reading(self, owner: str | None, name: str) -> Iterator[bool]:
        """Whether this owner may read the messages of the call or session of this name in this block. There must be
        unread ones, and no other reader: Gradio would fail after a minute of heartbeats, or divide them."""
        self._drop_finished()
        calls = [call for key, call in self._calls.items() if name in (key, call.event.session_hash)]
        sessions = {call.event.session_hash for call in calls} - self._read
        if any(each not in self.pending_messages_per_session or self.is_foreign(owner, each) for each in sessions):
            sessions = set()
        self._read |= sessions
        try:
            yield bool(sessions)
        finally:
            self._read -= sessions

    async def cancel(self, owner: str | None, name: str) -> bool:
        """Cancel a call by its id. Returns whether this owner has such a call.

        Gradio's own cancels all calls of the session to the same endpoint, and answers only one of them.
        """
        call = self._calls.get(name)
        if call is None or call.owner != owner:
            return False
        if not call.is_cancelled:
            await self.remove_from_queue(name)
            await end_tasks(*self._tasks_to_cancel(name))
            if name in self.pending_event_ids_session.get(call.event.session_hash, ()):
                self.send_message(call.event, ProcessCompletedMessage(output={}, success=True))
        return True

    async def clean_events(self, *, session_hash: str | None = None, event_id: str | None = None) -> None:
        """End the calls of a client that has left. Gradio's own lets running ones continue to their next result."""
        for name, call in self._calls.items():
            if event_id == name or session_hash == call.event.session_hash:
                for task in self._tasks_to_cancel(name):
                    task.cancel()
        await super().clean_events(session_hash=session_hash, event_id=event_id)

    def _tasks_to_cancel(self, name: str) -> list[asyncio.Task[Any]]:
        """The tasks of a running call, once: cancelling a task again would interrupt its cleanup."""
        if self._calls[name].is_cancelled:
            return []
        self._calls[name].is_cancelled = True
        return [task for task in self._asyncio_tasks if task.get_name().endswith(f"<gradio-sep>{name}")]

    def send_message(self, event: Event, event_message: EventMessage) -> None:
        """Send a message; a call whose session is gone or unread ends at its next step."""
        messages = self.pending_messages_per_session.get(event.session_hash)
        if messages is None or messages.qsize() >= MAX_MESSAGES:
            event.alive = False
        else:
            super().send_message(event, event_message)
        if isinstance(event_message, ProcessCompletedMessage):
            event.data = event.request = None  # type: ignore[assignment]  # the body is no longer needed

    def compute_analytics_summary(self, records: Any) -> Any:
        """Skip the summary for the monitoring page, which is disabled; it would take longer than most calls."""
        return self.cached_event_analytics_summary

    def _refusal(self, caller: str, size: int) -> str | None:
        """The reason for refusing another call of a caller, or None."""
        self._drop_finished()
        counts = Counter(call.caller for call in self._calls.values())
        if counts.total() >= MAX_CALLS:
            largest = counts.most_common(1)[0][0]
            finished = (name for name, call in self._calls.items() if call.caller == largest and call.finished_at)
            if (oldest := next(finished, None)) is not None:
                self._drop(oldest)
                counts[largest] -= 1
        if counts[caller] >= MAX_CALLS_PER_CALLER or counts.total() >= MAX_CALLS:
            limits = f"{MAX_CALLS_PER_CALLER} calls of one caller and {MAX_CALLS} of all"
            return f"at most {limits} can be running or unread; read their answers first"
        unfinished = sum(call.size for call in self._calls.values() if call.caller == caller and not call.finished_at)
        if unfinished + size > MAX_BYTES_PER_CALLER:
            mebibytes = MAX_BYTES_PER_CALLER >> 20
            return f"at most {mebibytes} MiB of one caller's calls can be running; wait for some of them to finish"
        return None

    def _drop_finished(self) -> None:
        """Drop calls that are read, abandoned, or unread for too long."""
        now = time.monotonic()
        active = {event._id for waiting in self.event_queue_per_concurrency_id.values() for event in waiting.queue}
        active |= {event._id for job in self.active_jobs if job is not None for event in job}
        for name, call in list(self._calls.items()):
            if name in active:
                call.finished_at = None
                continue
            call.finished_at = call.finished_at or now
            unread = self.pending_event_ids_session.get(call.event.session_hash, ())
            if not call.event.alive or name not in unread or now - call.finished_at > UNREAD_SECONDS:
                self._drop(name)

    def _drop(self, name: str) -> None:
        session = self._calls.pop(name).event.session_hash
        self.event_ids_to_events.pop(name, None)
        unread = self.pending_event_ids_session.get(session, set())
        unread.discard(name)
        if not unread:
            self.pending_event_ids_session.pop(session, None)
            self.pending_messages_per_session.pop(session, None)

    def _schedule_check(self) -> None:
        """Check regularly while there are calls, even if no new ones are made."""

        def check() -> None:
            self._next_check = None
            self._drop_finished()
            if self._calls:
                self._schedule_check()

        if self._next_check is None:
            self._next_check = asyncio.get_running_loop().call_later(SETTLE_SECONDS, check)
