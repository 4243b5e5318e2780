"""Generated sounds for tests: tones, and files of them in any container."""

from __future__ import annotations

import base64
import io
import wave

import av
import numpy as np

from audio.encode import pcm16, wav_header


def tone(seconds: float, rate: int = 44_100, hertz: float = 440, level: float = 0.5) -> np.ndarray:
    """A sine tone as float32 (samples,)."""
    return (level * np.sin(2 * np.pi * hertz * np.arange(round(seconds * rate)) / rate)).astype(np.float32)


def wav(pcm: np.ndarray, rate: int = 44_100) -> bytes:
    """A finished 16-bit WAV file."""
    return wav_header(rate, len(pcm)) + pcm16(pcm)


def container(pcm: np.ndarray, name: str, codec: str, rate: int = 48_000) -> bytes:
    """The samples as a file of the FFmpeg container and codec of these names."""
    file = io.BytesIO()
    with av.open(file, "w", format=name) as output:
        stream = output.add_stream(codec, rate=rate, layout="mono")
        assert isinstance(stream, av.AudioStream)
        if codec.startswith("wma"):
            stream.bit_rate = 64_000
        frame = av.AudioFrame.from_ndarray((pcm[None] * 32767).astype(np.int16), format="s16", layout="mono")
        frame.sample_rate = rate
        for packet in (*stream.encode(frame), *stream.encode(None)):
            output.mux(packet)
    return file.getvalue()


def data_url(data: bytes, kind: str = "audio/wav") -> str:
    return f"data:{kind};base64,{base64.b64encode(data).decode()}"


def frames_of(data: bytes) -> tuple[int, int]:
    """Sample rate and number of samples of a streamed WAV, counted because its header lacks it."""
    with wave.open(io.BytesIO(data)) as file:
        return file.getframerate(), len(file.readframes(1 << 30)) // (2 * file.getnchannels())


def decoded(data: bytes, name: str) -> tuple[int, np.ndarray]:
    """Sample rate and float32 mono samples of a file, read by FFmpeg as the container of this name."""
    with av.open(io.BytesIO(data), "r", format=name) as file:
        resampler = av.AudioResampler(format="flt", layout="mono")
        frames = [part for frame in file.decode(audio=0) for part in resampler.resample(frame)]
    return frames[0].sample_rate, np.concatenate([frame.to_ndarray()[0] for frame in frames])
