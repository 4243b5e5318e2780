"""Edits a voice's samples, for page, API and command line; each edit creates a new revision."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace

from audio import Cut, InvalidClip
from studio.errors import EditConflict, InvalidRequest, NotFound
from studio.library import Library, NewSample, Sample, Voice, VoiceFields
from studio.library.checks import check_words
from studio.library.records import DictionaryScope
from studio.voices.intake import take_in


def find_sample(voice: Voice, sample_id: str) -> Sample:
    """Raises NotFound."""
    for sample in voice.samples:
        if sample.id == sample_id:
            return sample
    raise NotFound(f"the voice {voice.name!r} has no sample {sample_id[:80]!r}", "sample", "sample_not_found")


def sample_at(voice: Voice, number: int) -> Sample:
    """The sample at an index counted from 0. Raises NotFound."""
    if not 0 <= number < len(voice.samples):
        raise NotFound(f"the voice {voice.name!r} has no sample number {number}", "sample", "sample_not_found")
    return voice.samples[number]


def add_sample(library: Library, reference: str, sample: NewSample, version: int | None = None) -> Voice:
    """Blocking. Raises NotFound, EditConflict, InvalidRequest."""
    return library.voices.revise(reference, lambda samples: [*samples, sample], version)


def edit_sample(
    library: Library,
    reference: str,
    sample_id: str,
    version: int | None = None,
    *,
    text: str | None = None,
    speaker: int | None = None,
    cut: Cut | None = None,
) -> Voice:
    """Change a sample; a new cut is judged again. Blocking.

    Raises NotFound, EditConflict, InvalidRequest, InvalidClip.
    """
    before = find_sample(library.voices.get(reference), sample_id)
    text = before.text if text is None else text.strip()
    check_words(text, "text")
    cut = cut or before.cut
    try:
        new_sample = take_in(library.voices.clip(before), text, cut).sample(text)
    except InvalidClip as error:  # the stored clip was valid, so the fault is in the new cut
        raise InvalidClip(error.message, "cut") from None
    after = replace(
        before,
        text=text,
        cut=cut,
        speaker=before.speaker if speaker is None else speaker,
        seconds=new_sample.seconds,
        clip_seconds=max(new_sample.clip_seconds, before.clip_seconds),
        score=new_sample.score,
        quality=new_sample.quality,
    )

    def change(samples: tuple[Sample, ...]) -> Sequence[Sample]:
        if before not in samples:
            raise EditConflict("the sample was changed meanwhile; reload it", "sample")
        return [after if sample == before else sample for sample in samples]

    return library.voices.revise(reference, change, version)


def choose_samples(library: Library, reference: str, sample_ids: Sequence[str], version: int | None = None) -> Voice:
    """Use these samples from now on, in this order; samples of older revisions return in their latest version.

    Blocking. Raises NotFound, EditConflict, InvalidRequest.
    """
    voice = library.voices.get(reference)
    latest = library.voices.samples_ever(voice.id)
    missing = [sample_id for sample_id in sample_ids if sample_id not in latest]
    if missing or len(set(sample_ids)) < len(sample_ids):
        message = f"the voice {voice.name!r} never had a sample {(missing or [''])[0][:80]!r}"
        raise InvalidRequest(message if missing else "a sample is named twice", "samples")

    def change(samples: tuple[Sample, ...]) -> Sequence[Sample]:
        current = {sample.id: sample for sample in samples}
        return [current.get(sample_id, latest[sample_id]) for sample_id in sample_ids]

    return library.voices.revise(voice.id, change, version)


def restore_revision(library: Library, reference: str, revision: int, version: int | None = None) -> Voice:
    """Create a new revision with the samples of an old one. Blocking. Raises NotFound, EditConflict."""
    voice = library.voices.get(reference)
    old_voice = library.voices.get(f"{voice.id}@{revision}")
    return library.voices.revise(voice.id, lambda samples: old_voice.samples, version)


def duplicate(library: Library, reference: str, name: str) -> Voice:
    """Copy a voice: recordings, settings and dictionary. Blocking. Raises NotFound and the errors of `create`."""
    voice = library.voices.get(reference)
    copy = VoiceFields(**voice.details() | {"name": name, "consent": voice.consent})
    made = library.voices.create(copy, [_copy(library, one) for one in voice.samples], source=voice.address)
    entries = library.pronunciations.entries(DictionaryScope("voice", voice.id))
    library.pronunciations.merge(DictionaryScope("voice", made.id), [replace(one, id="") for one in entries], False)
    return made


def _copy(library: Library, sample: Sample) -> NewSample:
    names = {field.name for field in fields(NewSample)} - {"data"}
    return NewSample(data=library.voices.clip(sample), **{name: getattr(sample, name) for name in names})


def remove_sample(library: Library, reference: str, sample_id: str, version: int | None = None) -> Voice:
    """Blocking. Raises NotFound, EditConflict, and InvalidRequest for the last sample."""

    def change(samples: tuple[Sample, ...]) -> Sequence[Sample]:
        remaining = [sample for sample in samples if sample.id != sample_id]
        if len(remaining) == len(samples):
            raise NotFound(f"the voice has no sample {sample_id[:80]!r}", "sample", "sample_not_found")
        if not remaining:
            raise InvalidRequest("a voice needs at least one sample; delete the voice instead", "sample")
        return remaining

    return library.voices.revise(reference, change, version)
