"""Writes the prompts for training the model: sentences from free texts and templates, with the teacher's phonemes.

python -m training.texts.prompts WORK/prompts.npz --root ROOT      ROOT: the unpacked Debian packages of sources.py
"""

from __future__ import annotations

import argparse
import random
import re
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

from training.texts.cleaning import is_held_out, key, words, years_read
from training.texts.evaluation import evaluation_sentences
from training.texts.forms import Form
from training.texts.reading import Phonemiser
from training.texts.selection import Candidate, choose
from training.texts.sources import SOURCES, known_words, sentences
from training.texts.store import Prompt, write_prompts
from training.texts.templates import fill, lines, slots

NUMBERS, SPELLED, EVERYDAY, SHORT = 75_000, 15_000, 24_000, 19_000
JOINED_ONE_IN, CURLY_ONE_IN, DASH_ONE_IN, RESTOPPED_ONE_IN, CASUAL_ONE_IN = 5, 8, 3, 3, 20
# Read letter by letter or character by character, and so never written out as words.
_NOT_WRITTEN_OUT = re.compile(r"\b[A-Z] [A-Z0-9]|\b[A-Z]{2,}\b(?<!AM)(?<!PM)| dot |\b[A-Z] (?:zero|one|two)|Miz")

Row = tuple[str, Form]  # kind, and the text with what is read


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("out", type=Path)
    parser.add_argument("--root", type=Path, required=True, help="folder of the unpacked Debian packages")
    parser.add_argument("--only", type=int, help="keep no more rows than this")
    parser.add_argument("--seed", type=int, default=20, help="another one picks other rows, in another order")
    arguments = parser.parse_args()
    rows = rows_to_read(arguments.root, arguments.seed)[: arguments.only]
    prompts = list(read(rows, Phonemiser()))
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    write_prompts(arguments.out, prompts)
    report(prompts)


def rows_to_read(root: Path, seed: int) -> list[Row]:
    """Every training row in its final order, without held-out texts, duplicates and evaluation sentences."""
    rng = random.Random(seed)
    known = known_words(root)
    taken = {key(written) for judged in evaluation_sentences() for written in (judged.text, judged.words)}
    rows = _free_texts(root, known, taken, rng)
    rows += _templates(sorted(word for word in known if re.fullmatch("[a-z]{3,12}", word)), taken, rng)
    rng.shuffle(rows)
    typeset = {_typeset(form.text, rng): (kind, form.words) for kind, form in rows}
    return [(kind, Form(text, words)) for text, (kind, words) in typeset.items() if not is_held_out(text)]


def read(rows: list[Row], phonemiser: Phonemiser) -> Iterator[Prompt]:
    """Rows with the teacher's tokens; those that it cannot read in both accents are left out."""
    for kind, form in rows:
        american, british = (phonemiser.tokens(form.words, british) for british in (False, True))
        if american is not None and british is not None:
            yield Prompt(form.text, kind, (american, british))


def report(prompts: list[Prompt]) -> None:
    """Print rows by kind, words, distinct words, and how many of these occur five times."""
    frequency = Counter(word for prompt in prompts for word in words(prompt.text))
    kinds = Counter(prompt.kind for prompt in prompts)
    for kind, count in kinds.most_common():
        print(f"{kind:10} {count:7} rows {100 * count / len(prompts):5.1f} %")
    often = sum(count >= 5 for count in frequency.values())
    print(f"{len(prompts)} rows, {frequency.total()} words, {len(frequency)} distinct, {often} at least five times")


def _free_texts(root: Path, known: set[str], taken: set[str], rng: random.Random) -> list[Row]:
    candidates: list[Candidate] = []
    for number, source in enumerate(SOURCES):
        for sentence in sentences(source, root, known):
            if key(sentence) not in taken and not is_held_out(sentence):
                taken.add(key(sentence))
                candidates.append(Candidate(sentence, number))
    shares = {number: source.rows for number, source in enumerate(SOURCES)}
    forms = [(SOURCES[c.source].kind, Form(c.text, years_read(c.text))) for c in choose(candidates, shares, rng)]
    return [(kind if form.text == form.words else "number", form) for kind, form in forms]


def _templates(words: list[str], taken: set[str], rng: random.Random) -> list[Row]:
    choices = slots(words)

    def drawn(name: str) -> Callable[[], Form]:
        templates = lines(name)
        return lambda: fill(rng.choice(templates), choices, rng)

    figures, everyday, drawn_short = drawn("numbers.txt"), drawn("everyday.txt"), drawn("short.txt")

    def numbers() -> Form:
        if rng.randrange(JOINED_ONE_IN):
            return figures()
        first, second = rng.sample((figures(), everyday()), 2)
        return Form(f"{_stopped(first.text)} {second.text}", f"{_stopped(first.words)} {second.words}")

    def spelled() -> Form:
        while True:
            form = numbers()
            if form.text != form.words and not _NOT_WRITTEN_OUT.search(form.words):
                return Form(form.words, form.words)

    def short() -> Form:
        form = drawn_short()
        if rng.randrange(RESTOPPED_ONE_IN):
            return form
        stop = rng.choice((".", "!", "?", ""))
        return Form(form.text.rstrip(".!?,") + stop, form.words.rstrip(".!?,") + stop)

    return [
        *_distinct("number", NUMBERS, numbers, taken),
        *_distinct("spelled", SPELLED, spelled, taken),
        *_distinct("everyday", EVERYDAY, everyday, taken),
        *_distinct("short", SHORT, short, taken),
    ]


def _distinct(kind: str, wanted: int, draw: Callable[[], Form], taken: set[str]) -> Iterator[Row]:
    """Rows that differ in words or in their final stop, without held-out texts."""
    tries = 0
    while wanted and tries < 100_000:
        form = draw()
        tries += 1
        name = key(form.text) + (form.text[-1] if kind == "short" else "")
        if name not in taken and not is_held_out(form.text) and len(form.text) <= 180:
            taken.add(name)
            wanted -= 1
            tries = 0
            yield kind, form


def _stopped(text: str) -> str:
    return text if text[-1] in '.!?"' else f"{text}."


def _typeset(text: str, rng: random.Random) -> str:
    """Give some texts a word processor's quotation marks and dashes, some no capital or stop; leave most unchanged."""
    if "—" in text and rng.randrange(DASH_ONE_IN) == 0:
        text = re.sub(r"\s*—\s*", rng.choice((" - ", " — ", " -- ")), text)
    if ("'" in text or '"' in text) and rng.randrange(CURLY_ONE_IN) == 0:
        text = re.sub(r'"(?=\S[^"]*")', "“", text).replace('"', "”").replace("'", "’")
    if rng.randrange(CASUAL_ONE_IN) == 0:
        text = re.sub(r"(?<=[^.])\.$", "", text)
        text = rng.choice((text, text[0].lower() + text[1:] if text[1:2].islower() else text))
    return text


if __name__ == "__main__":
    main()
