"""Decodes and parses the markup of EPUBs, however malformed."""

from __future__ import annotations

import codecs
import re
from html.parser import HTMLParser

_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_DECLARED = re.compile(
    rb"""<\?xml[^>]{0,200}?encoding\s*=\s*["']([\w.:-]{1,40})|<meta[^>]{0,200}?charset\s*=\s*["']?([\w.:-]{1,40})""",
    re.IGNORECASE,
)
_KNOWN = frozenset((
    "utf-8", "ascii", "iso8859-1", "cp1250", "cp1251", "cp1252", "cp1253", "cp1254", "cp1255", "cp1256",
    "cp1257", "cp1258", "cp874", "koi8-r", "koi8-u", "mac-roman", "iso8859-2", "iso8859-3", "iso8859-4",
    "iso8859-5", "iso8859-6", "iso8859-7", "iso8859-8", "iso8859-9", "iso8859-10", "iso8859-13", "iso8859-14",
    "iso8859-15", "iso8859-16", "shift_jis", "cp932", "euc_jp", "iso2022_jp", "gb2312", "gbk", "gb18030",
    "big5", "big5hkscs", "euc_kr", "cp949",
))  # fmt: skip
_AS_BROWSERS = {"iso8859-1": "cp1252", "ascii": "cp1252", "iso8859-9": "cp1254", "gb2312": "gb18030"}
_CONTROLS = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")


def page_text(data: bytes) -> str:
    """Decode a page, even if it declares the wrong encoding; control characters become spaces."""
    return _CONTROLS.sub(" ", _decoded(data))


def _decoded(data: bytes) -> str:
    for mark, encoding in _MARKS:
        if data.startswith(mark):
            return data.removeprefix(codecs.BOM_UTF8).decode(encoding, "replace")
    if data[:2] in (b"<\0", b"\0<"):
        return data.decode("utf-16-le" if data[0] else "utf-16-be", "replace")
    for encoding in (_declared(data), "utf-8"):
        try:
            return data.decode(encoding)
        except UnicodeDecodeError:  # the declaration is wrong
            continue
    # A few damaged characters do not mean another encoding.
    text = data.decode("utf-8", "replace")
    return text if text.count("\ufffd") * 4 < sum(sign > "\x7f" for sign in text) else data.decode("cp1252", "replace")


def _declared(data: bytes) -> str:
    match = _DECLARED.search(data, 0, 2048)
    if not match:
        return "utf-8"
    try:
        name = codecs.lookup((match[1] or match[2]).decode("ascii")).name
    except LookupError:
        return "utf-8"
    return _AS_BROWSERS.get(name, name) if name in _KNOWN else "utf-8"


class MarkupParser(HTMLParser):
    """An HTMLParser that does not raise on malformed markup."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)

    def parse_marked_section(self, i: int, report: bool = True) -> int:
        try:
            return super().parse_marked_section(i, report)
        except AssertionError:  # an unknown kind; like browsers, skip to the next ">"
            return self.parse_bogus_comment(i)


def types_of(values: dict[str, str | None]) -> set[str]:
    """An element's EPUB types and ARIA roles, from its attributes."""
    return set(f"{values.get('epub:type') or ''} {values.get('role') or ''}".lower().split())
