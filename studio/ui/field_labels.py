"""The texts of Gradio's own fields and of the small markup around them, as placeholders for phrases."""

from studio.i18n import marked

TITLE = "Voice Studio"

SAMPLE = (
    "Hello! I am a voice that is made while you listen. Change these words, choose who speaks, and press Speak again."
)
"""In English in every language of the page, because the bundled model speaks only English."""

TEMPORARY = f'<p id="temporary" role="note">{marked("shell.temporary")}</p>'

SCRIPT = marked("speak.script")
SCRIPT_PLACEHOLDER = marked("speak.script.placeholder")

SPEAK = marked("speak.speak")
STOP = marked("speak.stop")
FOUR_TAKES = marked("speak.four")
COMPARE_VOICES = marked("speak.compare")

HINTS = (
    f'<p id="hints"><span>{marked("speak.hint.speak")}</span> '
    f'<button type="button" data-opens="shortcuts">{marked("speak.hint.shortcuts")}</button></p>'
)

KEPT_SEED = (
    '<button type="button" id="kept-seed" hidden>'
    '<span data-part="words"></span> <span aria-hidden="true">×</span></button>'
)

SOURCE = marked("speak.source")
BUNDLED = marked("speak.source.library")
OWN_CLIP = marked("speak.source.clip")
VOICE = marked("speak.voice")
RANDOM = marked("speak.voice.random")
SOUNDS = {gender: marked(f"voice.sounds.{gender}") for gender in ("female", "male", "neutral")}

HEAR_VOICE = (
    f'<p id="about-voice" class="quiet">{marked("speak.voice.hint")}</p>'
    f'<button type="button" id="hear-voice">{marked("speak.voice.hear")}</button>'
)

CLIP_ADVICE = f'<p class="quiet">{marked("speak.clip.advice")}</p>'
CLIP_TEXT = marked("speak.clip.words")
CLIP_TEXT_PLACEHOLDER = marked("speak.clip.words.placeholder")

PRESETS = (
    f'<div id="presets-block"><span id="presets-title">{marked("speak.delivery")}</span>'
    '<div id="presets" role="group" aria-labelledby="presets-title"></div></div>'
)

SAMPLING = (
    '<button type="button" id="sampling-toggle" aria-expanded="false" aria-controls="sampling">'
    f"{marked('speak.sampling')}"
    '<svg viewBox="0 0 24 24" aria-hidden="true"><path d="m7 10 5 5 5-5"/></svg></button>'
)
TEMPERATURE = (marked("speak.temperature"), marked("speak.temperature.info"))
TOP_P = (marked("speak.topP"), marked("speak.topP.info"))
TOP_K = (marked("speak.topK"), marked("speak.topK.info"))
SPEED = (marked("speak.speed"), marked("speak.speed.info"))
CUT_AFTER = (marked("speak.cutAfter"), marked("speak.cutAfter.info"))
SEED = (marked("speak.seed"), marked("speak.seed.info"))
NEW_SEED = marked("speak.seed.new")
