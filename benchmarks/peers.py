"""Measures any OpenAI-compatible speech server as ours is measured: first audio, pace, load, missing audio.

python -m benchmarks.peers URL [URL ...] [--fields JSON ...] [--out FILE] requests streamed pcm from each server in
turn:
alone, with a clip in the request, in a voice uploaded before, and under load. First audio counts from before the
connection is opened. --fields, once per URL, adds fields that a server needs to its requests ({"voice": "alloy"}), or
removes one ({"max_new_tokens": null}). If a server refuses something, its message is printed and the rest is measured.
FILE has all figures so far, also if the program is stopped.

Takes with the same max_new_tokens have the same length if the model never ends by itself (benchmarks.full_size): a
difference between shortest_s and longest_s is then lost audio.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

import httpx

from benchmarks.common.material import clip, data_url, sentence
from benchmarks.common.report import Report, percentile, table
from benchmarks.serving.crowd import Crowd
from benchmarks.serving.listener import Address, Listener
from benchmarks.serving.loads import CLIP_WORDS, failures, summary

VOICE = "benchmarks-peers"
STEP = 4 * 2048 / 44_100
"""Seconds of audio in four frames of S2 Pro, the largest first piece of any peer."""
SHORT = 60
"""Frames of a short take, and of the takes before a load test, in which a server compiles and allocates."""


@dataclass
class Peer:
    """A server, and the texts for it, none used twice."""

    address: Address
    http: httpx.AsyncClient
    fields: dict[str, Any]
    _numbers: Iterator[int] = field(default_factory=lambda: count(100))

    def request(self, frames: int, **fields: Any) -> dict[str, Any]:
        """A new text of about 100 characters."""
        whole = (
            {"input": sentence(next(self._numbers)), "max_new_tokens": frames}
            | {"stream": True, "stream_format": "audio"}
            | self.fields
            | fields
        )
        return {name: value for name, value in whole.items() if value is not None}

    async def hear(self, frames: int, **fields: Any) -> Listener:
        """One take."""
        return await self.address.listen(self.request(frames, **fields))

    async def upload(self) -> str:
        """Create VOICE from a clip of ten seconds; returns the reason for a failure, else a blank."""
        form = {"name": VOICE, "ref_text": CLIP_WORDS, "consent": "A synthetic sound: nobody's voice."}
        try:
            answer = await self.http.post("audio/voices", data=form, files={"audio_sample": ("clip.wav", clip(0))})
        except httpx.HTTPError as error:
            return repr(error)
        return "" if answer.is_success else f"{answer.status_code}: {answer.text[:200]}"


class Figures:
    """One server's figures; each addition is reported at once, so that a program that is stopped loses none."""

    def __init__(self, url: str, report: Report) -> None:
        self._url, self._report = url, report
        self._figures: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        return self._figures[name]

    def add(self, **figures: Any) -> None:
        self._figures |= figures
        self._report.add({self._url: self._figures})

    def add_row(self, name: str, row: dict[str, Any]) -> None:
        """Add a row to the list of this name."""
        self.add(**{name: [*self._figures.get(name, []), row]})


def alone_row(name: str, listeners: list[Listener]) -> dict[str, Any]:
    """The measurements of one caller at a time."""
    whole = [listener for listener in listeners if not listener.error]
    first = [listener.first * 1e3 for listener in whole]
    four = [
        next((came for came, seconds in listener.pieces if seconds >= STEP), listener.ended) * 1e3 for listener in whole
    ]
    return {
        "take": name,
        "requests": len(listeners),
        "failed": len(listeners) - len(whole),
        "first_ms_p50": percentile(first, 0.5),
        "first_ms_worst": percentile(first, 1),
        "four_frames_ms_p50": percentile(four, 0.5),
        "seconds": percentile((listener.seconds for listener in whole), 0.5, 2),
        "rtf": percentile((listener.ended / listener.seconds for listener in whole), 0.5, 4),
        "underruns": sum(listener.playback()[0] for listener in whole),
        "why_failed": "; ".join(failures(listeners)) or "-",
    }


async def alone(peer: Peer, options: argparse.Namespace, has_voice: bool, figures: Figures) -> None:
    """One caller at a time, a row per way to give the voice; the first take of each is not counted."""
    clips = [{"ref_audio": data_url(clip(20 + number)), "ref_text": CLIP_WORDS} for number in range(options.repeat + 1)]
    short = min(SHORT, options.frames)
    kinds: list[tuple[str, int, list[dict[str, Any]]]] = [
        ("short", short, [{}] * (options.repeat + 1)),
        ("long", options.frames, [{}] * 4),
        ("clip of 10 s, new", short, clips),
        ("clip of 10 s, known", short, clips[:1] * (options.repeat + 1)),
    ]
    if has_voice:
        kinds.append(("uploaded voice", short, [{"voice": VOICE}] * (options.repeat + 1)))
    for name, frames, bodies in kinds:
        listeners = [await peer.hear(frames, **fields) for fields in bodies]
        figures.add_row("alone", alone_row(name, listeners[1:]))


async def at_once(peer: Peer, crowd: Crowd, streams: int, frames: int, **fields: Any) -> dict[str, Any]:
    """Many takes started at once."""
    await crowd.listen(peer.address, [peer.request(min(SHORT, frames), **fields) for _ in range(streams)])
    load = await crowd.listen(peer.address, [peer.request(frames, **fields) for _ in range(streams)])
    listeners = load.listeners
    row = {"streams": streams, "voice": fields.get("voice", "-")} | summary(load)
    lengths = [listener.seconds for listener in listeners if not listener.error]
    return row | {
        "shortest_s": percentile(lengths, 0, 2),
        "longest_s": percentile(lengths, 1, 2),
        "why_failed": "; ".join(failures(listeners)) or "-",
    }


async def measure(url: str, fields: dict[str, Any], options: argparse.Namespace, report: Report) -> None:
    """All figures of one server, reported one by one."""
    address = Address.of(url, options.key)
    base = f"{url.rstrip('/').removesuffix('/v1')}/v1/"
    headers = {"Authorization": f"Bearer {options.key}"} if options.key else {}
    figures = Figures(url, report)
    async with httpx.AsyncClient(base_url=base, timeout=120, headers=headers) as http:
        peer = Peer(address, http, fields)
        first = await peer.hear(min(SHORT, options.frames))
        if first.error:
            figures.add(why_failed=first.error)
            print(f"{url}: not measured: {first.error}", flush=True)
            return
        refusal = await peer.upload()
        try:
            figures.add(very_first_ms=round(first.first * 1e3, 1), upload_refused=refusal or None)
            await alone(peer, options, not refusal, figures)
            table(f"{url}: one caller; the very first take spoke after {figures['very_first_ms']} ms", figures["alone"])
            with Crowd() as crowd:
                for streams in options.streams:
                    figures.add_row("crowds", await at_once(peer, crowd, streams, options.frames))
                if not refusal:
                    voiced = await at_once(peer, crowd, max(options.streams), options.frames, voice=VOICE)
                    figures.add_row("crowds", voiced)
            table(f"{url}: takes of at most {options.frames} frames at once", figures["crowds"])
        finally:
            if not refusal:
                await http.delete(f"audio/voices/{VOICE}")


def _server(url: str) -> str:
    try:
        Address.of(url)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    return url


def _fields(text: str) -> dict[str, Any]:
    try:
        fields = json.loads(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text!r} is not JSON: {error}") from None
    if not isinstance(fields, dict):
        raise argparse.ArgumentTypeError(f"{text!r} is not a JSON object")
    return fields


def arguments(words: list[str] | None = None) -> argparse.Namespace:
    """Parse the command line, or these arguments."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "urls", type=_server, nargs="+", metavar="URL", help="of a server, such as http://127.0.0.1:7860"
    )
    parser.add_argument(
        "--fields", type=_fields, action="append", default=[], help="for the requests to the first URL, the second …"
    )
    parser.add_argument(
        "--key", default=os.environ.get("OPENAI_API_KEY", ""), help="sent as a bearer token (OPENAI_API_KEY)"
    )
    parser.add_argument("--streams", type=int, nargs="+", default=[8, 32, 64])
    parser.add_argument("--frames", type=int, default=250, help="of a long take and of those of a crowd")
    parser.add_argument("--repeat", type=int, default=8, help="takes of each kind of voice")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args(words)
    if len(options.fields) > len(options.urls):
        parser.error("more --fields than URLs")
    return options


async def main(options: argparse.Namespace) -> dict[str, Any]:
    report = Report(options.out)
    for url, fields in zip(options.urls, options.fields + [{}] * len(options.urls), strict=False):
        await measure(url, fields, options, report)
    report.close()
    return report.results


if __name__ == "__main__":
    asyncio.run(main(arguments()))
