"""`python -m audio clip.mp3`: prints what a clip holds, its faults as a reference, and what loudness standards ask."""

from __future__ import annotations

import sys
from pathlib import Path

from audio import AudioError, Cut
from audio.advisor import advise
from audio.loudness import Meter
from audio.mastering import STANDARDS
from audio.read import container_of, read_clip


def main() -> int:
    """Reads one clip of up to 30 seconds; 1 if it cannot be used."""
    if len(sys.argv) != 2:
        print("usage: python -m audio FILE", file=sys.stderr)
        return 2
    try:
        data = Path(sys.argv[1]).read_bytes()
        container, clip = container_of(data), read_clip(data)
    except (AudioError, OSError) as error:
        print(f"audio: {error}", file=sys.stderr)
        return 1
    meter = Meter(clip.sample_rate)
    meter.write(clip.pcm)
    loudness = meter.finish()
    level = "no measurable loudness" if loudness.integrated is None else f"{loudness.integrated:.1f} LUFS"
    print(f"{container}, {clip.seconds:.2f} s at {clip.sample_rate} Hz: {level}, peak {loudness.true_peak:.1f} dBTP")
    for finding in advise(clip, "", Cut()).findings:
        print("As a reference clip:", finding.message)
    for standard in STANDARDS.values():
        print(f"{standard.name}:", " ".join(standard.faults(loudness)) or "meets it.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
