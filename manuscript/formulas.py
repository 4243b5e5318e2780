"""Writes formulas of MathML (EPUB) and of Word as TeX between dollar signs, which are said in words."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from xml.etree.ElementTree import Element, SubElement

MAX_FORMULA = 400  # characters; nobody follows a longer formula by ear
MAX_DEPTH = 40  # elements within one another
_TABLES = json.loads(Path(__file__).with_name("formulas.json").read_text("utf-8"))
_TEMPLATES: dict[str, str] = _TABLES["templates"]
"""TeX by the names of elements; figures stand for their children in order, B for the first one in braces unless it is a
single sign, S for the sign of a Word operator."""
_PLACE = re.compile(r"(?<![A-Za-z])[012BS](?![A-Za-z])")
_SINGLE = re.compile(r"\s*(?:\\[A-Za-z]+|[^\W_]{1,9})\s*")
_EMPTY = re.compile(r"\[\s*\]|(?<!\})[_^]\{\s*\}|[_^]\{\s*\}(?=[_^\s]|$)")
_NOT_SAID = ("annotation", "annotation-xml", "mphantom", "maction")
_TEXTS = ("mi", "mn", "mo", "ms", "mtext", "t")
_GREEK: list[str] = _TABLES["greek"]  # in the order of Unicode
_SIGNS = {chr(0x3B1 + at): f"\\{name}" for at, name in enumerate(_GREEK)}
_SIGNS |= {chr(0x391 + at): f"\\{name.capitalize()}" for at, name in enumerate(_GREEK) if name != "varsigma"}
_SIGNS |= _TABLES["signs"]
_SIGN = re.compile(f"[{re.escape(''.join(_SIGNS))}]")
_FUNCTIONS = frozenset(_TABLES["functions"])
_WORD = re.compile(r"(?<![\\A-Za-z])[A-Za-z]{2,}")
LEAST_WORD = 4  # letters
_PLAIN = re.compile(r"[^\W_]{1,40}")
_IN_TEX = re.compile(r"[\\^_{}$]")


class FormulaBuilder:
    """Builds a formula from the tags of a page, however malformed."""

    def __init__(self, values: Mapping[str, str | None]) -> None:
        self._open = [Element("math", {"alttext": values.get("alttext") or ""})]
        self._root = self._open[0]
        self._too_deep = 0

    def begin(self, name: str, is_empty: bool = False) -> None:
        if len(self._open) > MAX_DEPTH:
            self._too_deep += not is_empty
        else:
            element = SubElement(self._open[-1], name)
            self._open += [] if is_empty else [element]

    def end(self, name: str) -> bool:
        """Whether the formula ends here."""
        if self._too_deep and name != "math":
            self._too_deep -= 1
        elif any(element.tag == name for element in self._open):
            while self._open.pop().tag != name:
                pass
        return not self._open

    def text(self, text: str) -> None:
        before = self._open[-1].text or ""
        if len(before) <= MAX_FORMULA:  # longer formulas are not said
            self._open[-1].text = before + text

    def read(self) -> str | None:
        return mathml_text(self._root)


def mathml_text(root: Element) -> str | None:
    """A formula of MathML as text: the words of its author, else TeX; None if it cannot be said."""
    words = " ".join(root.get("alttext", "").split())
    if words and not _IN_TEX.search(words) and len(words) <= MAX_FORMULA:
        return words
    return _as_text(root, lambda element: element.tag)


def word_text(root: Element) -> str | None:
    """A formula of a Word document as text; None if it cannot be said."""
    return _as_text(root, lambda element: element.tag.rpartition("}")[2])


def formulas_left_out(count: int) -> str:
    """The sentence about formulas that cannot be said."""
    return (
        f"{count} formulas are left out: they are too long, or empty."
        if count > 1
        else ("1 formula is left out: it is too long, or empty.")
    )


def _as_text(root: Element, name_of: Callable[[Element], str]) -> str | None:
    tex = _tex(root, name_of, MAX_DEPTH)
    tex = None if tex is None else " ".join(_EMPTY.sub("", tex).split())
    if not tex or len(tex) > MAX_FORMULA:
        return None
    return tex if _PLAIN.fullmatch(tex) else f"${tex}$"


def _tex(element: Element, name_of: Callable[[Element], str], depth: int) -> str | None:
    """The TeX of an element; None if it is too deep."""
    name = name_of(element)
    if name in _NOT_SAID or name.endswith("Pr"):
        return ""
    if name in _TEXTS:
        return _signs(" ".join("".join(element.itertext()).split()), name == "mtext")
    if not depth:
        return None
    properties = next((child for child in element if name_of(child).endswith("Pr")), Element(""))
    children = [_tex(child, name_of, depth - 1) for child in element if child is not properties]
    if None in children:
        return None
    pieces = [child for child in children if child is not None]
    if name in ("mtable", "m", "eqArr"):
        rows = r" \\ ".join(pieces)
        return rf"\begin{{matrix}} {rows} \end{{matrix}}"
    if name in ("mtr", "mlabeledtr", "mr"):
        return " & ".join(pieces)
    if name in ("d", "mfenced"):
        return f"( {' , '.join(pieces)} )"
    template = _TEMPLATES.get(name)
    if not template:
        return " ".join(pieces)
    pieces = [" ".join(pieces)] if name == "msqrt" else pieces
    pieces += [""] * (3 - len(pieces))
    base = pieces[0].strip() if _SINGLE.fullmatch(pieces[0]) else f"{{{pieces[0]}}}"
    signs = {"B": base, "S": _signs(_operator(properties), False).strip() if name == "nary" else ""}
    return _PLACE.sub(lambda place: signs[place[0]] if place[0] in signs else pieces[int(place[0])], template)


def _operator(properties: Element) -> str:
    """The sign of an operator of Word, an integral unless it names another."""
    for child in properties:
        if child.tag.rpartition("}")[2] == "chr":
            return next(iter(child.attrib.values()), "∑")
    return "∫"


def _signs(text: str, is_words: bool) -> str:
    text = "".join(sign for sign in text if sign not in "\u2061\u2062\u2063\u2064")  # invisible operators
    if is_words and any(map(str.isalpha, text)):
        return rf"\text{{ {_SIGN.sub(' ', text)} }}"
    return _WORD.sub(_word, _SIGN.sub(lambda sign: f"{_SIGNS[sign[0]]} ", text))


def _word(match: re.Match[str]) -> str:
    """Letters in a row: the name of a function, a word, or, if short, a product as Word writes it."""
    word = match[0]
    if word in _FUNCTIONS:
        return f"\\{word}"
    return rf"\text{{ {word} }}" if len(word) >= LEAST_WORD else " ".join(word)
