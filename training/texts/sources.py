"""Readers of free prose in unpacked Debian packages: books, dictionaries, manuals, fortunes, dialogue of games."""

from __future__ import annotations

import gzip
import html
import re
import struct
import zlib
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

from training.texts.cleaning import as_sentence, passages

Reader = Callable[[Path], Iterator[str]]


@dataclass(frozen=True, slots=True)
class Source:
    """A Debian package: the kind of its rows, their maximum number, where they are and how they are read."""

    package: str
    kind: str  # prose, dialogue, manual or gloss
    rows: int
    pattern: str
    read: Reader
    without: str = r"$^"  # files to leave out, as a regular expression of their path


def known_words(root: Path) -> set[str]:
    """The words of a dictionary, with their capitals (package wamerican-large)."""
    return set((root / "usr/share/dict/american-english-large").read_text(encoding="utf-8").split())


def sentences(source: Source, root: Path, known: Collection[str]) -> Iterator[str]:
    """Every clean sentence of a source; raises FileNotFoundError when the package is missing."""
    paths = [path for path in sorted(root.glob(source.pattern)) if not re.search(source.without, str(path))]
    if not paths:
        raise FileNotFoundError(f"{root} has no {source.pattern}: unpack the Debian package {source.package} there")
    for path in paths:
        for passage in source.read(path):
            yield from passages(passage, known)


def paragraphs(path: Path) -> Iterator[str]:
    """Text with blank lines between paragraphs, gzipped or not; indented blocks (code, tables) are left out."""
    text = _text(path)
    for block in re.split(r"\n\s*\n", text):
        if not re.search(r"\n? {8,}\S|\t\t|\|", block):
            yield block


def fortunes(path: Path) -> Iterator[str]:
    """Entries between lines of a percent sign, without the speaker's name."""
    for entry in _text(path).split("\n%\n"):
        yield re.split(r"\n\s*(?:-- |—)", entry)[0]


def web_page(path: Path) -> Iterator[str]:
    """Paragraphs of HTML or of Mallard, without code."""
    page = re.sub(r"(?s)<(pre|code|script|style|screen|var|tt|cmd|kbd)\b.*?</\1>", " \x00 ", _text(path))
    for paragraph in re.findall(r'(?s)<(?:p\b|div class="para")[^>]*>(.*?)</(?:p|div)>', page):
        if "\x00" not in paragraph:
            yield html.unescape(re.sub(r"<[^>]+>", "", paragraph))


def dictionary(path: Path) -> Iterator[str]:
    """Definitions of a dictd dictionary, one per paragraph, without headwords, labels, references and authors."""
    text = re.sub(r"\s--[A-Z].*|\[[^\[\]]*\]", "", _text(path))
    for block in re.split(r"\n\s*\n|\n(?=\S)|\n(?=\s*\d+\. )", text):
        definition = re.sub(r"^\S.*|^\s*\d+\.\s", "", block.strip("\n"))
        yield re.sub(r"\s+", " ", re.sub(r"\{([^{}]*)\}", r"\1", definition)).strip()


def wordnet_examples(path: Path) -> Iterator[str]:
    """The quoted examples after WordNet's definitions, if they are whole sentences."""
    for definition in _wordnet(path):
        for example in re.findall(r'"([^"]+)"', definition):
            if len(example.split()) >= 4:
                yield as_sentence(example) or ""


def wordnet_glosses(path: Path) -> Iterator[str]:
    """WordNet's definitions, each as a sentence."""
    for definition in _wordnet(path):
        yield as_sentence(definition.split('"')[0].split(";")[0]) or ""


def quoted(path: Path) -> Iterator[str]:
    """Texts of Wesnoth and Freeciv that are marked for translation: in double quotes, with quotes inside doubled."""
    for text in re.findall(r'_\(?\s*"((?:[^"]|"")*)"', _text(path)):
        yield from re.split(r"\n\n|(?:\\n)+", text.replace('""', '"').replace("\\\n", ""))


def back_quoted(path: Path) -> Iterator[str]:
    """Texts in back quotes, as Endless Sky writes dialogue."""
    yield from re.findall(r"`([^`\n]+)`", _text(path))


def json_texts(path: Path) -> Iterator[str]:
    """Texts of JSON files, without comments."""
    without_comments = re.sub(r'"//[^"]*":\s*"(?:[^"\\\n]|\\.)*"', "", _text(path))
    for text in re.findall(r'"((?:[^"\\\n]|\\.)*)"', without_comments):
        if " " in text and "<" not in text:
            yield text.replace('\\"', '"').replace("\\n", " ")


def lua_texts(path: Path) -> Iterator[str]:
    """Texts marked for translation in Lua scripts."""
    for long, short in re.findall(r'_\(?\s*(?:\[\[(.*?)\]\]|"((?:[^"\\\n]|\\.)*)")', _text(path), re.DOTALL):
        yield from (long or short.replace('\\"', '"')).replace("\\n", "\n").split("\n\n")


def crawl_speech(path: Path) -> Iterator[str]:
    """Lines of Dungeon Crawl's databases, without comments, keys and texts with gaps."""
    for line in re.split(r"\n\s*\n|%%%%", _text(path)):
        quotes = re.findall(r'"([^"@]+)"', line)
        if "#" not in line and "@" not in line:
            yield line
        elif quotes:
            yield quotes[-1]


def r_novels(path: Path) -> Iterator[str]:
    """Paragraphs of the novels in an R database: compressed blocks of strings, each a printed line."""
    data = path.read_bytes()
    offset = 0
    while offset + 4 < len(data):
        unpacker = zlib.decompressobj()
        block = unpacker.decompress(data[offset + 4 :])
        offset = len(data) - len(unpacker.unused_data)
        lines, position = [], block.find(b"\x00\x04\x00\x09")
        while position >= 0:
            (length,) = struct.unpack_from(">i", block, position + 4)
            lines.append(block[position + 8 : position + 8 + max(length, 0)].decode("latin-1"))
            position = block.find(b"\x00\x04\x00\x09", position + 8 + max(length, 0))
        for paragraph in "\n".join(lines).split("\n\n"):
            yield re.sub(r"_", "", paragraph)


def sword_verses(path: Path) -> Iterator[str]:
    """A Bible in SWORD's zText format: an index (.bzs) of zlib blocks (.bzz), verses joined to running text."""
    index, data = path.read_bytes(), path.with_suffix(".bzz").read_bytes()
    for start, size, _ in struct.iter_unpack("<III", index):
        text = zlib.decompress(data[start : start + size]).decode("utf-8", errors="ignore")
        text = re.sub(r"(?s)<(title|note)\b.*?</\1>", "", text)
        yield re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", text))


def _wordnet(path: Path) -> Iterator[str]:
    for line in _text(path).splitlines():
        if not line.startswith("  ") and " | " in line:
            yield line.split(" | ", 1)[1].strip()


def _text(path: Path) -> str:
    data = path.read_bytes()
    if path.suffix in (".gz", ".dz"):
        data = gzip.decompress(data)
    return data.decode("utf-8", errors="ignore")


SHARE, GAMES = "usr/share", "usr/share/games"
SOURCES = (
    Source("r-cran-janeaustenr", "prose", 18_000, "usr/lib/R/site-library/janeaustenr/data/Rdata.rdb", r_novels),
    Source("anarchism", "prose", 7_000, f"{SHARE}/doc/anarchism/html/*.html", web_page),
    Source("fortunes", "prose", 13_000, f"{GAMES}/fortunes/*", fortunes,
           r"\.(dat|u8)$|/\w\w(_\w\w)?$|art|translate|perl|ethnic|men-women|drugs|zippy|debian|knghtbrd|linuxcookie"),
    Source("wordnet-base", "prose", 20_000, f"{SHARE}/wordnet/data.*", wordnet_examples),
    Source("sword-text-web", "prose", 4_000, f"{SHARE}/sword/modules/texts/ztext/*/*.bzs", sword_verses),
    Source("dict-jargon", "prose", 5_000, f"{SHARE}/dictd/jargon.dict.dz", dictionary),
    Source("dict-foldoc", "manual", 5_000, f"{SHARE}/dictd/foldoc.dict.dz", dictionary),
    Source("gnome-user-docs", "manual", 3_000, f"{SHARE}/help/C/*/*.page", web_page),
    Source("debian-reference-en", "manual", 1_200, f"{SHARE}/debian-reference/*.en.html", web_page),
    Source("debian-handbook", "manual", 2_000, f"{SHARE}/doc/debian-handbook/html/en-US/*.html", web_page),
    Source("debian-faq", "manual", 600, f"{SHARE}/doc/debian/FAQ/*.html", web_page),
    Source("developers-reference", "manual", 1_000, f"{SHARE}/developers-reference/*.html", web_page),
    Source("wesnoth-1.16-*", "dialogue", 13_000, f"{GAMES}/wesnoth/**/*.cfg", quoted),
    Source("endless-sky-data", "dialogue", 8_000, f"{GAMES}/endless-sky/data/*.txt", back_quoted),
    Source("cataclysm-dda-data", "dialogue", 5_000, f"{GAMES}/cataclysm-dda/json/npcs/**/*.json", json_texts),
    Source("cataclysm-dda-data", "prose", 7_000, f"{GAMES}/cataclysm-dda/json/[i-s]*/**/*.json", json_texts, "/npcs/"),
    Source("naev-data", "dialogue", 5_000, f"{SHARE}/naev/dat/**/*.lua", lua_texts),
    Source("freedroidrpg-data", "dialogue", 6_000, f"{SHARE}/freedroidrpg/data/**/*.lua", lua_texts),
    Source("crawl-common", "dialogue", 5_000, f"{SHARE}/crawl/dat/d*/*.txt", crawl_speech),
    Source("freeciv-data", "prose", 2_500, f"{GAMES}/freeciv/**/*.ruleset", quoted),
    Source("wordnet-base", "gloss", 28_000, f"{SHARE}/wordnet/data.*", wordnet_glosses),
    Source("dict-gcide", "gloss", 6_000, f"{SHARE}/dictd/gcide.dict.dz", dictionary),
)  # fmt: skip
