"""Figures, signs, tags and formulas in any order: each text is read or refused with a reason."""

from __future__ import annotations

import contextlib
import random

from speechtext import TextError, as_said, clean_signs, read_script
from speechtext.word_times import words_in

SIGNS = """
$5 €1,000.50 1st 2nd 10:30 1999-12-31 31/12/99 3/4 ½ km/h 5 -5°C 10^5 x² H2O #1 @a a@b.c https://a.b/c?d IV MCMXC ① ₂
Dr. St. No. p. 3 1-2 1–2 10% 5'6" 12pt § ² 1e5 0x1F 1,2,3 1.2.3.4 555-1234 +1 (555) 1990s '90s C++ A/B w/o & 0 00 007
[laugh] [whisper] [pause <break time='1s'/> (x) “ ” „ « » — – … ... ?! A: Anna: the The Smith said he I a the and is of
中文 你好，世界。 1万 ２０２４年 ひらがな 한국 שלום ١٢٣ é 👍 🇩🇪 *b* _i_ `c` ~~ # > - $$x$$ $x$ } { << >> 1/0
\\frac{1}{2} \\alpha \\sum_
"""
FORMULA = "\\pi r² ① x^2 \\$5 \\$ $ \\ct ٢ 0٢ 0,² \\frac{1}{2} \\alpha% 3 = + a_i { }"
FORMULA_PIECES = [*FORMULA.split(), " "]
PIECES = [*SIGNS.split(), "\n", "\n\n", "\u200b", "e\u0301", "9" * 40, "1." * 20]


def test_signs_in_any_order_are_read_or_refused() -> None:
    for seed in range(4000):
        chance = random.Random(seed)
        text = chance.choice([" ", "", ", "]).join(chance.choice(PIECES) for _ in range(chance.randrange(1, 14)))
        formula = "".join(chance.choice(FORMULA_PIECES) for _ in range(chance.randrange(1, 8)))
        for one in (text, rf"The area is \({formula}\) here.", f"The area is $${formula}$$ here."):
            with contextlib.suppress(TextError):
                read_script(as_said(clean_signs(one)))
        assert all(0 <= start < end <= len(text) for start, end in words_in(text)), text
