"""Takes in another voice than the rest of a project are listed by the check."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from audio.encode import pcm16
from audio.read import read_clip
from audio.resampler import resampled
from longform.library.usual_sound import TakeSound, UsualSound, packed
from studio import ASSETS
from tests.longform.script import Script, scripted
from tests.longform.test_files import RATE
from tests.longform.test_projects import Json, parts_of
from tests.longform.test_proof import report, run_check, spoken_project, spots
from tests.studio.conftest import Steered
from tests.studio.server import Served

Steer = Callable[..., Steered]
SECONDS = 4.0


@pytest.fixture(autouse=True)
def script(monkeypatch: pytest.MonkeyPatch) -> Script:
    return scripted(monkeypatch)


def pieces_of(voice: str, count: int) -> list[np.ndarray]:
    """Pieces of the recording of a bundled voice, evenly spread."""
    clip = read_clip((ASSETS / "fry" / "voices" / f"{voice}.wav").read_bytes())
    pcm, size = resampled(clip.pcm, clip.sample_rate, RATE), round(SECONDS * RATE)
    starts = np.linspace(0, len(pcm) - size, count).astype(int)
    return [pcm[start : start + size] for start in starts]


def put_audio(served: Served, part: Json, pcm: np.ndarray) -> None:
    """Replace the audio of a part's take."""
    library = served.app.state.studio.library
    path = library.files.path(library.takes.get(part["chosen"]).audio)
    wav = path.read_bytes()
    path.chmod(0o600)
    path.write_bytes(wav[:44] + pcm16(pcm))


def test_take_in_another_voice_and_one_that_switches_half_way_are_listed(steered: Steer) -> None:
    served, _ = steered()
    usual, other = pieces_of("Ross", 9), pieces_of("Clara", 3)
    half = round(SECONDS * RATE / 2)
    sounds = [*usual, other[0], np.concatenate([usual[4][:half], other[2][half:]])]
    texts = [" ".join(["one"] * (10 + at)) for at in range(len(sounds))]  # takes of the same sound would share a file
    project = spoken_project(served, *texts)
    parts = parts_of(served, project)
    for part, pcm in zip(parts, sounds, strict=True):
        put_audio(served, part, pcm)
    assert run_check(served, project)["spots"]["voice"] == 2
    whole, switched = sorted(spots(served, project, "?kind=voice"), key=lambda spot: spot["position"])
    assert (whole["position"], whole["start"], switched["position"]) == (9, 0, 10)
    seconds = switched["end"]
    assert switched["start"] == pytest.approx(seconds / 2, abs=0.01), "the second half"
    assert "Part 10, 0.0 s: another voice" in report(served, project, "txt")


def test_nearer_voice_of_the_project_is_named_and_rare_voices_are_not_compared() -> None:
    noise, axes = np.random.default_rng(1), np.eye(256, dtype=np.float32)

    def take(voice: str, sound: int, seconds: float = 4.0) -> TakeSound:
        prints = np.abs(axes[sound] + 0.03 * noise.random((2, 256), np.float32))
        return TakeSound(voice, voice, seconds, None, None, packed(prints))

    takes = [take(name, at) for at, name in enumerate(("Anna", "Bert")) for _ in range(20)]
    takes += [take("Anna", 1), take("Carl", 0), take("Carl", 1), TakeSound("Anna", "Anna", 1.0, None, None, b"")]
    usual = UsualSound(takes)
    found = [(at, findings[0].heard) for at, findings in enumerate(usual.findings(takes)) if findings]
    assert found == [(40, "Bert")]
    assert usual.distance(take("Anna", 0), True) < usual.distance(take("Anna", 2), True) > 0.5
    assert UsualSound([]).findings([take("Anna", 1)], True) == [[]]
