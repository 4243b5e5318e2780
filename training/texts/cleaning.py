"""Extracts sentences from prose, in plain characters, and keeps those that a person might type to have them spoken."""

from __future__ import annotations

import hashlib
import re
import zlib
from collections.abc import Collection, Iterator

from training.texts.numerals import year

MIN_WORDS, MAX_WORDS, MAX_CHARS = 3, 28, 180
HELD_OUT_ONE_IN = 60

_PLAIN = str.maketrans({
    "’": "'", "‘": "'", "`": "'", "“": '"', "”": '"', "–": "—", "―": "—", "…": "...", "\u00a0": " ", "\u00ad": None,
})  # fmt: skip
_TITLES = {"mr.", "mrs.", "ms.", "dr.", "st.", "prof.", "capt.", "col.", "gen.", "lt.", "rev.", "messrs."}
_BREAK = re.compile(r"[.!?]+[\"']?\s+(?=[\"']?[A-Z])")
_SPEAKABLE = re.compile(r"\"?[A-Z][A-Za-zé0-9 ,.'!?;:\"—-]*[.!?]\"?")
_TITLE_DOT = re.compile(r"\b(Mr|Mrs|Ms|Dr|St|Prof|Capt|Col|Gen|Lt|Rev)\. (?=[A-Z])")
_WORD = re.compile(r"[A-Za-zé]+(?:'[A-Za-z]+)*")
_DATED = re.compile(
    r"\b(?:thou|thee|thy|thine|hath|doth|quoth|shalt|wilt|ye|unto|fig|illust|cf|viz|syn)\b", re.IGNORECASE
)
_YEAR = re.compile(
    r"\b((?:[Ii]n|[Ss]ince|[Uu]ntil|[Bb]y|[Bb]efore|[Aa]fter|[Ff]rom) )(1[1-9]\d\d|20[0-3]\d)"
    r"(?=[,;:.!?]|$| (?:the|a|an|he|she|it|they|we|by|to|and|was|when|as|that|which|with|at|in|for|his|her|their)\b)"
)
_SHOUTED = re.compile(r"\b[A-Z]{2,}\b")
# Prefixes of words that offend, or may offend out of context: swearing, bodies, violence, groups of people.
_UNSAVOURY = re.compile(
    r"\b(?:fuck|shit|piss|cunt|cock(?:s?\b|suck)|dick|tits?\b|boob|whor|slut|bitch|bastard|bugger|nigg|negro|fag|dyke|"
    r"queer|retard|rap(?:e|ed|es|ist|ing)\b|sex|porn|penis|vagina|vulva|genital|anus|anal\b|rectum|semen|orgasm|"
    r"masturbat|prostitut|incest|pedophil|suicid|genocid|nazi|holocaust|lynch|slurs?\b|offensive|disparag|derogat|"
    r"obscen|vulgar|ethnic|arse|asshole|ass\b|asses\b|crap\b|damn|turd|fart|urin|feces|faeces|excrement|nude|naked|"
    r"erotic|lesbian|homosexual|jew(?:s|ish)?\b|kike|chink|coon|gook|circumcis|concubin|slaver|wank|"
    r"idiot|moron|imbecile|cretin|dumbass|tortur|meth\b|cocaine|heroin\b|poop|vomit|puke|corpse|behead)",
    re.IGNORECASE,
)


def is_held_out(text: str) -> bool:
    """True for the one in sixty texts, chosen by hash, that is held out of training."""
    return int(hashlib.md5(text.encode(), usedforsecurity=False).hexdigest(), 16) % HELD_OUT_ONE_IN == 0


def words(text: str) -> list[str]:
    """The words of a text in lower case, apostrophes kept, numbers in digits left out."""
    return [word.lower() for word in _WORD.findall(text)]


def key(text: str) -> str:
    """The common form of texts that differ only in capitals, final stops and spaces."""
    return " ".join(re.findall(r"[a-zé0-9]+", text.lower().replace("'", "")))


def passages(prose: str, known: Collection[str]) -> Iterator[str]:
    """Clean sentences of a running text; about every fourth is joined with the next, as people write them."""
    waiting = ""
    for sentence in map(clean, _split(prose)):
        if sentence is None or not _known_enough(sentence, known):
            if waiting and _fits(waiting):
                yield waiting
            waiting = ""
            continue
        joined = f"{waiting} {sentence}".strip()
        if waiting and not _fits(joined):
            if _fits(waiting):
                yield waiting
            joined = sentence
        waiting = joined
        if zlib.crc32(sentence.encode()) % 4 and _fits(waiting):
            yield waiting
            waiting = ""
    if waiting and _fits(waiting):
        yield waiting


def clean(sentence: str) -> str | None:
    """One sentence in plain characters with a capital and a final stop; None if it is unsuitable."""
    text = re.sub(r"\s*\([^()]*\)|\s*\[[^\[\]]*\]", "", sentence.translate(_PLAIN))
    text = re.sub(r"\s+", " ", re.sub(r"\s*(?:--+|—)\s*", "—", text)).strip(" -—,;:")
    text = re.sub(r"([!?])\.$", r"\1", re.sub(r"\s+([,;:.!?])", r"\1", _plain_quotes(text)))
    if not text or sentence.rstrip().endswith(":") or not (text[0].isupper() or text[0] == '"'):
        return None
    if text[-1] not in '.!?"':
        text += "."
    inner = _TITLE_DOT.sub(r"\1 ", text).replace("...", "").rstrip('"')[:-1]
    shouted = _SHOUTED.findall(text)
    if (
        not _SPEAKABLE.fullmatch(text)
        or re.search(r"\d", _YEAR.sub("", text))
        or re.search(r"\.|[,;:]{2}|[!?][a-z]|\b(\w+) \1\b|\b[b-hj-z]\b", inner)
        or len(shouted) > 1
        or any(len(word) > 5 for word in shouted)
        or max(map(len, re.split(r"[ —-]", text))) > 17
        or _UNSAVOURY.search(text)
        or _DATED.search(text)
        or text.startswith(("See also", "Compare ", "Usage", "As, ", "Same as"))
    ):
        return None
    return text


def years_read(text: str) -> str:
    """A clean text with its years, the only figures it may contain, written as they are read."""
    return _YEAR.sub(lambda match: match[1] + year(int(match[2])), text)


def as_sentence(fragment: str) -> str | None:
    """A definition or a clause as a sentence, or None."""
    fragment = fragment.strip()
    return clean(fragment[0].upper() + fragment[1:]) if fragment else None


def _split(prose: str) -> Iterator[str]:
    """Sentences unchanged, except that long ones are split at semicolons and dashes."""
    prose = re.sub(r"\s+", " ", prose.translate(_PLAIN)).strip()
    start = 0
    for match in _BREAK.finditer(prose):
        last = prose[start : match.end()].split()[-1].lower().lstrip("\"'(")
        if last in _TITLES or re.fullmatch(r"[a-z]\.", last) or match.group().startswith("..."):
            continue
        yield from _pieces(prose[start : match.end()].strip())
        start = match.end()
    yield from _pieces(prose[start:])


def _pieces(sentence: str) -> Iterator[str]:
    if len(sentence) <= MAX_CHARS:
        yield sentence
        return
    for clause in re.split(r";\s+|\s*(?:--+|—)\s*", sentence):
        piece = clause.strip().replace('"', "")
        yield piece[:1].upper() + piece[1:]


def _plain_quotes(text: str) -> str:
    """Keep double quotes only in pairs and not around the whole, and single quotes only as apostrophes."""
    text = re.sub(r"(?<![\w])'+(?=\w)|(?<=[^\ws])'(?!\w)|(?<=[a-rt-z])'(?!\w)", "", text.replace("''", '"'))
    if text.count('"') % 2:
        return re.sub(r" +", " ", text.replace('"', "")).strip()
    text = re.sub(r'"\s*([^"]*?)\s*"', r'"\1"', text)
    return text[1:-1] if text.count('"') == 2 and text[0] == text[-1] == '"' else text


def _known_enough(sentence: str, known: Collection[str]) -> bool:
    """At most one word in six, and one in total, is in no dictionary (names, inventions); no plain word in capitals."""
    spoken = _WORD.findall(sentence)
    if any(word.lower() in known for word in _SHOUTED.findall(sentence)):
        return False
    strange = sum(
        word not in known and word.lower() not in known and word.removesuffix("'s") not in known for word in spoken
    )
    return strange == 0 or (strange == 1 and len(spoken) >= 6)


def _fits(text: str) -> bool:
    return MIN_WORDS <= len(_WORD.findall(text)) <= MAX_WORDS and len(text) <= MAX_CHARS
