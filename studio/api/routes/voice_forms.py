"""Samples of voices in multipart forms, as both kinds of voice routes take them."""

from __future__ import annotations

from anyio import to_thread

from studio.api.http.openapi import CUT
from studio.api.http.upload import Form
from studio.audio.read import MAX_BYTES
from studio.errors import InvalidRequest
from studio.library import Cut, NewSample
from studio.voices.intake import take_in

FORM_LIMIT = MAX_BYTES + 256 * 1024
"""A clip of the largest size, and its fields."""
SAMPLE = ("audio_sample", "ref_text", *CUT)
SPOKEN_CLIP = ("audio_sample", "ref_text")


def cut_of(form: Form) -> Cut:
    """How a form wants its clip to be cut. Raises InvalidRequest."""
    return Cut(form.number("start") or 0.0, form.number("end"), form.number("gain_db") or 0.0, form.whole("channel"))


async def sample_of(form: Form) -> NewSample:
    """The sample in a form: the file audio_sample, its words as ref_text. Raises InvalidRequest, InvalidClip."""
    if form.text("speaker_embedding"):
        raise InvalidRequest("speaker_embedding is not supported by this model", "speaker_embedding")
    data, text = form.file("audio_sample", "file"), form.text("ref_text", "transcript")
    if not text:
        raise InvalidRequest(
            "ref_text is missing: this model needs the words spoken in the clip",
            "ref_text",
            "missing_required_parameter",
        )
    intake = await to_thread.run_sync(take_in, data, text, cut_of(form), "audio_sample")
    return intake.sample(text, form.whole("speaker") or 0)
