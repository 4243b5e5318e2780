"""Metadata of audio files, from title to cover and chapters, as FFmpeg's muxers write them."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import av
import numpy as np
from av.audio.stream import AudioStream
from av.container import OutputContainer
from av.stream import Disposition

from manuscript.untrusted import Cover

_ISO_639_2: dict[str, str] = json.loads(Path(__file__).with_name("language-codes.json").read_text("utf-8"))
"""The codes that MP4 and ID3 require, by those of EPUB and the web."""
MOST_COUNTED = 255
"""Chapters that an MP3's table of contents and Nero's list in an M4B, beside QuickTime's, can have: they count in a
byte. Players that prefer these would miss the others, so files with more have only the chapters themselves."""


@dataclass(frozen=True, slots=True)
class Tags:
    """Tags; blank, empty and None are left out."""

    title: str
    author: str = ""
    narrator: str = ""
    year: int | None = None
    album: str = ""
    track: tuple[int, int] | None = None  # track number from 1, and the number of tracks
    language: str = ""  # BCP 47, such as en or pt-BR
    genre: str = "Audiobook"  # left out without an album
    cover: Cover | None = None
    chapters: tuple[tuple[str, float, float], ...] = ()  # title, start and end in seconds

    @property
    def metadata(self) -> dict[str, str]:
        """The tags by FFmpeg's names; audiobooks have their narrator as composer."""
        track = f"{self.track[0]}/{self.track[1]}" if self.track else ""
        tags = {"title": self.title, "artist": self.author, "album_artist": self.author, "album": self.album}
        tags |= {"track": track, "language": self.language, "genre": self.genre if self.album else ""}
        tags |= {"composer": self.narrator, "date": "" if self.year is None else str(self.year)}
        return {name: value for name, value in tags.items() if value}

    @property
    def iso_language(self) -> str:
        """Three letters; blank if unknown."""
        code = self.language.partition("-")[0].lower()
        return code if len(code) == 3 else _ISO_639_2.get(code, "")


def tag(file: OutputContainer, sound: AudioStream, tags: Tags) -> None:
    """Tag a file that has all its streams except the cover's, and no data yet."""
    file.metadata.update(_iso(tags))
    if tags.iso_language:
        sound.metadata["language"] = tags.iso_language
    if tags.chapters:
        file.set_chapters([_chapter(number, *chapter) for number, chapter in enumerate(tags.chapters)])
    if tags.cover is None:
        return
    with av.open(io.BytesIO(tags.cover.image), "r", format=tags.cover.demuxer) as image:
        picture = file.add_stream_from_template(image.streams.video[0])
        picture.disposition = Disposition.attached_pic
        picture.metadata["comment"] = "Cover (front)"
        packet = next(packet for packet in image.demux(image.streams.video[0]) if packet.size)
        packet.stream, packet.pts, packet.dts = picture, 0, 0
        file.mux(packet)


def id3(tags: Tags) -> bytes:
    """The ID3 tag to put before an MP3: FFmpeg writes one only into a seekable file."""
    buffer = io.BytesIO()
    with av.open(buffer, "w", format="mp3", container_options={"id3v2_version": "3", "write_xing": "0"}) as file:
        stream = file.add_stream("libmp3lame", rate=44_100, layout="mono")
        assert isinstance(stream, AudioStream)
        stream.codec_context.format = "s16p"
        tag(file, stream, tags)
        frame = av.AudioFrame.from_ndarray(np.zeros((1, 1152), np.int16), format="s16p", layout="mono")
        frame.sample_rate, frame.pts = 44_100, 0
        file.mux(stream.encode(frame))
        file.mux(stream.encode(None))
    data = buffer.getvalue()
    size = 10 + sum((byte & 0x7F) << shift for byte, shift in zip(data[6:10], _SEVEN_BITS, strict=True))
    return data[:size] if len(tags.chapters) <= MOST_COUNTED else _without_contents(data[:size])


_SEVEN_BITS = (21, 14, 7, 0)


def _without_contents(tag: bytes) -> bytes:
    """An ID3 tag without its table of contents."""

    def end(at: int) -> int:
        return at + 10 + int.from_bytes(tag[at + 4 : at + 8], "big")

    at = 10
    while tag[at : at + 4] != b"CTOC":
        at = end(at)
    frames = tag[10:at] + tag[end(at) :]
    return tag[:6] + bytes(len(frames) >> shift & 0x7F for shift in _SEVEN_BITS) + frames


def _iso(tags: Tags) -> Mapping[str, str]:
    metadata = tags.metadata
    metadata.pop("language", None)
    return metadata | ({"language": tags.iso_language} if tags.iso_language else {})


def _chapter(number: int, title: str, start: float, end: float) -> av.container.core.Chapter:
    base = Fraction(1, 1000)
    begin, stop = round(1000 * start), round(1000 * end)
    return {"id": number, "start": begin, "end": stop, "time_base": base, "metadata": {"title": title}}
