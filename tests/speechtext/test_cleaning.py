"""Debris pasted along with a text is removed, and the rest is unchanged; brackets are tags or words."""

from __future__ import annotations

import pytest

from speechtext.characters import clean_signs
from speechtext.elements import without_elements
from speechtext.markup import without_markup
from speechtext.reading import with_formulas_said
from speechtext.tags import hide_tags, read_brackets

TAGS = ("whisper", "slow", "level up")

SIGNS = [
    ("extra\u00ador\u00addi\u00adnary", "extraordinary"),
    ("\ufeffa\u200bb\u2060c\u200e\u202e\u0001\x7f", "abc"),
    ("\ufb01 \ufb02 \ufb00 \ufb03 \ufb06", "fi fl ff ffi st"),
    ("\uff28\uff49 \uff11\uff12\uff0e\uff15\uff05", "Hi 12.5%"),
    ("\U0001d401\U0001d428\U0001d425\U0001d41d", "Bold"),
    ("\ufefb \u0644\u0627", "\u0644\u0627 \u0644\u0627"),
    ("Tom &amp; Jerry&#39;s &quot;x&quot; &#x41; &eacute;", 'Tom & Jerry\'s "x" A \u00e9'),
    ("a&nbsp;b\u00a0c 10\u00a0km 1\u202f000", "a b c 10 km 1\u202f000"),
    ("&amp;amp;amp;lt; &#38;gt; &am&shy;p;", "< > &"),
    ("AT&T; R&D &nope; &#0; &#xD800;", "AT&T; R&D &nope;  "),
    ("a\ue000b\U0010ffffc\ufdd0", "abc"),
    ("a\r\nb\rc\u2028d\x0ce", "a\nb\nc\nd\ne"),
    ("co\u2010op co\u2011op", "co-op co-op"),
    ("\u2764\ufe0f 1\ufe0f\u20e3", "\u2764 1"),
    ("e\u0301", "\u00e9"),
    ("5\u2103 \u2163 10\u338f", "5\u00b0C IV 10kg"),
]
KEPT_SIGNS = [
    "x\u00b2 \u00bd \u4f60\u597d\uff0c\u4e16\u754c\u3002\uff01\uff1f\u3000\u300c",
    "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645 \u0915\u094d\u200d\u0937",
    "\u0600\u0661 \u1100\u1161",
    "Two  spaces,\ttabs\n\n and a -- dash \u2014 \u2026 \u2122",
]


@pytest.mark.parametrize(("written", "clean"), [*SIGNS, *((text, text) for text in KEPT_SIGNS)])
def test_unpronounceable_characters_are_removed_or_spelt_out(written: str, clean: str) -> None:
    assert clean_signs(written) == clean.replace("\u1100\u1161", "\uac00")
    assert clean_signs(clean_signs(written)) == clean_signs(written)


MARKUP = [
    ("### Head ###\n\nText", "Head\n\nText"),
    ("**b** *i* __b__ _i_ ~~s~~ `c` ***bi***", "b i b i s c bi"),
    ("**One. Two.** *Note", "One. Two. Note"),
    ("- a\n* b\n+ c\n> d\n> - [x] e\n\u2022 f", "a\nb\nc\nd\ne\nf"),
    ("| a | b |\n|:--|--:|\n| 1 | |", "a, b\n\n1"),
    ("a | b\n---|---\n1 | 2", "a, b\n\n1, 2"),
    ("a\n---\nb\n* * *\n```py\nc\n```", "a\n\nb\n\n\nc\n"),
    ('[the page](https://a.b/c_(d)) ![alt](i.png "t") <https://x.y>', "the page alt https://x.y"),
    ("France [1]. Museums [2][3], [2, 3] [4\u20136].[^1]", "France. Museums,."),
    ("So it is [citation needed] here [note 2].", "So it is here."),
    ("[1] A book.\n[^2]: A note.\n[x]: https://a.b", "A book.\nA note.\n"),
    ("Great \U0001f389 news\U0001f44d. \U0001f468\U0001f469\nAnd\u2728so", "Great news.\nAnd so"),
    ("don`t", "don't"),
    ("\\*this\\* \\_is\\_ \\# 5 \\> 3", "this is # 5 > 3"),
    (
        "A word\u00b3 and a stop.\u00b9\u00b2\n\u00b9 A note of 5 inch\u00b2, x\u00b2",
        "A word and a stop.\nA note of 5 inch\u00b2, x\u00b2",
    ),
    ("<|speaker:0|>**Hi** | there <|speaker:1|>[1] x", "<|speaker:0|>Hi, there <|speaker:1|>x"),
]
KEPT_WORDS = [
    "2*3*4, 5 * 3 and 2**3", "snake_case, C# and F#, #tag, @me, 5 # 3", "f**k", "[2024] and [a]",
    "1. first\n2. second", "He said - well - no.", "~5 km", "[whisper](softly)", "<|speaker:0|>a", "a -- b",
    "x < y > z", "[Anna]: ...well", "[whisper](...softly) (he said)", r"a \[1] b", "a ***** b", "-5 degrees\n+5",
]  # fmt: skip


@pytest.mark.parametrize(("written", "plain"), [*MARKUP, *((text, text) for text in KEPT_WORDS)])
def test_markup_is_removed_and_its_words_remain(written: str, plain: str) -> None:
    assert without_markup(written) == plain
    assert without_markup(plain) == plain


BRACKETS = [
    ("He cast [Fireball] and [a b].", "He cast Fireball and a b."),
    ("[Whisper] a [ LEVEL  up ] b", "[whisper] a [level up] b"),
    (r"\[whisper] a \[b] \[pause:1s]", "whisper a b pause:1s"),
    ("[pause:1s] a [PAUSE: 20 ms] [pause:x]", "[pause:1s] a [PAUSE: 20 ms] pause:x"),
    ("[t]he walk[ed] [Level 2]You re[Done]", "the walked Level 2 You re Done"),
    ("a [b [whisper] c] [d ] ] [e", "a b [whisper] c d  e"),
    ("[] <|speaker:1|>[x]", " <|speaker:1|>x"),
]


@pytest.mark.parametrize(("written", "read"), BRACKETS)
def test_only_tags_of_the_model_and_the_studio_keep_their_brackets(written: str, read: str) -> None:
    assert read_brackets(written, TAGS) == read
    assert read_brackets(read, TAGS) == read


def test_only_escaped_brackets_are_words_if_the_model_lists_no_tags() -> None:
    assert read_brackets(r"[any words] a \[b] [c", None) == "[any words] a b [c"


def test_hiding_tags_keeps_all_positions() -> None:
    text = r"[whisper] He [Fireball] \[slow] [pause:1s] <|speaker:1|>end"
    hidden = hide_tags(text, TAGS)
    assert len(hidden) == len(text) and hidden.split() == ["He", "Fireball", "slow", "end"]
    assert all(text[at] == sign for at, sign in enumerate(hidden) if sign != " ")
    assert hide_tags(text, None).split() == ["He", "slow", "end"]


ELEMENTS = [
    ('Now.<break time="1s"/> Stand <b>back</b>.', "Now.[pause:1s] Stand back."),
    ("a<break strength='none'/>b<break/>c<break time=300ms />d", "ab[pause:0.5s]c[pause:300ms]d"),
    ("<speak><p>One.</p><p>Two</p></speak>", "One.\nTwo\n"),
    ("a<br>b<br/>c <I CLASS='x y'>d</I>", "a\nb\nc d"),
    ("<prosody rate='slow'>a</prosody> <a href=\"http://b.c/?d=e\">f</a><!-- g - h -->", "a f"),
    ("<think>Hm, <b>two</b>.\n\nOr <think>three.</think>\nTwo.", "\nTwo."),
    ("<think>Hm.", "Hm."),
]
NO_ELEMENTS = ["5 < 6 > 4", "List<int>", "I <3 you", "a <b and c> d", "<|speaker:0|>a", "<x>", "<https://a.b>", "<>"]


@pytest.mark.parametrize(("written", "plain"), [*ELEMENTS, *((text, text) for text in NO_ELEMENTS)])
def test_elements_are_no_words_and_breaks_are_pauses(written: str, plain: str) -> None:
    assert without_elements(written) == plain
    assert without_elements(plain) == plain


FORMULAS = [
    (r"The area is $A = \pi r^2$ and costs $5.", "The area is A equals pi r squared and costs $5."),
    (r"\(x_1\), $n$ and $a + b$", "x sub one, n and a plus b"),
    (r"So \[ \frac{a}{b} \] and $$e^{-x}$$", "So a over b and e to the power of minus x"),
    (r"Die Fläche ist $A = \pi r^2$ und das ist nicht viel.",
        "Die Fläche ist A gleich pi r zum Quadrat und das ist nicht viel."),
    (r"L'aire est $A = \frac{x}{2}$ dans le plan et la vie.", "L'aire est A = frac x 2 dans le plan et la vie."),
]  # fmt: skip
NO_FORMULAS = [
    "$5 or $10", "US$ and A$ rates", "$1 = £0.8 and $2 = £1.6", "$my_var and $other_var", r"a \[1] b \(not) C:\dir",
    "$5 a b$", "from $a to b$", r"\(he said\)", "$$", "$ x $",
]  # fmt: skip


@pytest.mark.parametrize(("written", "said"), [*FORMULAS, *((text, text) for text in NO_FORMULAS)])
def test_formulas_are_said_and_prices_are_no_formulas(written: str, said: str) -> None:
    assert with_formulas_said(written) == said
