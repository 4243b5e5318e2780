"""Samples of voices in multipart forms, as both kinds of voice routes take them."""

from __future__ import annotations

from studio.api.http.openapi import CUT
from studio.api.http.upload import Form
from studio.audio.read import MAX_BYTES
from studio.errors import InvalidRequest
from studio.library import Cut, NewSample
from studio.library.checks import clean_language
from studio.voices.clip_service import ClipService

FORM_LIMIT = MAX_BYTES + 256 * 1024
"""A clip of the largest size, and its fields."""
SAMPLE = ("audio_sample", "ref_text", *CUT, "denoise")
_NO_WORDS = (
    "ref_text is missing: this model needs the words spoken in the clip. Send them as ref_text (in OpenAI's Python "
    'client: extra_body={"ref_text": "…"}), or start the studio with STUDIO_TRANSCRIBER=faster-whisper:base, and '
    "it writes them down itself"
)


def cut_of(form: Form) -> Cut:
    """How a form wants its clip to be cut. Raises InvalidRequest."""
    return Cut(form.number("start") or 0.0, form.number("end"), form.number("gain_db") or 0.0, form.whole("channel"))


async def sample_of(form: Form, clips: ClipService, caller: str) -> NewSample:
    """The sample in a form: the file audio_sample, its words as ref_text, or else as they are heard.

    With ``denoise`` the clip that is kept is the cut without its noise.
    Raises InvalidRequest, and what the clip service does.
    """
    if form.text("speaker_embedding"):
        raise InvalidRequest("speaker_embedding is not supported by this model", "speaker_embedding")
    data, text = form.file("audio_sample", "file"), form.text("ref_text", "transcript")
    cut, speaker = cut_of(form), form.whole("speaker") or 0
    if form.flag("denoise"):
        clip = await clips.decode(caller, data, cut, "audio_sample")
        data, cut = await clips.clean(caller, clip), Cut()
    if not text:
        language = clean_language(form.text("language"))
        clip = await clips.decode(caller, data, cut, "audio_sample")
        missing = InvalidRequest(_NO_WORDS, "ref_text", "missing_required_parameter")
        text = await clips.words(caller, clip, "ref_text", missing, language)
    intake = await clips.judge(caller, data, text, cut, "audio_sample")
    return intake.sample(text, speaker)
