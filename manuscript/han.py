"""Finds names beside speech in Chinese prose, which has neither capital letters nor spaces: “宝钗因笑道：…”.

A name begins a clause of the sentence that ends with a verb of speech. How long it is follows from what else begins
clauses in the text.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence

_HAN = r"[\u3400-\u4dbf\u4e00-\u9fff]"
_CLAUSE = re.compile(r"[，、；：,;:—\s]+")
_SENTENCE = re.compile(r"[。！？…]+")
_VERB = re.compile(
    r"(?:道|說|说|問|问|答|叫|喊|嚷|罵|骂|喝|曰|想|央|告|嘆|叹|哼|念|咕哝|吩咐|命|應|应|回|笑)(?:着|著|了|他|她|我)?$"
)
_MANNER = r"(?:[忙便因又也即遂方才纔先急只且就连連悄低高声聲冷陪含微苦嘻哭笑叹嘆喝问問说說答接着著大怒央吆的地是])"
_DIRECT = re.compile(rf"({_HAN}{{2,5}}?){_MANNER}*{_VERB.pattern}")
_LEAD = (
    r"(?:那|这里|這裏|这|這|一個|一个|只见|只見|却说|卻說|且说|可巧|忽见|忽見|一时|一時|于是|於是|當下|当下|因|又|便)"
)
_LEADS = re.compile(rf"^{_LEAD}{{0,2}}")
_NO_NAME = frozenset(
    "一这這那说說又便因只却卻忽不再正他她我你它众衆大二三两兩几幾有是在到把对對向从從于於就也都还還的了着里裏内外口手仍似越伸嘴心遂拍問问起低随隨"
)
"""Signs that begin many clauses and hardly any name."""
_MOST = 300  # names, the most frequent ones: patterns grow with their number
_LONGEST = 5  # signs of a name: “駝背五少爺”
_INSIDE = frozenset("了着著過过裏里沒没把们們")  # of sentences and groups, not of a person's name
_LEAST = 3  # clauses that a name begins which never stands directly before a verb of speech
_KEPT = 0.5  # share of the clauses with these two signs that must go on with the rest of the name


class HanNames:
    """The names beside speech in one text."""

    def __init__(self, beside: Iterable[tuple[str, str]], narration: Iterable[str]) -> None:
        """``beside``: the narration before and after each quotation. Linear in the text."""
        starts = Counter[str]()
        for text in narration:
            for clause in _CLAUSE.split(_SENTENCE.sub("，", text)):
                begin = _LEADS.sub("", clause)
                starts.update(begin[:length] for length in range(2, min(_LONGEST, len(begin)) + 1))
        names = Counter[str]()
        for before, after in beside:
            for clauses in (_leading(before), _following(after)):
                names.update(filter(None, (_name(_LEADS.sub("", clause), starts) for clause in clauses)))
        ranked = [name for name, _ in names.most_common(_MOST)]
        # “华大妈跟” is 华大妈 and a verb, since names grow at their beginning: 黛玉, 林黛玉.
        self.names: Sequence[str] = [name for at, name in enumerate(ranked) if not name.startswith(tuple(ranked[:at]))]
        self.pattern = "|".join(sorted(map(re.escape, self.names), key=len, reverse=True)) or "(?!)"
        owned = rf"(?:(?:{self.pattern})的{_HAN}{{1,2}})?"
        self._start = re.compile(rf"^{_LEAD}{{0,2}}{owned}(?P<person>我(?!们|們)|(?:{self.pattern})(?!的(?!人)))")

    def tag(self, before: str, after: str) -> str:
        """The person whose verb of speech leads to a quotation, or follows it; blank if there is none."""
        for clauses in (_leading(before)[::-1], _following(after)[:1]):
            for clause in clauses:
                if (match := self._start.match(clause)) is not None:
                    return match["person"]
        return ""


def _leading(before: str) -> list[str]:
    """The clauses of the sentence before a quotation, if it ends with a verb of speech."""
    clauses = [clause for clause in _CLAUSE.split(_SENTENCE.split(before)[-1]) if clause]
    return clauses if clauses and _VERB.search(clauses[-1]) else []


def _following(after: str) -> list[str]:
    """The same of a whole sentence after a quotation: “…”一个人说。"""
    end = _SENTENCE.search(after)
    clauses = _CLAUSE.split(after[: end.start()]) if end else [""]
    return clauses if clauses[0] and _VERB.search(clauses[-1]) else []


def _name(clause: str, starts: Counter[str]) -> str:
    if clause[:1] in _NO_NAME or re.fullmatch(_MANNER + "+", clause[:2]):
        return ""  # “冷笑着说”
    direct = _DIRECT.fullmatch(clause)
    longest = len(direct[1]) if direct else min(_LONGEST, len(clause) - 1)
    least = max(_LEAST, _KEPT * starts[clause[:2]])
    for length in range(longest, 1, -1):
        if starts[clause[:length]] >= (2 if length > _LEAST else least) and not _INSIDE & set(clause[:length]):
            return clause[:length].removesuffix("的人").removesuffix("的")
    name = direct[1].removesuffix("的人").removesuffix("的") if direct else ""
    return "" if _INSIDE & set(name) else name
