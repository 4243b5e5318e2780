"""Decodes texts, also in encodings from before Unicode, as Chinese novels, Russian subtitles and old Macs have them."""

from __future__ import annotations

import codecs
import json
import re
import unicodedata
from collections import Counter
from pathlib import Path

from charset_normalizer import CharsetMatch, from_bytes

from manuscript.passages import MAX_TEXT, InvalidDocument
from speechtext.language import guess_language

_ENCODINGS = json.loads(Path(__file__).with_name("encodings.json").read_text("utf-8"))
NAMES: dict[str, str] = _ENCODINGS["names"]
"""Names to show of the encodings that are looked for, by Python's names."""
_SAME: dict[str, str] = _ENCODINGS["same"]
"""Encodings that those of NAMES contain, as browsers read them."""
_EAST_ASIAN = frozenset(("gb18030", "big5", "cp932", "euc_jp", "cp949"))
_OF_LANGUAGES = dict.fromkeys(("en", "de", "fr", "es", "it", "pt", "nl", "sv"), "cp1252")
_OF_LANGUAGES |= {"pl": "cp1250", "tr": "cp1254"}
_SHORT = 300
"""Bytes of a sample below which its letters decide: the library needs more for its statistics."""
_COMMON = frozenset("".join(_ENCODINGS["common"]))
"""The commonest characters of Chinese and Korean: half of any text. In the wrong encoding characters are rare ones."""
_COMMON_SHARE = 0.3  # of a text's characters, well below the half that is usual, since lists of names have fewer
_COMMON_THAI = frozenset("านรอกเงมยลวดทสคปบหขต่้ีัิะไูุ")
_THAI_SHARE = 0.75  # of Thai letters; in single bytes of other encodings they are less uneven
_LEAST_THAI = 5  # letters
_THAI = re.compile(r"(?:[\u0e01-\u0e30\u0e32\u0e33\u0e3f-\u0e46\u0e4f-\u0e5b][\u0e31\u0e34-\u0e3a\u0e47-\u0e4e]{0,2})+")
"""Letters with their marks, which stand on a letter."""
_ALPHABETS = {"cp1251": "оеаинтсрвлкмдпуя", "koi8_r": "оеаинтсрвлкмдпуя", "cp1253": "αοιετσνηυρπκμλςίάόέήύώ"}
"""The commonest letters of Russian and Greek: four of five. In the wrong encoding capitals are within words."""
_ALPHABET_SHARE = 0.7
_LEAST_LETTERS = 5
_MARKS = "«»“”„’—–…№\u00a0"
_MAC_QUOTES = re.compile(rb"(?:^|\s)\xd2\w[^\xd2\xd3]{0,300}[.,!?]\xd3")  # elsewhere Ò, Ó: “No,”
_EAST_ASIAN_WORD = re.compile(r"(?<![\u1100-\uffef])([A-Za-z]?)[\u1100-\uffef]+([A-Za-z]?)")
_SAMPLE = 64 * 1024  # bytes of lines with other signs than ASCII: more of them change no decision
_ALIKE = 0.02  # texts that differ by less in what the library calls chaos are equally clean
_CLEARLY = 0.05  # by this, the letters of one language are more frequent than those of the next; short texts have less
_DAMAGED = 4
"""Text in another encoding has hardly any character that is UTF-8 by chance; damage leaves most of them whole."""
_UTF_16_SAMPLE = 4096  # bytes, enough to see which of every two is zero
_WESTERN_LETTERS = [bytes([code]) for code in (*range(0xC0, 0xD7), *range(0xD8, 0xF7), *range(0xF8, 0xFF))]
_PLAIN_LETTERS = [bytes([code]) for code in (*range(0x41, 0x5B), *range(0x61, 0x7B))]
_NOT_WESTERN = re.compile(
    rb"[\x00-\x08\x0e-\x1f\x7f\x81\x8d\x8f\x90\x9d\xff]"  # never or hardly ever in text
    rb"|[\xd0\xdd\xde\xf0\xfd\xfe]"  # Turkish as often as Icelandic
    rb"|[A-Za-z\xc0-\xfe][\x80-\x84\x86-\x89\x8b\xa1-\xa9\xac\xae-\xb6\xb8\xb9\xbc-\xbf][a-z\xe0-\xfe]"
    rb"|[\xc0-\xfe]{4}"  # a word in another alphabet
    rb"|[\xc3-\xc5][\x80-\xbf]|\xe2[\x80-\xbf]{2}"  # UTF-8 that is damaged elsewhere
)
_CONTROLS = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ufeff]")
_PARTS = {"HANGUL": "hangul", "CJK": "han", "HIRAGANA": "han", "KATAKANA": "han"}


def without_controls(text: str) -> str:
    """The text without control characters other than tabs and line ends, which nobody can speak or edit.

    Quotation marks and dashes of Windows-1252 that were decoded as ISO 8859-1 are what HTML reads them as; U+0002 and
    U+001F were soft hyphens in old programs; all others become spaces. Byte order marks, which are in the middle
    where files were joined, are removed too.
    """
    return _CONTROLS.sub(lambda match: _meant(match[0]), text)


def _meant(control: str) -> str:
    if control in "\x02\x1f\ufeff":
        return ""
    sign = control.encode("latin-1").decode("cp1252", "replace")
    return sign if sign.isprintable() and sign != "\ufffd" else " "


def encoding_named(name: str) -> str:
    """Python's name of the encoding that somebody has chosen; a blank stays blank. Raises LookupError."""
    if not name.strip():
        return ""
    found = codecs.lookup(name.strip()).name
    found = _SAME.get(found, found)
    if found not in (*NAMES, "utf-8", "utf-16"):
        raise LookupError(name)
    return found


def encoding_of(data: bytes) -> str:
    """The encoding of a text that is not Unicode, by Python's name; blank if it is Unicode, or if that is not clear.

    Blocking: milliseconds, whatever the size, and one decoding of the whole.
    """
    if data.startswith((b"\xff\xfe", b"\xfe\xff")) or b"\0" in data[:_SAMPLE] or _decodes(data, "utf-8"):
        return ""
    lines, size = list[bytes](), 0
    for line in data.split(b"\n"):  # in none of these encodings is this byte part of another character
        if not line.isascii():
            end = len(line) if len(line) <= _SAMPLE else line.rfind(b" ", 0, _SAMPLE)  # not within a character
            end = end if end > 0 else _SAMPLE
            lines.append(line[:end])
            size += end
            if size >= _SAMPLE or end < len(line):
                break
    sample = b"\n".join(lines)
    text = sample.decode("utf-8", "replace")
    if text.count("\ufffd") * _DAMAGED < sum(sign > "\x7f" for sign in text):  # it is UTF-8, with damage
        return ""
    if len(sample) < _SHORT and (name := _by_letters(sample)):
        return name
    results = list(from_bytes(sample, cp_isolation=list(NAMES), enable_fallback=False))
    name = _chosen([result for result in results if result.chaos <= results[0].chaos + _ALIKE])
    return name if name and _decodes(data, name) else ""


def _by_letters(sample: bytes) -> str:
    """The encoding in which a short text has the common letters of its language; blank if there is none."""
    if name := _by_alphabet(sample):
        return name
    shares = dict[str, float]()
    for name in filter(_EAST_ASIAN.__contains__, NAMES):  # in a fixed order
        letters = [letter for letter in sample.decode(name, "replace") if letter > "\x7f" and letter.isalpha()]
        if letters and _decodes(sample, name):
            shares[name] = sum(letter in _COMMON or "\u3040" <= letter <= "\u30ff" for letter in letters) / len(letters)
    best = max(shares, key=lambda name: shares[name], default="")
    if best and shares[best] >= _COMMON_SHARE:
        return best
    return "cp874" if _is_thai(sample) else ""


def _by_alphabet(sample: bytes) -> str:
    if _MAC_QUOTES.search(sample):
        return "mac_roman"
    shares = dict[str, float]()
    for name, common in _ALPHABETS.items():
        text = sample.decode(name, "replace")
        words = [word for word in re.findall(r"[^\W\d_]+", text) if not word.isascii()]
        letters = "".join(words).lower()
        is_whole = all(word.istitle() or word.islower() for word in words)
        has_others = any(sign > "\x7f" and not sign.isalpha() and sign not in _MARKS for sign in text)
        if len(letters) >= _LEAST_LETTERS and is_whole and not has_others and _decodes(sample, name):
            shares[name] = sum(letter in common for letter in letters) / len(letters)
    best, *others = sorted(shares, key=lambda name: -shares[name]) or [""]
    is_clear = best and shares[best] - max((shares[other] for other in others), default=0.0) >= _CLEARLY * 4
    return best if is_clear and shares[best] >= _ALPHABET_SHARE else ""


def _is_thai(sample: bytes) -> bool:
    text = sample.decode("cp874", "replace")
    letters = [letter for letter in text if "\u0e00" < letter < "\u0e7f"]
    words = re.findall(r"[\u0e00-\u0e7f]+", text)
    is_likely = sum(letter in _COMMON_THAI for letter in letters) >= max(_LEAST_THAI, _THAI_SHARE * len(letters))
    return is_likely and _decodes(sample, "cp874") and all(map(_THAI.fullmatch, words))


def _chosen(matches: list[CharsetMatch]) -> str:
    """The encoding among those that are equally clean; blank if nothing decides between them."""
    east_asian = [match for match in matches if match.encoding in _EAST_ASIAN and _stands_apart(str(match))]
    if east_asian:  # bytes make pairs throughout by chance only in a few words
        return min(east_asian, key=lambda match: _mixture(str(match))).encoding
    for match in matches:  # the commonest words of a language are in ASCII
        expected = _OF_LANGUAGES.get(guess_language(str(match)) or "")
        if expected and any(expected in other.could_be_from_charset for other in matches):
            return expected
    is_clear = len(matches) == 1 or (matches and matches[0].coherence - matches[1].coherence >= _CLEARLY)
    return matches[0].encoding if is_clear else ""


def _mixture(text: str) -> int:
    """How many characters are of scripts that do not mix: Korean among Chinese, or single letters of Korean."""
    kinds = Counter(unicodedata.name(sign, "").partition(" ")[0] for sign in text)
    letters = Counter[str]()
    for kind, count in kinds.items():
        letters[_PARTS.get(kind, "")] += count
    single = sum("\u3131" <= sign <= "\u318e" for sign in text)
    return min(letters["hangul"] - single, letters["han"]) + single


def _stands_apart(text: str) -> bool:
    """Whether most words in East Asian letters do not continue a Latin word, as two accented letters by chance do."""
    words = _EAST_ASIAN_WORD.findall(text)
    return sum(map(any, words)) * 2 < len(words)


def _decodes(data: bytes, encoding: str) -> bool:
    try:
        data.decode(encoding)
    except UnicodeDecodeError:
        return False
    return True


def decode_text(data: bytes) -> str:
    """Decode UTF-8, or UTF-16 or Windows-1252 if detected; line ends become newlines, control characters signs.

    Raises InvalidDocument, with the line.
    """
    encoding = "utf-16" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else _unmarked_utf_16(data) or "utf-8-sig"
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError as error:
        text = _western(data) if encoding == "utf-8-sig" else ""
        if not text:
            line = data.count(b"\n", 0, error.start) + 1
            raise InvalidDocument(
                f"line {line}: this is not UTF-8 text; choose its encoding, or save it as UTF-8"
            ) from None
    if "\x00" in text:
        line = text.count("\n", 0, text.index("\x00")) + 1
        raise InvalidDocument(f"line {line}: this contains a NUL character and is not text")
    if len(text) > MAX_TEXT:
        raise InvalidDocument(f"the document has {len(text)} characters; at most {MAX_TEXT} are allowed")
    pages = text.replace("\r\n", "\n").replace("\r", "\n").split("\f")  # which readers may take for the ends of pages
    return "\f".join(map(without_controls, pages))


def _unmarked_utf_16(data: bytes) -> str:
    """The encoding of UTF-16 without a byte order mark: most pairs have a NUL, always on the same side."""
    sample = data[: _UTF_16_SAMPLE & ~1]
    low, high = sample[::2].count(0), sample[1::2].count(0)
    pairs = len(sample) // 2
    if len(data) % 2 or not pairs or max(low, high) < 0.6 * pairs or min(low, high):
        return ""
    return "utf-16-le" if high else "utf-16-be"


def _western(data: bytes) -> str:
    """Decode Windows-1252 if the text clearly consists of words in Western letters; otherwise blank."""
    if len(data) > MAX_TEXT or _NOT_WESTERN.search(data):
        return ""
    letters = sum(map(data.count, _WESTERN_LETTERS))
    plain = sum(map(data.count, _PLAIN_LETTERS))
    return data.decode("cp1252") if letters <= 0.4 * plain else ""
