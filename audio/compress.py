"""MP3, Ogg Opus, AAC (ADTS), FLAC and G.711 as streams: FFmpeg's encoders, set to output data immediately."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import av
import numpy as np
from av.audio.stream import AudioStream
from av.container import OutputContainer

from audio.resampler import Resampler

# Otherwise FFmpeg starts one thread per core, up to 16, for each open encoder: PyAV divides an encoder's input into
# frames with a filter graph of its own, and has no option for that graph's threads. A wheel has the library beside it.
for _package, _folder in (Path(av.__file__).parent, ".dylibs"), (Path(av.__file__).parents[1], "av.libs"):
    for _library in (_package / _folder).glob("*avutil*"):
        ctypes.CDLL(str(_library)).av_cpu_force_count(1)


@dataclass(frozen=True, slots=True)
class Compression:
    """How a format is encoded; options have FFmpeg's values."""

    media_type: str
    container: str
    codec: str
    sample_format: str
    bit_rate: int | None = None
    container_options: dict[str, str] = field(default_factory=dict)
    codec_options: dict[str, str] = field(default_factory=dict)


COMPRESSIONS = {
    # Neither ID3 nor Xing: players read a stream from its first frame, and files may be concatenated.
    # The encoder's quality 7 of 9 (fastest) costs half the time of the default, 5, at the same bit rate.
    "mp3": Compression(
        "audio/mpeg",
        "mp3",
        "libmp3lame",
        "s16p",
        128_000,
        {"write_xing": "0", "id3v2_version": "0"},
        {"compression_level": "7"},
    ),
    # Pages of 20 ms (in µs): a default page has a second or more, and is written only when full.
    "opus": Compression("audio/ogg", "ogg", "libopus", "flt", 64_000, {"page_duration": "20000"}),
    "aac": Compression("audio/aac", "adts", "aac", "fltp", 96_000),
    # Blocks of 1024 samples instead of 4608, so that even the first chunk produces bytes.
    "flac": Compression("audio/flac", "flac", "flac", "s16", codec_options={"frame_size": "1024"}),
    # Raw G.711, as telephone networks carry it.
    "ulaw": Compression("audio/basic", "mulaw", "pcm_mulaw", "s16"),
    "alaw": Compression("audio/x-alaw-basic", "alaw", "pcm_alaw", "s16"),
}
FLAC_LENGTH = slice(18, 26)
"""Bytes of a FLAC file whose last 36 bits are its number of samples; 0: unknown."""
MAX_FLAC_LENGTH = (1 << 36) - 1


class CompressedEncoder:
    """One mono file, written like one of PcmEncoder. Encoding takes about 1 % of a core in real time."""

    costly = True

    def __init__(
        self,
        compression: Compression,
        source_rate: int,
        sample_rate: int,
        metadata: Mapping[str, str] | None = None,
        samples: int | None = None,
    ) -> None:
        """``samples``: the total length at the source rate if known. A FLAC then states it, so that players show it."""
        self.media_type = compression.media_type
        self.sample_rate = sample_rate
        self._compression, self._metadata = compression, metadata or {}
        self._resampler = Resampler(source_rate, sample_rate)
        self._sink = Sink()
        self._file_and_stream: tuple[OutputContainer, AudioStream] | None = None
        self._samples = 0
        length = -(-(samples or 0) * sample_rate // source_rate)
        self._length = length if compression.container == "flac" and length <= MAX_FLAC_LENGTH else 0

    def write(self, pcm: np.ndarray) -> bytes:
        self._encode(self._resampler.write(pcm))
        return self._take()

    def finish(self) -> bytes:
        self._encode(self._resampler.finish())
        file, stream = self._open()
        for packet in stream.encode(None):
            file.mux(packet)
        file.close()
        return self._take()

    def _take(self) -> bytes:
        data = self._sink.take()
        if self._length and data:  # the muxer, which cannot seek back, leaves the length out
            fields = int.from_bytes(data[FLAC_LENGTH], "big") | self._length
            data = data[: FLAC_LENGTH.start] + fields.to_bytes(8, "big") + data[FLAC_LENGTH.stop :]
            self._length = 0
        return data

    def _open(self) -> tuple[OutputContainer, AudioStream]:
        """Open the encoder on first use, so that a thread does the work: LAME takes milliseconds."""
        if self._file_and_stream is None:
            compression = self._compression
            # bitexact: the same audio gives the same bytes; Ogg would otherwise pick a random serial number.
            options = compression.container_options | {"flush_packets": "1", "fflags": "+bitexact"}
            file = av.open(self._sink, "w", format=compression.container, container_options=options)
            file.metadata.update(self._metadata)
            stream = file.add_stream(compression.codec, rate=self.sample_rate, layout="mono")
            assert isinstance(stream, AudioStream)
            stream.codec_context.format = compression.sample_format
            stream.codec_context.options = compression.codec_options
            if compression.bit_rate:
                stream.bit_rate = compression.bit_rate
            self._file_and_stream = file, stream
        return self._file_and_stream

    def _encode(self, pcm: np.ndarray) -> None:
        if not len(pcm):
            return
        file, stream = self._open()
        sample_format = self._compression.sample_format
        clipped = np.clip(pcm, -1.0, 1.0)[None]
        if sample_format.startswith("s16"):
            clipped = np.rint(clipped * 32767.0).astype(np.int16)
        else:
            clipped = clipped.astype(np.float32, copy=False)
        frame = av.AudioFrame.from_ndarray(clipped, format=sample_format, layout="mono")
        frame.sample_rate = self.sample_rate
        frame.pts = self._samples
        self._samples += len(pcm)
        for packet in stream.encode(frame):
            file.mux(packet)


class Sink:
    """Bytes to be sent to a client; written bytes cannot be changed."""

    def __init__(self) -> None:
        self._bytes = bytearray()

    def write(self, data: bytes) -> int:
        self._bytes += data
        return len(data)

    def flush(self) -> None:
        """Do nothing, because no bytes are held back."""

    def take(self) -> bytes:
        """The bytes written since the last call."""
        data = bytes(self._bytes)
        self._bytes.clear()
        return data
