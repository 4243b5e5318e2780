"""Headings distinguished from prose, in the languages of the page and some more."""

from __future__ import annotations

import pytest

from studio.projects.documents.headings import is_bare_heading, is_heading, is_scene_break, is_title, undecorated

HEADINGS = (
    "Chapter 1",
    "CHAPTER I.",
    "CHAPTER I. Down the hole",
    "CHAPTER I. MR. SHERLOCK HOLMES.",
    "Chapter 1. The Boy.",
    "Chapter One",
    "chapter one",
    "Chapter Twenty-One",
    "Chapter the First",
    "Chapter 1: the beginning",
    "Chapter 1 The Boy Who Lived",
    "Part Two",
    "PART 2",
    "Part 1, Chapter 2",
    "Act 1, Scene 2",
    "ACT II. SCENE III.",
    "Book the Second: the Golden Thread",
    "Book Two—Paris",
    "Letter 4",
    "Letter a Hundred",
    "Canto XIV",
    "Stave One: Marley's Ghost",
    "Part A",
    "Prologue",
    "PROLOGUE",
    "Epilogue.",
    "Prologue: Ten Years Ago",
    "Introduction",
    "Foreword",
    "Kapitel 1",
    "1. Kapitel",
    "Erstes Kapitel",
    "Zweiter Teil",
    "Kapitel Eins: Der Anfang",
    "KAPITEL ZWÖLF",
    "Erster Akt",
    "Vorwort",
    "Chapitre premier",
    "CHAPITRE III",
    "Première partie",
    "Acte deux",
    "Capítulo 1",
    "CAPITULO PRIMERO",
    "Capítulo primero",
    "Primera parte",
    "Epílogo",
    "Capitolo 2",
    "Parte prima",
    "Parte terza",
    "Hoofdstuk een",
    "Eerste hoofdstuk",
    "Rozdział 5",
    "Rozdział pierwszy",
    "Глава 1",
    "Глава первая",
    "ЧАСТЬ ВТОРАЯ",
    "Часть третья",
    "Пролог",
    "第一章",
    "第1章 はじまり",
    "第十二回\u3000贾雨村风尘怀闺秀",
    "第3話 さらば、友よ！",
    "序章",
    "第１章",
    "第一部分",
    "Chapter One, in which a boy is born",
    "The Second Part",
    "The Last Chapter",
    "Chapter XVII",
    "Chapter IV: Mr. and Mrs. Smith Go Home",
    "Part 1: the beginning",
    "CHAPTER V—The Storm",
    "Volume I",
    "Chapter 12A",
    "PART ONE - THE OLD BUCCANEER",
    "제1장 시작",
    "Chapter 1.2 Setting Up",
)
PROSE = (
    "Part of him wanted to run.",
    "Act natural, he told himself, and smiled.",
    "Book in hand, she left.",
    "Chapter 3 was long.",
    "Part two of the plan was simple.",
    "Part I was looking for",
    "Letter one: burn it.",
    "Scene two! Action!",
    "Book mid",
    "Part mild",
    "Act civil",
    "Chapter and verse",
    "Part one. He began to run.",
    "Part one of the plan.",
    "Chapter 11 Smith filed for bankruptcy in 2003.",
    "Chapter 3, then, is about cats.",
    "Book now",
    "Act one was over.",
    "Teil des Plans war es.",
    "Kapitel für Kapitel las sie.",
    "Parte de él quería correr.",
    "Livre en main, elle partit.",
    "第一章讲的是一个故事。",
    "第一部分はとても長い。",
    "第二，我们要走。",
    "序列号",
    "Introduction to Physics was his favourite class.",
    "Prologue to the war",
    "Preface the word with care.",
    "Letters came.",
    "Two books",
    "Act first and think later.",
    "Part first, then marry.",
    "Partie de cartes",
    "Capitolo chiuso.",
    "Section 8 of the law says so.",
    "Chapter 9, verse 3",
    "Book once",
    "Volume up",
    "1. Kapitel lesen",
    "Book one now!",
    "Letter B was missing",
    "Chapter by chapter she read.",
    "Chapter 1 " + "and so on " * 20,
)


@pytest.mark.parametrize("line", HEADINGS)
def test_headings_are_recognised(line: str) -> None:
    assert is_heading(line) and is_heading(f"  {line} ")


@pytest.mark.parametrize("line", PROSE)
def test_prose_that_begins_like_a_heading_is_not_a_heading(line: str) -> None:
    assert not is_heading(line)


def test_bare_headings_and_titles_below_them_are_recognised() -> None:
    bare = ["CHAPTER I.", "Chapter 1", "PART TWO", "第一章", "ACT I. SCENE II.", "Act 1, Scene 2"]
    assert [line for line in [*bare, "Chapter 1: x", "Prologue", "第一章 始まり"] if is_bare_heading(line)] == bare
    titles = ["Down the Hole", "DOWN THE HOLE.", "Who Is It?", "Der alte Mann"]
    prose = ["He ran.", "One. Two!", "“Yes”", "and so", "Chapter 2", "It was late,", "* * *", "Long " * 20]
    assert [line for line in [*titles, *prose] if is_title(line)] == titles


def test_markup_around_a_heading_is_removed() -> None:
    lines = ["# Act One", "## Any Title ##", "_CHAPTER I._", "=== Part 2 ===", "**Prologue**", "- Chapter 1 -"]
    assert [undecorated(line) for line in lines] == [
        "Act One", "Any Title", "CHAPTER I.", "Part 2", "Prologue", "Chapter 1",
    ]  # fmt: skip
    for line in ("#1 fan", "*hello*", "- a thing", "* * *"):
        assert undecorated(line) == line


def test_scene_break_is_a_line_of_one_symbol_or_an_ornament() -> None:
    breaks = ["* * *", "***", "      *      *      *", "---", "— — —", "⁂", "#", "*", "_____", "~~~", "~", "◆ ◆ ◆"]
    breaks += ["-o0o-", "—o—", "--oOo--", "~ o ~", "*o*", "oOo", "o o o"]
    prose = ["-", "Hi", "...", "", "1", "o", "oo", "- 0 -", "—Oh—", "Ooo", "OOO", "—O God", "-o0o- and", "~5"]
    assert [line for line in [*breaks, *prose] if is_scene_break(line)] == breaks
