"""The model's training texts: clean sentences, one reading per figure, no held-out or repeated ones."""

from __future__ import annotations

import gzip
import random
import re
import struct
import subprocess
import sys
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from training.texts import numerals, prompts, sources
from training.texts.cleaning import as_sentence, clean, is_held_out, key, passages, years_read
from training.texts.evaluation import evaluation_sentences
from training.texts.forms import FORMS, Form
from training.texts.reading import Phonemiser
from training.texts.selection import Candidate, choose
from training.texts.sources import Reader, Source, sentences
from training.texts.store import Prompt, Prompts, write_prompts
from training.texts.templates import fill, lines, plural, slots

KNOWN = frozenset(
    """the a an and of in is was were to it i you he she they we that this with for on at not dog cat house river ship
    captain said where are who will come home tonight small old word friend time press button gently lived lonely
    wait must turn back now look riders approach from hill beside green what small large animal long tail
    never see again my have seen her before nothing moves here""".split()  # noqa: SIM905
)
EVALUATION = evaluation_sentences()


@pytest.mark.parametrize(
    ("reading", "number", "words"),
    [
        (numerals.cardinal, 0, "zero"),
        (numerals.cardinal, 21, "twenty-one"),
        (numerals.cardinal, 105, "one hundred and five"),
        (numerals.cardinal, 1_000, "one thousand"),
        (numerals.cardinal, 12_034, "twelve thousand and thirty-four"),
        (numerals.cardinal, 2_500_300, "two million five hundred thousand three hundred"),
        (numerals.cardinal, -7, "minus seven"),
        (numerals.ordinal, 1, "first"),
        (numerals.ordinal, 12, "twelfth"),
        (numerals.ordinal, 20, "twentieth"),
        (numerals.ordinal, 143, "one hundred and forty-third"),
        (numerals.suffixed, 22, "22nd"),
        (numerals.suffixed, 113, "113th"),
        (numerals.year, 1900, "nineteen hundred"),
        (numerals.year, 1905, "nineteen oh five"),
        (numerals.year, 2000, "two thousand"),
        (numerals.year, 2009, "two thousand and nine"),
        (numerals.year, 2024, "twenty twenty-four"),
        (numerals.room, 204, "two oh four"),
        (numerals.room, 1215, "twelve fifteen"),
        (numerals.room, 300, "three hundred"),
        (numerals.digits, "(020) 7-1", "zero two zero seven one"),
        (numerals.decimal, "3.05", "three point zero five"),
        (numerals.decimal, "-1,200.5", "minus one thousand two hundred point five"),
    ],
)
def test_numbers_have_the_expected_reading(reading: Callable[[Any], str], number: int | str, words: str) -> None:
    assert reading(number) == words


@pytest.mark.parametrize("name", FORMS)
def test_written_form_has_one_reading_without_digits(name: str) -> None:
    rng = random.Random(1)
    readings: dict[str, str] = {}
    for _ in range(3000):
        form = FORMS[name](rng)
        assert not re.search(r"[\d%$£€°&@/+=×²½¼¾]|\s{2}", form.words), form
        assert readings.setdefault(form.text, form.words) == form.words


@pytest.mark.parametrize(
    ("form", "text", "words"),
    [
        ("price", "$49.99", "forty-nine dollars and ninety-nine cents"),
        ("price", "£1", "one pound"),
        ("price", "€2.50", "two euros and fifty cents"),
        ("price", "£0.99", "ninety-nine pence"),
        ("time", "3:45", "three forty-five"),
        ("time", "7:00", "seven o'clock"),
        ("time", "7:00 pm", "seven PM"),
        ("time", "15:30", "fifteen thirty"),
        ("time", "11:05am", "eleven oh five AM"),
        ("date", "March 3", "March third"),
        ("date", "3 March", "the third of March"),
        ("heat", "-5°C", "minus five degrees Celsius"),
        ("heat", "1°C", "one degree Celsius"),
        ("data", "16 GB", "sixteen gigabytes"),
        ("percent", "3.5%", "three point five percent"),
        ("decade", "1980s", "nineteen eighties"),
        ("score", "3-1", "three to one"),
        ("number", "No. 5", "number five"),
    ],
)
def test_common_written_forms_have_the_expected_reading(form: str, text: str, words: str) -> None:
    rng = random.Random(2)
    drawn = (FORMS[form](rng) for _ in range(200_000))
    assert next(one.words for one in drawn if one.text == text) == words


@pytest.mark.parametrize("name", ["numbers.txt", "everyday.txt", "short.txt"])
def test_templates_can_be_filled_and_read(name: str) -> None:
    choices, rng = slots(["table", "sky"]), random.Random(3)
    for template in lines(name):
        for _ in range(5):
            form = fill(template, choices, rng)
            assert not re.search(r"[{}]|\s{2}|\.\.(?!\.)", form.text), form
            assert not re.search(r"[{}\d]", form.words), form
            assert form.text[0].isupper() or not form.text[0].isalpha() or name == "numbers.txt"


def test_templates_adjust_articles_plurals_and_capitals() -> None:
    choices = {"animal": lambda _: Form("owl", "owl"), "small": lambda _: Form("8", "eight")}
    rng = random.Random(0)
    assert fill("{animal}s eat. {animal}s sleep beside a {animal}.", choices, rng) == Form(
        *2 * ("Owls eat. Owls sleep beside an owl.",)
    )
    assert fill('"Who?" {animal} said. A {small}.', choices, rng).text == '"Who?" owl said. An 8.'
    assert [plural(noun) for noun in ("watch", "party", "goose", "sheep", "toy")] == [
        "watches", "parties", "geese", "sheep", "toys",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("raw", "kept"),
    [
        ("“We’re late,” she said", '"We\'re late," she said.'),
        ("Well -- I suppose so!", "Well—I suppose so!"),
        ("It was Mr. Jones who called (again).", "It was Mr. Jones who called."),
        ('"Come in."', "Come in."),
        ('He said "no.', "He said no."),
    ],
)
def test_sentence_is_normalised_to_plain_characters(raw: str, kept: str) -> None:
    assert clean(raw) == kept


@pytest.mark.parametrize(
    "raw",
    ["if (x > 3) return;", "See section 4.", "Type the following:", "lower case start", "THE WHOLE SENTENCE IS LOUD.",
     "What a damned idiot!", "Hast thou seen it, as the the king?", "Ends in ,; odd marks.", "Файл не найден."],
)  # fmt: skip
def test_code_digits_shouting_and_insults_are_rejected(raw: str) -> None:
    assert clean(raw) is None


def test_prose_is_split_into_sentences_of_known_words() -> None:
    prose = "The old ship was at home. Mr. Captain said: wait!  I have seen her before. Xqz qvv zzk the ship is it."
    texts = list(passages(prose, KNOWN | {"Mr", "Captain"}))
    assert " ".join(texts) == "The old ship was at home. Mr. Captain said: wait! I have seen her before."
    assert list(passages("It is.", KNOWN)) == []
    assert as_sentence("a small animal with a long tail") == "A small animal with a long tail."


def test_years_are_the_only_digits_allowed_in_prose() -> None:
    text = clean("In 1936, the ship was old (but not until 2005).")
    assert text == "In 1936, the ship was old."
    assert years_read(text) == "In nineteen thirty-six, the ship was old."
    assert clean("In 1936 ships were old.") is None
    assert clean("He paid 1936.") is None


def test_one_text_in_sixty_is_held_out() -> None:
    assert 130 < sum(is_held_out(f"Sentence number {n}.") for n in range(10_000)) < 205


def _write(path: Path, text: str) -> None:
    data = text.encode()
    path.write_bytes(gzip.compress(data) if path.suffix in (".gz", ".dz") else data)


@pytest.mark.parametrize(
    ("reader", "name", "text", "expected"),
    [
        (sources.quoted, "a.cfg", 'id=x\nmessage= _ "Look, riders approach from the hill."', "Look, riders approach"),
        (sources.back_quoted, "a.txt", "say\n\t`The captain was at home.`\n", "The captain was"),
        (sources.json_texts, "a.json", '{"text": "Who are you, friend?"}', "Who are you, friend?"),
        (sources.lua_texts, "a.lua", "x = _([[Will you come home tonight?]])", "Will you come home"),
        (sources.web_page, "a.html", "<p>The <b>dog</b> was old.<pre>x = 1</pre></p><p>It is a small house.</p>",
         "It is a small house."),
        (sources.fortunes, "f", "The river is old.\n\t\t-- Captain\n%\nThe dog was not here.\n", "The dog was"),
        (sources.dictionary, "d.dict.dz", "Dog \\Dog\\, n. [L.]\n   1. The old {friend}.  --Bacon.\n", "The old fri"),
        (sources.wordnet_glosses, "data.noun", '0001 x | a small animal with a long tail; "see"\n', "A small animal"),
        (sources.wordnet_examples, "data.verb", '0001 x | to be; "he was in the house"\n', "He was in the house."),
        (sources.crawl_speech, "m.txt", '%%%%\n@The_monster@ says, "Nothing moves here now."\n', "Nothing moves"),
    ],
)  # fmt: skip
def test_readers_find_the_spoken_text(tmp_path: Path, reader: Reader, name: str, text: str, expected: str) -> None:
    _write(tmp_path / name, text)
    source = Source("package", "prose", 10, name, reader)
    assert any(sentence.startswith(expected) for sentence in sentences(source, tmp_path, KNOWN))


def test_compressed_books_are_read(tmp_path: Path) -> None:
    def block(*printed: str) -> bytes:
        body = b"".join(b"\0\4\0\t" + struct.pack(">i", len(one)) + one.encode() for one in printed)
        return struct.pack(">I", len(body)) + zlib.compress(body)

    (tmp_path / "books.rdb").write_bytes(block("The captain was", "at home.", "") + block("It is an old house."))
    verse = zlib.compress(b"<verse>He said, <q>Come home tonight.</q></verse>")
    (tmp_path / "nt.bzz").write_bytes(verse)
    (tmp_path / "nt.bzs").write_bytes(struct.pack("<III", 0, len(verse), 50))
    novels = sentences(Source("r", "prose", 9, "*.rdb", sources.r_novels), tmp_path, KNOWN)
    assert list(novels) == ["The captain was at home.", "It is an old house."]
    verses = sentences(Source("s", "prose", 9, "*.bzs", sources.sword_verses), tmp_path, KNOWN)
    assert list(verses) == ["He said, Come home tonight."]


def test_a_missing_package_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="unpack the Debian package dict-gcide"):
        list(sentences(sources.SOURCES[-1], tmp_path, KNOWN))


def test_rare_words_are_covered_first_and_no_source_exceeds_its_share() -> None:
    plain = [Candidate(f"The same again, number {'abcdefghij'[n % 10]}.", 0) for n in range(200)]
    rare = [Candidate("The owl hums.", 0), Candidate("The owl waits.", 0), Candidate("Quite another source.", 1)]
    chosen = choose(plain + rare, {0: 40, 1: 5}, random.Random(0))
    assert set(rare) <= set(chosen)
    assert sum(candidate.source == 0 for candidate in chosen) == 40


def test_selection_does_not_depend_on_the_hash_seed() -> None:
    script = """if True:
        import random
        from training.texts.selection import Candidate, choose
        texts = ["dog owl", *3 * ["dog the"], *3 * ["owl the"]]
        print([c.text for c in choose([Candidate(text, 0) for text in texts], {0: 3}, random.Random(0))])"""
    choices = {
        subprocess.run(
            [sys.executable, "-c", script], env={"PYTHONHASHSEED": seed}, capture_output=True, check=True, text=True
        ).stdout
        for seed in ("11", "23")
    }
    assert len(choices) == 1


def test_prompts_are_read_from_the_file_as_written(tmp_path: Path) -> None:
    rows = [
        Prompt("Café, “yes”—£3!", "number", (np.array([5, 9], np.uint8), np.array([7], np.uint8))),
        Prompt("No.", "short", (np.array([1], np.uint8), np.array([2, 3, 4], np.uint8))),
    ]
    write_prompts(tmp_path / "prompts.npz", rows)
    assert [path.name for path in tmp_path.iterdir()] == ["prompts.npz"]
    back = Prompts(tmp_path / "prompts.npz")
    assert len(back) == 2
    for number, row in enumerate(rows):
        assert (back.text(number), back.kind(number)) == (row.text, row.kind)
        for british in (False, True):
            assert back.tokens(number, british).tolist() == row.tokens[british].tolist()


@pytest.fixture
def small_root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two short sources and a dictionary, and a few rows of every kind of template."""
    (tmp_path / "usr/share/dict").mkdir(parents=True)
    (tmp_path / "usr/share/dict/american-english-large").write_text("\n".join(sorted(KNOWN)))
    spoken = [f"The {a} {b} was at home {c}." for a in ("old", "small", "green") for b in ("dog", "cat", "ship")
              for c in ("tonight", "again", "before")]  # fmt: skip
    _write(tmp_path / "a.txt", "\n".join(f"`{sentence}`" for sentence in [*spoken, *spoken, EVALUATION[-1].text]))
    monkeypatch.setattr(prompts, "SOURCES", (Source("p", "dialogue", 20, "a.txt", sources.back_quoted),))
    for name in ("NUMBERS", "SPELLED", "EVERYDAY", "SHORT"):
        monkeypatch.setattr(prompts, name, 120)
    return tmp_path


def test_rows_are_distinct_reproducible_and_exclude_held_out_texts(small_root: Path) -> None:
    rows = prompts.rows_to_read(small_root, 20)
    assert rows == prompts.rows_to_read(small_root, 20)
    kinds = [kind for kind, _ in rows]
    assert {kind for kind in kinds if kinds.count(kind) >= 15} == {"dialogue", "number", "spelled", "everyday", "short"}
    assert kinds.count("dialogue") <= 20, "a source's share"
    texts = [form.text for _, form in rows]
    assert len(set(texts)) == len(texts)
    judged = {key(one.text) for one in EVALUATION}
    assert not judged & {key(text) for text in texts}
    assert not any(map(is_held_out, texts))
    assert not any(re.search(r"\d", form.text) for kind, form in rows if kind == "spelled")
    assert len(set(kinds[:60])) == 5, "any beginning of the file is a mixture"


def test_rows_that_the_teacher_cannot_read_are_left_out() -> None:
    class Deaf(Phonemiser):
        def __init__(self) -> None:
            """Skip the packages that the real one needs."""

        def tokens(self, words: str, british: bool) -> np.ndarray | None:
            return None if british and "u" in words else np.array([len(words)], np.uint8)

    rows = [("short", Form("Yes.", "Yes.")), ("short", Form("Sure.", "Sure."))]
    assert [prompt.text for prompt in prompts.read(rows, Deaf())] == ["Yes."]


def test_evaluation_sentences_are_distinct_and_read_without_digits() -> None:
    assert len({key(one.text) for one in EVALUATION}) == len(EVALUATION) >= 200
    assert sum(one.kind == "number" for one in EVALUATION) >= 60
    assert all((one.text != one.words) == (one.kind == "number") for one in EVALUATION)
    assert not any(re.search(r"[\d$£€%]", one.words) for one in EVALUATION)


@pytest.mark.teacher
def test_the_teacher_reads_american_and_british() -> None:
    from training.texts.reading import Phonemiser

    phonemiser = Phonemiser()
    assert phonemiser.phonemes("The eighth answer", british=False) == "ði ˈAtθ ˈænsəɹ."
    assert phonemiser.phonemes("The eighth answer", british=True) == "ði ˈAtθ ˈɑːnsə."
    tokens = phonemiser.tokens("Yes...", british=False)
    assert phonemiser.phonemes("Simon's cat", british=False) == "sˈImənz kˈæt.", "not guessed from the spelling"
    assert tokens is not None
    assert tokens[-1] == 10, "three dots are one ellipsis"
    assert phonemiser.tokens("word " * 200, british=False) is None
