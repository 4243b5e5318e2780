"""Voice samples in multipart forms."""

from __future__ import annotations

from studio.api.http.openapi import CUT
from studio.api.http.upload import Form
from studio.audio.read import MAX_BYTES
from studio.errors import InvalidRequest
from studio.library import Cut, NewSample
from studio.library.checks import clean_language
from studio.voices.clip_service import ClipService

FORM_LIMIT = MAX_BYTES + 256 * 1024
"""Bytes of the largest clip and its fields."""
SAMPLE = ("audio_sample", "ref_text", *CUT, "denoise")
_NO_WORDS = (
    "ref_text is missing: this model needs the words spoken in the clip. Send them as ref_text (in OpenAI's Python "
    'client: extra_body={"ref_text": "…"}), or start the studio with STUDIO_TRANSCRIBER=faster-whisper:base to '
    "transcribe clips"
)


def cut_of(form: Form) -> Cut:
    """The cut of a form's clip. Raises InvalidRequest."""
    return Cut(form.number("start") or 0.0, form.number("end"), form.number("gain_db") or 0.0, form.whole("channel"))


async def sample_of(form: Form, clips: ClipService, caller: str) -> NewSample:
    """The sample in a form: the file audio_sample with its transcript ref_text, or else a recognised one.

    With ``denoise``, the stored clip is the cut without noise.
    Raises InvalidRequest and the errors of the clip service.
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
