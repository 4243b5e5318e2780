"""Plain texts, Markdown, subtitles and tables as written by archives, editors and players."""

from __future__ import annotations

from tests.longform.odd_books.odd_book import OddBook

TIMES = "00:00:01,000 --> 00:00:02,000"
LATER = "00:00:03 --> 00:00:04.5"

GUTENBERG = """The Project Gutenberg eBook of A Tale of a Hole

This ebook is for the use of anyone anywhere.

Title: A Tale of a Hole

Author: A. Writer

Language: English

*** START OF THE PROJECT GUTENBERG EBOOK A TALE OF A HOLE ***

Produced by Many Hands

[Illustration]

CONTENTS

 CHAPTER I.     Down the Hole
 CHAPTER II.    The Pool of Rain


CHAPTER I.
Down the Hole


Mary was beginning to get very tired of sitting by her brother on the
bank, and she _really_ wondered what "the use of it" was.

[Illustration: Mary on the bank.]

      *      *      *      *      *

It was the White Dog, trotting slowly back again--and looking anxiously
about as it went.


CHAPTER II.
The Pool of Rain


"Curious!" cried Mary.

End of the Project Gutenberg EBook of A Tale of a Hole

*** END OF THE PROJECT GUTENBERG EBOOK A TALE OF A HOLE ***

Updated editions will replace the previous one.
"""


def project_gutenberg() -> OddBook:
    return OddBook(
        "pg1.txt",
        GUTENBERG.encode("utf-8-sig"),
        ("CHAPTER I. Down the Hole", "CHAPTER II. The Pool of Rain"),
        ("she really wondered", "White Dog", "cried Mary"),
        ("*", "_", "Gutenberg", "Illustration", "CONTENTS", "Produced", "Updated"),
        skipped=2,
        title="A Tale of a Hole",
    )


def chapters_that_only_the_contents_name() -> OddBook:
    text = (
        "The Adventures of Ann\n\nContents\n\n   I.     A Scandal in Town\n   II.    The League of Hats\n\n\n"
        "I. A SCANDAL IN TOWN\n\n\nI.\n\nTo me she is always the one who came first of them all.\n\n"
        "II. THE LEAGUE OF HATS\n\nI had called upon my friend one day in the autumn of last year.\n"
    )
    chapters = ("I. A SCANDAL IN TOWN", "II. THE LEAGUE OF HATS")
    return OddBook("x.txt", text.encode(), chapters, ("Adventures", "always", "I had called"), ("Contents",), skipped=1)


def prose_that_begins_with_the_word_contents() -> OddBook:
    text = "CHAPTER 1\n\nContents\nThe box contains a cable and this manual.\n\nCHAPTER 2\n\nPlug it in.\n"
    return OddBook("x.txt", text.encode(), ("CHAPTER 1", "CHAPTER 2"), ("The box contains", "Plug it in."))


def titles_below_blank_lines() -> OddBook:
    text = "CHAPTER I.\n\nThe Pool\n\n\nIt rained.\n\n\nCHAPTER II.\n\nMR. SMITH GOES HOME.\n\n\nIt stopped.\n"
    chapters = ("CHAPTER I. The Pool", "CHAPTER II. MR. SMITH GOES HOME.")
    return OddBook("x.txt", text.encode(), chapters, ("It rained.", "It stopped."))


def prose_that_begins_like_a_heading() -> OddBook:
    texts = ("Part of him wanted to run.", "Act natural, he told himself, and smiled.", "Book in hand, she left.")
    return OddBook("x.txt", "\n\n".join(texts).encode(), (), texts)


def chapters_above_wrapped_prose() -> OddBook:
    one = "Chapter 1\nThe Hill\nIt was a bright cold day in April and the clocks\nwere silent. He came\nand saw\nall."
    two = "Chapter 2\nIt was a dark cold night in May and the clocks of the\ntown were silent. He\nslept\nwell."
    texts = ("It was a bright cold day in April and the clocks were", "It was a dark cold night", "Later", "He woke.")
    data = f"{one}\f{two}\n\n### Later\n\nHe woke.".encode()
    return OddBook("x.txt", data, ("Chapter 1 The Hill", "Chapter 2"), texts, ("#",))


def marked_headings() -> OddBook:
    text = "# Act One\n\nHe came.\n\n=== Act Two ===\n\nHe *really* saw.\n\n**Epilogue**\n\nHe won.\n\n#\n\nThe end."
    return OddBook(
        "x.txt", text.encode(), ("Act One", "Act Two", "Epilogue"), ("He really saw.", "The end."), ("#", "*", "=")
    )


def contents_with_pages_and_parts() -> OddBook:
    listed = "Part One .......... 1\nChapter 1 ......... 2\nPart Two .......... 30\nChapter 1 ......... 31\n"
    one = "Part One\n\nChapter 1\n\nIt was a bright day in the town by the sea.\n\n"
    two = "Part Two\n\nChapter 1\n\nIt was a dark night in the hills behind the town.\n"
    text = f"Table of Contents\n\nPage\n\n{listed}\n\n{one}{two}"
    texts, absent = ("a bright day", "a dark night"), ("....", "Contents", "31")
    return OddBook("x.txt", text.encode(), ("Part One Chapter 1", "Part Two Chapter 1"), texts, absent, skipped=1)


def german_in_windows_letters() -> OddBook:
    chapters = ("Erstes Kapitel", "Zweites Kapitel: Der Müller")
    text = f"{chapters[0]}\n\nEs war schön über dem Fluß.\n\n{chapters[1]}\n\nTeil des Plans war es nicht.\n"
    data = text.replace("\n", "\r\n").encode("cp1252")
    return OddBook("x.txt", data, chapters, ("schön über dem Fluß", "Teil des Plans"), skipped=1)


def chinese_in_wide_letters() -> OddBook:
    text = "第一章 开始\r\n\r\nMary 今天很好, she said.\r\n\r\n第二章\r\n\r\n第二天下雨了。 It rained.\r\n"
    return OddBook("x.txt", text.encode("utf-16"), ("第一章 开始", "第二章"), ("今天很好", "第二天下雨了"))


def gutenberg_with_pictures_and_notes() -> OddBook:
    picture = "[Illustration:\n\nMary.\n\n[_Copyright 1894._]]"
    listed = (
        "CONTENTS\n\nI       The Town\nII      The Hills\n\nList of Illustrations.\n\nPAGE\n\nMary   iv\n\nA dog   7"
    )
    text = (
        f"*** START OF THE PROJECT GUTENBERG EBOOK X ***\n\n{picture}\n\n{listed}\n\nCHAPTER I\n\nTHE TOWN\n\n"
        "It was a bright day in the town[A] by the sea, with its sea-\ngreen houses.[1] She saw it.\n\n"
        "[A] A note.\n\n[Footnote 1: Another.]\n\nCHAPTER II\n\nTHE HILLS\n\nIt was a dark night in the hills.\n"
    )
    chapters = ("CHAPTER I THE TOWN", "CHAPTER II THE HILLS")
    texts = ("in the town by the sea, with its sea-green houses. She saw it.", "dark night")
    absent = ("[", "Copyright", "Illustration", "note", "Another", "Mary", "CONTENTS")
    return OddBook("x.txt", text.encode(), chapters, texts, absent, 3, ("header", "contents", "2 footnotes"))


def chapters_that_are_numbers() -> OddBook:
    text = "A Book\n\nI.\nThe Town\n\nIt rained there.\n\nII.\nThe Hills\n\nIt snowed there.\n\nIII.\n\nIt thawed.\n"
    return OddBook(
        "x.txt", text.encode(), ("I. The Town", "II. The Hills", "III."), ("It rained", "It snowed", "It thawed")
    )


LONG = "It rained all night, and in the morning the boats of the whole village had gone out to sea without him."


def numbers_among_headings() -> OddBook:
    marks = ("THE BOATS\nby Ann", "7", "Chapter Eight", "9", "10", "Chapter Eleven: Sun", "1", "2")
    text = "".join(f"{mark}\n\n{LONG if at else ''}\n\n" for at, mark in enumerate(marks))
    return OddBook("x.txt", text.encode(), ("7", "Chapter Eight", "9", "10", "Chapter Eleven: Sun"), marks[1:])


def numbers_of_pages() -> OddBook:
    text = (
        "Chapter 1\n\nThe govern-\nment met.\n\n12\n\nHis chin went\n\n\f13\n\nthrough the glass.\n\nPage 14 of 20\n\n"
        "He sat where the government was.\n"
    )
    texts = ("The government met.", "His chin went through the glass.", "He sat")
    return OddBook("x.txt", text.encode(), ("Chapter 1",), texts, ("12", "13", "14"), 1, ("Page numbers",))


def sections_that_are_numbers() -> OddBook:
    text = "Chapter 1\n\n1\n\nIt rained.\n\n2\n\nIt snowed.\n\nChapter 2\n\n1\n\nIt thawed.\n"
    return OddBook("x.txt", text.encode(), ("Chapter 1", "Chapter 2"), ("1", "It rained.", "2", "It thawed."))


def scenes_of_a_play() -> OddBook:
    text = "ACT I\n\nSCENE I. Verona. A public place.\n\nGREGORY.\nNo.\n\nSCENE II. A street.\n\nCAPULET.\nBut.\n"
    chapters = ("ACT I SCENE I. Verona. A public place.", "SCENE II. A street.")
    return OddBook("x.txt", text.encode(), chapters, ("GREGORY.", "CAPULET."))


def japanese_with_readings() -> OddBook:
    first = "吾輩《わがはい》は｜名前《なまえ》を［＃ここから２字下げ］言った。"
    text = f"第一章　始まり\n\n{first}\n\n第二章\n\n終わった。\n"
    chapters = ("第一章 始まり", "第二章")
    return OddBook("x.txt", text.encode(), chapters, ("吾輩は名前を言った。", "終わった。"), ("わが", "｜", "下げ"))


def every_line_a_paragraph() -> OddBook:
    text = (
        "Prologue\nIt was late.\nNobody came.\nChapter 1: Snow\nIt snowed.\n***\nIt was early.\nChapter 2\nIt thawed."
    )
    chapters = ("Prologue", "Chapter 1: Snow", "Chapter 2")
    return OddBook(
        "x.txt", text.encode(), chapters, ("Nobody came.", "It snowed.", "It was early.", "It thawed."), ("*",)
    )


MARKDOWN = """---
title: The Days
---
The First Day
=============

Some **bold** and ~~struck~~ _words_[^1] with a [link](http://a.example/x), ![a picture](p.png) and `code`.

[^1]: A note that nobody hears,
    and its second paragraph.

| Who | What |
|-----|:----:|
| Ann | ran  |

```python
print("no")
```

<div>nor this</div>

## The Second Day {#second .unnumbered}

- [x] See [[Notes|the notes]]
- ==Mark== it

3. Take the key.
4. Open the door.

***

The scene ended here.
---

> He waited.

⁂

The end.
"""


def markdown_with_every_sign() -> OddBook:
    texts = (
        "Some bold and struck words with a link",
        "and code.",
        "Ann",
        "See the notes",
        "Mark it",
        "3. Take",
        "4. Open",
        "The scene",
        "He waited",
    )
    absent = (
        "*",
        "~",
        "[",
        "]",
        "http",
        "picture",
        "note that",
        "second paragraph",
        "|",
        "print",
        "nor this",
        "{",
        "#",
        "==",
        "---",
        ">",
        "⁂",
    )
    return OddBook(
        "x.md", MARKDOWN.encode(), ("The First Day", "The Second Day"), texts, absent, skipped=3, title="The Days"
    )


def markdown_with_front_matter_and_notes() -> OddBook:
    text = (
        "---\ntitle: The Garden: A Year\nauthor: Ann\nlang: en_GB\ndate: 2026-01-01\n---\n\n# One\n\n"
        "It grew.[^a] It rained.[^b]\n\n[^a]: Radish.\n[^b]: For *days*,\n\n    and nights.\n\n[TOC]\n\n"
        "Loam\n: Good soil.\n\nIt ended.[^a]\n"
    )
    texts = ("It grew. It rained.", "Radish.", "For days,", "and nights.", "Loam", "Good soil.", "It ended.")
    absent = ("TOC", "date", "[", ": ")
    return OddBook("x.md", text.encode(), ("One",), texts, absent, title="The Garden: A Year", fields={"notes": "true"})


def markdown_with_backslashes() -> OddBook:
    text = "# \\[One\\]\n\nHe said \\[softly\\] and \\*no\\*.\n"
    return OddBook("x.md", text.encode(), ("[One]",), ("said \\[softly] and *no*.",))


def markdown_of_plain_headings() -> OddBook:
    text = "Chapter 1\n\nIt rained.\n\nChapter 2: Sun\n\nBook in hand, she left."
    return OddBook("x.md", text.encode(), ("Chapter 1", "Chapter 2: Sun"), ("It rained.", "Book in hand"))


def markdown_of_deep_headings() -> OddBook:
    text = "### 1. Rain\n\nIt rained.\n\n#### Later\n\nIt stopped.\n\n### 2. Sun\n\nIt shone."
    return OddBook("x.md", text.encode(), ("1. Rain", "2. Sun"), ("It rained.", "Later", "It shone."), ("#",))


def subtitles_without_blank_lines() -> OddBook:
    text = f"2\n{LATER}\n- Hé, <i>tu</i>!\n- Oui…\n1\n{TIMES} X1:10\n{{\\an8}}Voilà\n\nl’été.\n\n3\n"
    return OddBook("x.srt", text.encode("cp1252"), (), ("Voilà\nl’été.", "Hé, tu!\nOui…"), ("-->", "<", "{", "- "))


def subtitles_of_the_web() -> OddBook:
    first = "intro\n00:01.000 --> 00:02.000 align:start\n<v Ann>Hi &amp; hello."
    text = f"WEBVTT\n\nSTYLE\n::cue {{}}\n\n{first}\n\nNOTE no\n\n00:03.000 --> 00:04.000\nBye."
    return OddBook("x.srt", text.encode(), (), ("Hi & hello.", "Bye."), ("WEBVTT", "cue", "intro", "NOTE", "<", "amp"))


def subtitles_of_many_programs() -> OddBook:
    text = "WEBVTT\n\n00:01.000 --> 00:02.000\nAbove\\NBelow\\hit"
    return OddBook("x.vtt", text.encode(), (), ("Above\nBelow it",), ("\\",))


def subtitles_that_roll_up() -> OddBook:
    first = "00:01.000 --> 00:02.000\nWe<00:01.500><c> are</c><00:01.800><c> at the</c>\n\n"
    again = "00:02.000 --> 00:02.010\nWe are at the\n\n"
    data = (
        f"WEBVTT\nKind: captions\n\n{first}{again}00:02.010 --> 00:04.000\nWe are at the\nold<00:03.000><c> inn</c>\n"
    )
    return OddBook("x.vtt", data.encode(), (), ("We are at the\nold inn",), ("the\nWe",))


def table_with_chapters_in_each_row() -> OddBook:
    text = "chapter,text\nOne,Dark.\nOne,Darker.\nTwo,Light.\n"
    return OddBook("x.csv", text.encode(), ("One", "Two"), ("Dark.", "Darker.", "Light."))


def table_for_excel() -> OddBook:
    text = 'sep=;\r\nTEXT;Pause;Chapter\r\n"Grüß Gott; hallo";1,5;Eins\r\nEnde.;;Zwei\r\n'
    return OddBook("x.csv", text.encode("cp1252"), ("Eins", "Zwei"), ("Grüß Gott; hallo", "Ende."), ("sep", '"'))


def table_of_tabs() -> OddBook:
    text = 'note\tText\nx\tOne, two.\ny\t"Three ""four"""\n'
    return OddBook("x.tsv", text.encode("utf-16"), (), ("One, two.", 'Three "four"'), ("\t",))


TEXTS = (
    project_gutenberg, chapters_that_only_the_contents_name, titles_below_blank_lines,
    prose_that_begins_with_the_word_contents,
    prose_that_begins_like_a_heading, chapters_above_wrapped_prose, marked_headings, contents_with_pages_and_parts,
    german_in_windows_letters, chinese_in_wide_letters, every_line_a_paragraph, markdown_with_every_sign,
    markdown_of_plain_headings, markdown_of_deep_headings, subtitles_without_blank_lines, subtitles_of_the_web,
    table_for_excel, table_of_tabs, subtitles_of_many_programs, subtitles_that_roll_up, table_with_chapters_in_each_row,
    gutenberg_with_pictures_and_notes, chapters_that_are_numbers, numbers_among_headings,
    numbers_of_pages, sections_that_are_numbers,
    scenes_of_a_play, japanese_with_readings, markdown_with_backslashes,
    markdown_with_front_matter_and_notes,
)  # fmt: skip
