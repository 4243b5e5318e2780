"""The words of the page, in one place."""

TITLE = "Voice Studio"
DESCRIPTION = (
    "Type a text, choose or clone a voice, and hear it at once: takes, dialogues, audiobooks and an API like OpenAI's."
)
PREVIEW_ALT = "Voice Studio: a script, its voice, and the waveform of the take that is being spoken"

SAMPLE = (
    "Hello! I am a voice that is made while you listen. Change these words, choose who speaks, and press Speak again."
)

TEMPORARY = (
    '<p id="temporary" role="note"><strong>Voices on this Space are temporary.</strong> They are gone when it '
    "restarts: export those you need. The owner of the Space can keep them by mounting a storage bucket at /data.</p>"
)

SCRIPT = "Script"
SCRIPT_PLACEHOLDER = "Type or paste what should be said. A tag such as [whispering] sets the tone of what follows."

HINTS = (
    '<p id="hints"><span><kbd>Ctrl</kbd> <kbd>Enter</kbd> speaks</span>'
    "<span><kbd>Esc</kbd> stops</span><span><kbd>Space</kbd> plays</span></p>"
)

KEPT_SEED = (
    '<button type="button" id="kept-seed" hidden>'
    '<span data-part="words"></span> <span aria-hidden="true">×</span></button>'
)

SOURCE = "Voice"
BUNDLED = "Library voices"
OWN_CLIP = "Your own clip"
VOICE = "Choose a voice"

HEAR_VOICE = (
    '<p id="about-voice" class="quiet">Pick a voice and listen to its recording.</p>'
    '<button type="button" id="hear-voice">Listen to its recording</button>'
)

CLIP = "Reference clip"
CLIP_ADVICE = (
    '<p class="quiet">10 to 30 seconds, one speaker, no music. Use only a voice that is yours or that you may use.</p>'
)
CLIP_TEXT = "What is said in the clip"
CLIP_TEXT_PLACEHOLDER = "Every word, as spoken, with punctuation."

PRESETS = (
    '<div id="presets-block"><span id="presets-title">Delivery</span>'
    '<div id="presets" role="group" aria-labelledby="presets-title"></div></div>'
)

SAMPLING = (
    '<button type="button" id="sampling-toggle" aria-expanded="false" aria-controls="sampling">Sampling'
    '<svg viewBox="0 0 24 24" aria-hidden="true"><path d="m7 10 5 5 5-5"/></svg></button>'
)
TEMPERATURE = ("Temperature", "Lower is steadier, higher is livelier.")
TOP_P = ("Top-p", "Considers only the most likely sounds up to this total probability.")
TOP_K = ("Top-k", "Considers at most this many sounds.")
SPEED = ("Speed", "Keeps the pitch.")
CUT_AFTER = ("Cut after (seconds)", "0 = no limit.")
SEED = ("Seed", "The same seed, script and voice give the same take. Blank: a new one every time.")
NEW_SEED = "new every time"
