"""Removes elements of HTML and SSML, and what chat models write for themselves; breaks become pauses."""

from __future__ import annotations

import re

_SILENT = "think|thinking|reasoning|script|style"
"""Elements whose content is not for a listener either."""
_LINES = (
    "address|article|aside|blockquote|body|br|caption|dd|div|dl|dt|figcaption|figure|footer|h[1-6]|head|header|hr|html|"
    "li|main|nav|ol|p|pre|section|table|tbody|td|tfoot|th|thead|title|tr|ul"
)
"""Elements that begin and end lines."""
_INLINE = (
    "a|abbr|acronym|audio|b|bdi|bdo|big|cite|code|data|del|dfn|em|emphasis|font|i|img|input|ins|kbd|label|lang|lexicon|"
    "link|mark|mstts:[a-z-]{1,20}|amazon:[a-z-]{1,20}|phoneme|prosody|q|rp|rt|ruby|s|samp|say-as|small|span|speak|strike|"
    "strong|sub|sup|time|tt|u|var|video|voice|w|wbr"
)
_ATTRIBUTE = r"\s++[A-Za-z_:][\w:.-]*+\s*+=\s*+(?:\"[^\"<>]*+\"|'[^'<>]*+'|[^\s\"'<>]++)"
ELEMENT = re.compile(
    rf"<(?P<end>/)?(?:(?P<silent>{_SILENT})|(?P<line>{_LINES})|(?P<pause>break)|{_INLINE})"
    rf"(?P<attributes>(?:{_ATTRIBUTE})*+)\s*+/?>|<!--(?:[^<>-]|-(?!->))*+-->",
    re.IGNORECASE,
)
"""A tag; other words between < and > stay, such as those of List<int>."""
_TIME = re.compile(r"\btime\s*=\s*[\"']?\+?(\d{1,5}(?:\.\d{1,3})?)\s*(ms|s)\b", re.IGNORECASE)
_STRENGTH = re.compile(r"\bstrength\s*=\s*[\"']?([a-z-]{1,10})", re.IGNORECASE)
_SECONDS = {"none": 0.0, "x-weak": 0.1, "weak": 0.25, "medium": 0.5, "strong": 1.0, "x-strong": 1.5}
"""SSML leaves them to the speaker."""


def without_elements(text: str) -> str:
    """The text without tags of HTML and SSML; idempotent, and linear in the length of the text.

    A break becomes a pause; the content of a silent element is left out if the element ends.
    """
    if "<" not in text:
        return text
    pieces, at = list[str](), 0
    opened: tuple[str, int, int] | None = None  # name of a silent element, its piece, and where its content begins
    for tag in ELEMENT.finditer(text):
        pieces.append(text[at : tag.start()])
        at = tag.end()
        name = (tag["silent"] or "").lower()
        if name and not tag["end"]:
            opened = opened or (name, len(pieces), at)
        elif name and opened and opened[0] == name:
            del pieces[opened[1] :]
            opened = None
        elif tag["pause"]:
            pieces.append("" if tag["end"] else _pause(tag["attributes"]))
        elif tag["line"] and "".join(pieces[-1:]).strip():
            pieces.append("\n")
    return "".join([*pieces, text[at:]])


def _pause(attributes: str) -> str:
    if time := _TIME.search(attributes):
        return f"[pause:{time[1]}{time[2].lower()}]"
    strength = _STRENGTH.search(attributes)
    seconds = _SECONDS.get(strength[1].lower() if strength else "medium", _SECONDS["medium"])
    return f"[pause:{seconds:g}s]" if seconds else ""
