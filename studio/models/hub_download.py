"""Downloads files of a repository on the Hugging Face Hub: resumes interrupted downloads, and verifies all files."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import logging
import os
import re
import shutil
import sys
import urllib.request
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import IO, Any

import httpx
from anyio import CancelScope, to_thread

from engine import offline_by
from studio.models.catalogue import HubFiles, hub_endpoint
from studio.supervisor import end_tasks

log = logging.getLogger(__name__)

PATIENCE = 30.0
"""Seconds without a byte after which the connection counts as lost."""
ATTEMPTS = 5
"""Number of consecutive connections without data after which a download fails."""
PAUSE = 1.0
"""Seconds between two attempts."""
SPARE = 2**28
"""Bytes that a download leaves free on the disk."""
_PIECE = 2**20
_MAX_LISTING_BYTES = 2**23  # a listing of 10,000 files has some two million
_COMMIT = re.compile(r"[0-9a-f]{40}")
_NOT_A_LISTING = (KeyError, TypeError, AttributeError, ValueError, RecursionError)
"""Errors of parsing another answer, such as the login page of a hotel's network."""


@dataclass(frozen=True, slots=True)
class DownloadStatus:
    """Progress in bytes; after an end, what is kept for the next attempt. ``total`` is 0 until the hub has answered;
    ``error``: why the last attempt failed."""

    is_running: bool = False
    done: int = 0
    total: int = 0
    error: str | None = None


@dataclass(frozen=True, slots=True)
class _HubFile:
    name: str
    size: int
    sha256: str | None
    git_sha1: str | None
    """For a small file: git's hash over its size and content."""

    def is_intact(self, path: Path) -> bool:
        """Whether a file has the hub's size and check sum. Blocking: seconds per gigabyte."""
        if path.stat().st_size != self.size:
            return False
        if self.sha256:
            digest, expected = hashlib.sha256(), self.sha256
        elif self.git_sha1:
            digest, expected = hashlib.sha1(f"blob {self.size}\0".encode(), usedforsecurity=False), self.git_sha1
        else:
            return True
        with path.open("rb") as file:
            while piece := file.read(_PIECE):
                digest.update(piece)
        return digest.hexdigest() == expected


class HubDownload:
    """Downloads in the background, one at a time. Used from one event loop."""

    def __init__(
        self,
        files: HubFiles,
        place: Callable[[str], Path],
        finish: Callable[[str, Path], Awaitable[None]],
        clean_up: Callable[[], None],
    ) -> None:
        """``place``: commit → the folder for its files. ``finish`` is called with both once all files are in it.

        ``clean_up`` removes unfinished files, in a thread.
        """
        self._files = files
        self._place, self._finish, self._clean_up = place, finish, clean_up
        self._task: asyncio.Task[None] | None = None
        self._is_cancelled = self._is_next = False
        self.status = DownloadStatus()

    def begin(self) -> None:
        """Begin the download unless it is already running, or once the files of a cancelled one are removed."""
        self._is_next = self.status.is_running and self._is_cancelled
        if not self.status.is_running:
            self._is_cancelled = False
            self._begin(self._run())

    async def wait(self) -> None:
        """Wait for the end of the download; `status` has its error."""
        if self._task is not None:
            await asyncio.wait({self._task})

    async def cancel(self) -> None:
        """Cancel the download, and remove its unfinished files or those of a paused or earlier one; if they cannot be
        removed, `status` has the error."""
        self._is_cancelled = True
        if self.status.is_running:
            await self.stop()
        else:
            self._begin(to_thread.run_sync(self._clean_up))
            await self.wait()

    async def stop(self) -> None:
        """End the download."""
        self._is_next = False
        if self._task is not None:
            await end_tasks(self._task)

    def _begin(self, work: Coroutine[Any, Any, None]) -> None:
        self.status = DownloadStatus(is_running=True)
        self._task = asyncio.create_task(work)
        self._task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        """Put any error into the status, so that every failure is shown."""
        problem = None if task.cancelled() else task.exception()
        is_kept = self._files.resumes and not self._is_cancelled and (task.cancelled() or problem is not None)
        done, total = (self.status.done, self.status.total) if is_kept else (0, 0)
        self.status = DownloadStatus(False, done, total, None if problem is None else self._reason(problem))
        if problem is not None:
            log.warning("%s cannot be used: %s", self._files.repo, self.status.error)
        if self._is_next:
            self.begin()

    async def _run(self) -> None:
        try:
            await self._attempt()
        except BaseException:
            if self._is_cancelled or not self._files.resumes:
                with CancelScope(shield=True):
                    await to_thread.run_sync(self._clean_up)
            raise

    async def _attempt(self) -> None:
        if name := offline_by():
            raise ValueError(f"{name} is set, so nothing is downloaded from the hub")
        async with await to_thread.run_sync(_client) as client:  # reads the machine's certificates
            commit, files = await self._listing(client)
            folder = self._place(commit)
            try:
                await self._download_all(client, commit, files, folder)
            except OSError as error:
                raise ValueError(f"the files cannot be written to {folder}: {error.strerror or error}") from error
        await self._finish(commit, folder)

    async def _download_all(self, client: httpx.AsyncClient, commit: str, files: list[_HubFile], folder: Path) -> None:
        repo = self._files.repo
        await to_thread.run_sync(partial(folder.mkdir, parents=True, exist_ok=True))
        with _locked(folder, repo):
            there = await to_thread.run_sync(_bytes_in, folder, files)
            self.status = replace(self.status, total=sum(file.size for file in files))
            await to_thread.run_sync(_check_disk, folder, self.status.total - there, repo)
            for file in files:
                await self._download(client, f"/{repo}/resolve/{commit}/{file.name}", file, folder)

    async def _listing(self, client: httpx.AsyncClient) -> tuple[str, list[_HubFile]]:
        """The newest commit, and its requested files."""
        request = self._files
        data = bytearray()
        async with client.stream("GET", f"/api/models/{request.repo}", params={"blobs": "true"}) as answer:
            self._check(answer)
            async for piece in answer.aiter_bytes():
                data += piece
                if len(data) > _MAX_LISTING_BYTES:
                    raise ValueError(f"{client.base_url.host} did not answer with a list of files")
        try:
            commit, files = await to_thread.run_sync(_parse_listing, bytes(data), request.names)
        except _NOT_A_LISTING as problem:
            host = client.base_url.host
            raise ValueError(f"{host} did not answer with a list of files") from problem
        if not _COMMIT.fullmatch(commit) or not {file.name for file in files} >= request.needed:
            raise ValueError(f"{request.repo} on the hub no longer has the files {', '.join(sorted(request.needed))}")
        if sum(file.size for file in files) > request.max_bytes:
            raise ValueError(f"{request.repo} now has more than {request.max_bytes / 1e9:.1f} GB, and is not trusted")
        return commit, sorted(files, key=lambda file: file.name == request.last)

    async def _download(self, client: httpx.AsyncClient, path: str, file: _HubFile, folder: Path) -> None:
        target, part = folder / file.name, _part_of(folder / file.name)
        if not await to_thread.run_sync(target.is_file):  # only verified files have their names
            await to_thread.run_sync(partial(part.parent.mkdir, exist_ok=True))
            await to_thread.run_sync(_clear_odd, part)
            before, failures = self.status.done, 0
            while (here := await to_thread.run_sync(_size_of, part)) < file.size or not here:
                self.status = replace(self.status, done=before + here)
                try:
                    await self._append(client, path, file, part, here)
                    break
                except httpx.TransportError:
                    failures = 1 if await to_thread.run_sync(_size_of, part) > here else failures + 1
                    if failures >= ATTEMPTS:
                        raise
                    await asyncio.sleep(PAUSE)
            if not await to_thread.run_sync(file.is_intact, part):
                await to_thread.run_sync(partial(part.unlink, missing_ok=True))
                raise ValueError(f"{file.name} differs from the hub's file, and was removed; try again")
            await to_thread.run_sync(part.replace, target)
            self.status = replace(self.status, done=before)
        self.status = replace(self.status, done=self.status.done + file.size)

    async def _append(self, client: httpx.AsyncClient, path: str, file: _HubFile, part: Path, start: int) -> None:
        """The rest of a file after ``start`` bytes, or all of it from a server that ignores ranges."""
        headers = {"Accept-Encoding": "identity"} | ({"Range": f"bytes={start}-"} if start else {})
        async with client.stream("GET", path, headers=headers) as answer:
            self._check(answer)
            known = start if answer.status_code != httpx.codes.PARTIAL_CONTENT else 0
            if answer.headers.get("Content-Type", "").startswith("text/html"):
                raise httpx.RemoteProtocolError("it answered with a web page, such as a network's login page")
            with await to_thread.run_sync(lambda: open(part, "ab", opener=_without_links)) as sink:
                async for received in answer.aiter_bytes(_PIECE):
                    piece, known = received[known:], max(known - len(received), 0)
                    if (start := start + len(piece)) > file.size:
                        return  # the check sum will not match
                    missing = self.status.total - self.status.done
                    await to_thread.run_sync(_check_disk, part.parent, missing, self._files.repo, len(piece))
                    await to_thread.run_sync(sink.write, piece)
                    self.status = replace(self.status, done=self.status.done + len(piece))
                await to_thread.run_sync(_sync, sink)
        if start < file.size:
            raise httpx.RemoteProtocolError("its answer ended before the file did")

    def _check(self, answer: httpx.Response) -> None:
        """Raises ValueError if a token is missing, httpx.HTTPStatusError."""
        if answer.status_code in (httpx.codes.UNAUTHORIZED, httpx.codes.FORBIDDEN):
            repo, hub = self._files.repo, "https://huggingface.co"
            why = f"{repo} is available only to accounts that have accepted its terms. Accept them at {hub}/{repo}"
            how = f"create a token at {hub}/settings/tokens, and set HF_TOKEN to it or run “hf auth login”"
            raise ValueError(f"{why}, {how}; then try again")
        answer.raise_for_status()

    def _reason(self, problem: BaseException) -> str:
        """The reason of the failure, as a message."""
        if isinstance(problem, ValueError):
            return str(problem)
        host = httpx.URL(hub_endpoint()).host
        if isinstance(problem, httpx.HTTPStatusError):
            status = problem.response.status_code
            is_passing = status == httpx.codes.TOO_MANY_REQUESTS or status >= 500
            remedy = "Try again later." if is_passing else self._files.without
            return f"{host} answered {status} for {problem.request.url.path}. {remedy}"
        if isinstance(problem, httpx.ReadTimeout):
            return f"{host} stopped sending; try again later"
        if isinstance(problem, httpx.HTTPError):
            why = str(problem) or type(problem).__name__
            if "CERTIFICATE_VERIFY_FAILED" in why:
                remedy = "set SSL_CERT_FILE to a file with the certificate of your organisation's proxy"
                return f"{host} shows a certificate that is not trusted here ({why}): {remedy}, and restart"
            return f"{host} {_connection_trouble()} ({why}). {self._files.without}"
        if isinstance(problem, MemoryError):
            return "it was downloaded, but there is not enough memory to load it: free some, and try again"
        if isinstance(problem, ImportError):
            return f"it was downloaded, but a library that it needs cannot be loaded here: {problem}"
        if isinstance(problem, OSError):
            return f"{problem.filename or 'a file'} cannot be read or written: {problem.strerror or problem}"
        return f"it cannot be loaded here: {str(problem) or type(problem).__name__}"


def _connection_trouble() -> str:
    """Describe the connection problem, with the proxy that is used for the hub, but not its password."""
    hub, proxies = httpx.URL(hub_endpoint()), urllib.request.getproxies()
    proxy = proxies.get(hub.scheme) or proxies.get("all")
    if proxy and not urllib.request.proxy_bypass(hub.host):
        place = proxy.rpartition("@")[2].rpartition("//")[2]
        return (
            f"cannot be reached through the proxy {place} (HTTPS_PROXY, ALL_PROXY), or the connection was interrupted"
        )
    return "cannot be reached, or the connection was interrupted; if this network needs a proxy, set HTTPS_PROXY"


def remove_parts(folder: Path, repo: str) -> None:
    """Remove the unfinished files of a download. Blocking. Raises ValueError while another program writes them."""
    if parts := list(folder.rglob(".*.part")):
        with _locked(folder, repo):
            for part in parts:
                part.unlink(missing_ok=True)


def _client() -> httpx.AsyncClient:
    endpoint = hub_endpoint()  # before the import, which reads it too
    from huggingface_hub import get_token

    token = get_token() or ""
    if not (token.isascii() and token.isprintable()):
        raise ValueError("the token of HF_TOKEN or “hf auth login” has characters that no token has; copy it again")
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    try:
        return httpx.AsyncClient(base_url=endpoint, headers=headers, follow_redirects=True, timeout=PATIENCE)
    except (ImportError, ValueError, httpx.InvalidURL) as error:
        raise ValueError(f"the proxy in ALL_PROXY, HTTPS_PROXY or HTTP_PROXY cannot be used: {error}") from error
    except OSError as error:
        why = f"certificates cannot be read ({error.strerror or error})"
        raise ValueError(f"{why}; check SSL_CERT_FILE and SSL_CERT_DIR") from error


def _parse_listing(data: bytes, names: re.Pattern[str]) -> tuple[str, list[_HubFile]]:
    """Blocking: 0.1 s for the largest listing. Raises _NOT_A_LISTING."""
    answer: dict[str, Any] = json.loads(data)
    files = [
        _HubFile(entry["rfilename"], int(entry["size"]), (entry.get("lfs") or {}).get("sha256"), entry.get("blobId"))
        for entry in answer["siblings"]
        if names.fullmatch(entry["rfilename"])
    ]
    return str(answer["sha"]), files


def _bytes_in(folder: Path, files: list[_HubFile]) -> int:
    """The bytes of complete and partial files."""
    targets = (folder / file.name for file in files)
    return sum(max(_size_of(target), _size_of(_part_of(target))) for target in targets)


def _part_of(target: Path) -> Path:
    return target.with_name(f".{target.name}.part")


def _size_of(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def _check_disk(folder: Path, missing: int, repo: str, now: int | None = None) -> None:
    """``missing``: bytes of the download; ``now``: those that are about to be written, None for all of them."""
    free = shutil.disk_usage(folder).free
    if (missing if now is None else now) + SPARE > free:
        why = f"{repo} needs {missing / 1e9:.2f} GB more, but {free / 1e9:.2f} GB are free on the disk of {folder}"
        raise ValueError(f"{why}: free some space, or set HF_HOME to a folder on a larger disk")


def _clear_odd(part: Path) -> None:
    """Remove anything but a file: a link would be followed, and a pipe waited for."""
    if part.is_symlink() or (part.exists() and not part.is_file()):
        part.unlink()


def _without_links(path: str, flags: int) -> int:
    return os.open(path, flags | getattr(os, "O_NOFOLLOW", 0), 0o666)


def _sync(file: IO[bytes]) -> None:
    file.flush()
    os.fsync(file.fileno())


@contextlib.contextmanager
def _locked(folder: Path, repo: str) -> Iterator[None]:
    """Lock the folder against simultaneous downloads. Raises ValueError if another program is downloading."""
    path = folder / ".lock"
    _clear_odd(path)
    busy = f"another program on this machine is downloading {repo}; wait for it"
    if sys.platform == "win32":  # which removes no open file, so that being open is a lock
        try:
            path.unlink(missing_ok=True)
            held = open(path, "xb")  # noqa: SIM115
        except OSError as error:
            raise ValueError(busy) from error
        try:
            with held:
                yield
        finally:
            path.unlink(missing_ok=True)
        return
    import fcntl

    with open(path, "ab", opener=_without_links) as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if not os.path.samestat(os.fstat(lock.fileno()), path.stat()):
                raise FileNotFoundError  # its owner has just removed it, and a third program may hold the next one
        except OSError as error:
            raise ValueError(busy) from error
        try:
            yield
        finally:
            Path(lock.name).unlink(missing_ok=True)
