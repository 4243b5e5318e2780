"""Documents become parts: every word once and in order, chapters, voices and times kept, and clear refusals."""

from __future__ import annotations

import csv
import io
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from manuscript.cast import Casting, split_by_speaker
from manuscript.documents import Passage, into_parts, kind_of, read_document
from manuscript.parts import PartSplitting, SplitBy
from manuscript.passages import InvalidDocument
from manuscript.subtitles import write_srt
from manuscript.table import rows_of, write_rows
from studio import ROOT
from tests.studio.documents import docx, epub, page, pdf, png, spoilt

LOCK = (
    '<encryption><EncryptedData xmlns="http://www.w3.org/2001/04/xmlenc#">'
    '<EncryptionMethod Algorithm="http://www.w3.org/2001/04/xmlenc#aes128-cbc"/>'
    '<CipherData><CipherReference URI="OEBPS/a.xhtml"/></CipherData></EncryptedData></encryption>'
)
ENTITY = '<!DOCTYPE x [<!ENTITY a "b">]>'


def parts_of(
    text: str | bytes, kind: str, part_bytes: int = 400, voices: tuple[str, ...] = (), split_by: SplitBy = "length"
) -> list[Passage]:
    data = text.encode() if isinstance(text, str) else text
    casting = Casting({voice: voice.lower() for voice in voices})
    document = split_by_speaker(read_document(data, kind), casting, find_speakers=False)
    return into_parts(document, PartSplitting(split_by, part_bytes))


def test_plain_text_is_split_into_chapters_and_wrapped_lines_are_joined() -> None:
    text = (
        "CHAPTER I. Down the hole\n\nIt was a long line that was wrapped by somebody's editor long\n"
        "ago, and goes on here. Then it ended.\n\nShort line\nof a poem\n\nChapter 2\n\nThe end.\n"
    )
    parts = parts_of(text, "txt")
    assert [(part.text, part.chapter) for part in parts] == [
        ("CHAPTER I. Down the hole", "CHAPTER I. Down the hole"),
        (
            "It was a long line that was wrapped by somebody's editor long ago, and goes on here. Then it ended.\n\n"
            "Short line of a poem",
            "",
        ),
        ("Chapter 2", "Chapter 2"),
        ("The end.", ""),
    ]


def test_only_prose_is_split_by_paragraph_or_sentence() -> None:
    text = "Chapter 1\n\nOne. Two!\nAnna: Three. … Four.\n\n* * *\n\nFive\n\n" + "Long, " * 400 + "it was."
    whole = parts_of(text, "txt", voices=("Anna",), split_by="paragraph")
    assert [part.text for part in whole[:4]] == ["Chapter 1", "One. Two!", "Three. … Four.", "Five"]
    assert [part.scene for part in whole[:4]] == [False, False, True, False]
    assert (whole[0].chapter, whole[1].chapter, whole[2].voice) == ("Chapter 1", "", "anna")
    assert [len(part.text) for part in whole[4:]] == [1997, 409]  # too long for one part
    sentences = parts_of(text, "txt", voices=("Anna",), split_by="sentence")
    assert [part.text for part in sentences[:5]] == ["Chapter 1", "One.", "Two!", "Three. …", "Four."]
    for split_by in ("paragraph", "sentence"):
        rows = parts_of("text\nOne. Two.\n", "csv", split_by=split_by)
        assert [part.text for part in rows] == ["One. Two."]


@settings(deadline=None)
@given(st.lists(st.text("abc .!?\n:äß漢。", min_size=1, max_size=200), min_size=1, max_size=20))
def test_no_word_of_any_text_is_lost_doubled_or_cut(paragraphs: list[str]) -> None:
    text = "\n\n".join(paragraphs)
    if not text.strip():
        return
    parts = parts_of(text, "txt", 100)
    for cut in (parts, parts_of(text, "txt", split_by="paragraph"), parts_of(text, "txt", split_by="sentence")):
        assert "".join("".join(part.text.split()) for part in cut) == "".join(text.split())
    assert all(len(part.text.encode()) <= 100 for part in parts)
    if all(len(word.encode()) < 90 for word in text.split()) and not {"。", "漢"} & set(text):
        assert [word for part in parts for word in part.text.split()] == text.split()


@pytest.mark.parametrize("kind", ["txt", "md"])
@pytest.mark.parametrize("text", ["Anna:", "Anna: \n\nBert:\n", "\u200b", "\u2060\n\n\u200b"])
def test_document_without_words_is_refused(text: str, kind: str) -> None:
    with pytest.raises(InvalidDocument, match="no text to speak"):
        parts_of(text, kind, voices=("Anna", "Bert"))


def test_epub_is_read_in_spine_order() -> None:
    pages = {
        "b.xhtml": page(
            "<h1>One</h1><p>Caf\u00e9 &amp; <i>tea</i><a epub:type='noteref' href='#n'>1</a>.<br/>New line.</p>"
        ),
        "a.xhtml": page("<h2>Two</h2><script>no</script><p>unclosed<p>More"),
    }
    document = read_document(epub(pages), "epub")
    assert document.title == "A Book"
    parts = into_parts(document)
    assert [(part.text, part.chapter) for part in parts] == [
        ("One", "One"),
        ("Café & tea.\n\nNew line.", ""),
        ("Two", "Two"),
        ("unclosed\n\nMore", ""),
    ]


@pytest.mark.parametrize(
    ("book", "why"),
    [
        (b"PK nothing", "not a readable EPUB"),
        (epub({}), "no text"),
        (epub({"a.xhtml": b"\x00\x91\x17" * 100}), "no text to speak.*a.xhtml is left out: it is not a page of text"),
        (epub({"a.xhtml": page("hi")}, files={"META-INF/encryption.xml": LOCK}), "DRM"),
        (epub({"a.xhtml": b"<p>" + b" " * (17 << 20)}), "unpacks to more"),
        (spoilt(epub({"a.xhtml": page("Some words. " * 99)}), "OEBPS/a.xhtml"), "a.xhtml' is damaged"),
        (epub({"a.xhtml": page("hi")})[:-99], "damaged"),
        (epub({"a.xhtml": page("hi")}, prologue=ENTITY), "entities"),
        (epub({"a.xhtml": page("hi")}, prologue=ENTITY, encoding="utf-16"), "entities"),
        (epub({"a.xhtml": page("hi")}, title="<"), "malformed"),
    ],
)
def test_invalid_epub_is_refused_with_the_reason(book: bytes, why: str) -> None:
    with pytest.raises(InvalidDocument, match=why):
        read_document(book, "epub")


@pytest.mark.parametrize(
    ("markup", "texts"),
    [
        ("<p>One &amp; two", ["Hi", "One & two"]),
        ("One &amp", ["Hi", "One &"]),
        ("One <a href='", ["Hi", "One"]),
        ("One <!-- two", ["Hi", "One"]),
        ("<![x[One<p>Two</p>", ["Hi", "Two"]),
    ],
)
def test_truncated_page_is_read_up_to_its_end(markup: str, texts: list[str]) -> None:
    document = read_document(epub({"a.xhtml": f"<p>Hi</p>{markup}"}), "epub")
    assert [passage.text for passage in document.passages] == texts


@pytest.mark.parametrize(
    ("markup", "text"),
    [
        ("word<a href='#fn2'><sup>2</sup></a> on", "word on"),
        ("word<a role='doc-noteref' href='#n'>Note 3</a> on", "word on"),
        ("word<a epub:type='noteref footnote'><b>x</b></a> on", "word on"),
        ("word<sup><a href='notes.xhtml#n5'>[5]</a></sup>.", "word."),
        ("word<sup>[<a href='#n5'>5</a>, <a href='#n6'>6</a>]</sup>.", "word."),
        ("word<a href='#n'><sup>†</sup></a><a href='#m'><sup>**</sup></a>", "word"),
        ("the 5<sup>th</sup> of 10<sup>2</sup>", "the 5th of 10²"),
        ("the 5<sup><a href='#n'>th</a></sup>, <a href='#c2'>2</a>", "the 5th, 2"),
        ("word<a href='http://a.example/'><sup>2</sup></a>", "word"),
        ("2<sup>3<a href='#n'>4</a></sup>", "2³"),
        ("<a role='doc-noteref'>1</a>One <a href='#n'><sup>2", "One"),
    ],
)
def test_footnote_marks_of_an_epub_are_not_read(markup: str, text: str) -> None:
    document = read_document(epub({"a.xhtml": f"<p>{markup}</p>Then"}), "epub")
    assert [passage.text for passage in document.passages] == [text, "Then"]


MARKUP = (
    "<p>", "</p>", "<h1>", "</h1>", "<h2 id='a'>", "<br/>", "<a href='#a'>", "</a>", "<sup>", "</sup>", "1", "[2]", "*",
    " ", "word", "² ", "<span class='pagenum'>", "</span>", "<hr/>", "<ol>", "</ol>", "<li>", "<nav>", "<head>",
    "<aside epub:type='footnote' id='b'>", "</aside>", "\x01", "&#0;", "&amp", "<!--", "-->", "<![CDATA[x]]>", "<?x?>",
    "Chapter 1", "* * *", "<body>", "<div epub:type='toc'>", "</div>", "<script>", "</script>", "<p hidden>", "\0",
    "<svg>", "</svg>", "<text>", "</text>", "<!DOCTYPE a [<!ENTITY b '<p>'>]>", "&b;",
)  # fmt: skip


@settings(deadline=None)
@given(st.lists(st.lists(st.sampled_from(MARKUP), max_size=30), min_size=1, max_size=2), st.booleans())
def test_any_markup_is_read_or_refused(pages: list[list[str]], with_notes: bool) -> None:
    links = "<nav epub:type='toc'><a href='0.xhtml#a'>One</a><a href='1.xhtml#b'>Two</a><a href='1.xhtml'>X</a></nav>"
    book = epub({f"{number}.xhtml": "".join(page) for number, page in enumerate(pages)}, nav=links)
    try:
        document = read_document(book, "epub", with_notes)
    except InvalidDocument as error:
        assert "no text to speak" in str(error)
        return
    for passage in document.passages:
        assert passage.text == passage.text.strip() != "" and not {"\0", "\x01"} & set(passage.text)


@pytest.mark.parametrize(
    ("markup", "texts"),
    [
        ("<p><img src='t.png' alt='T'/>he ferry left.</p>", ["The ferry left."]),
        ("<p><span class='cap'><img alt='“I' src=''></span>t rained”, he said.</p>", ["“It rained”, he said."]),
        (
            "<div>T</div><p>he ferry left.</p><p>One man, a</p><div>A</div><p>man left.</p>",
            ["The ferry left.", "One man, a", "A man left."],
        ),
        ("<div>A</div><p>fter a while</p><div>B</div><p>But no.</p>", ["After a while", "B", "But no."]),
        ("<h1><img alt='Chapter One' src=''/></h1><p>He.</p>", ["Chapter One", "He."]),
        ("<h1>Two<img alt='ornament' src=''/></h1><p>He <img alt='a cat' src=''/>.</p>", ["Two", "He ."]),
        ("<p>the <span class='page-num'>112</span>bridge <i class='pb'>on it</i></p>", ["the bridge on it"]),
        ("<p>bridge,<span class='lnum'>10</span><br/>out<a class='verse_no'>80</a></p>", ["bridge,", "out"]),
        ("<div class='page'><h1>One</h1><p>He.</p><p class='folio'>[p. 7]</p></div>", ["One", "He."]),
        ("<p class='verse'>He came</p><p class='pg'>one<p>two</p>", ["He came", "one", "two"]),
        ("<p><sup>1</sup>It ran. <sup>2</sup>And I <sup>3</sup>saw</p>", ["It ran. And I saw"]),
        ("<p><sup>1</sup>It had <sup>14</sup>C, <sup>2</sup>then 10<sup>2</sup></p>", ["It had ¹⁴C, then 10²"]),
    ],
)
def test_initials_are_letters_and_numbers_of_pages_lines_and_verses_are_not_read(markup: str, texts: list[str]) -> None:
    document = read_document(epub({"a.xhtml": page(markup)}), "epub")
    assert [passage.text for passage in document.passages] == texts


MATHML = [
    ("<math alttext='F equals m a'><mi>F</mi></math>", "F equals m a"),
    ("<math alttext='c^{2}'><msup><mi>c</mi><mn>2</mn></msup></math>", "$c^{2}$"),
    ("<m:math><m:mi>n</m:mi></m:math>", "n"),
    ("<math><mfrac><mi>a</mi><mrow><mi>b</mi><mo>+</mo><mn>1</mn></mrow></mfrac></math>", r"$\frac{a}{b + 1}$"),
    ("<math><munderover><mo>∑</mo><mi>i</mi><mi>n</mi></munderover><mi>sin</mi><mi>x</mi></math>",
        r"$\sum_{i}^{n} \sin x$"),
    ("<math><semantics><mi>α</mi><annotation>no</annotation></semantics></math>", r"$\alpha$"),
]  # fmt: skip


@pytest.mark.parametrize(("markup", "text"), MATHML)
def test_formula_of_an_epub_is_read(markup: str, text: str) -> None:
    document = read_document(epub({"a.xhtml": page(f"<p>The force is {markup} here.</p><p>So.</p>")}), "epub")
    assert [passage.text for passage in document.passages] == [f"The force is {text} here.", "So."]
    assert document.skipped[1:] == ()  # after the table of contents


@pytest.mark.parametrize(
    "markup",
    ["<math></math>", f"<math>{'<mi>x</mi>' * 999}</math>", f"<math>{'<mrow>' * 99}<mi>x</mi>{'</mrow>' * 99}</math>"],
)
def test_formula_that_cannot_be_said_is_listed(markup: str) -> None:
    document = read_document(epub({"a.xhtml": page(f"<p>The force is {markup} here.</p><p>So <math><mi>y")}), "epub")
    assert [passage.text for passage in document.passages] == ["The force is here.", "So y"]
    assert document.skipped[1:] == ("1 formula is left out: it is too long, or empty.",)


def test_chapter_mislabelled_in_the_guide_is_read() -> None:
    pages = {
        "a.xhtml": page("<h2>Chapter 1</h2><p>It was a dark night.</p>"),
        "b.xhtml": page(f"<h2>The End</h2><p>{'And so on. ' * 700}</p>"),
        "c.xhtml": page("<h2>More</h2><p>ISBN 1</p>"),
    }
    kinds = zip(("toc", "cover", "copyright-page"), pages, strict=True)
    guide = "".join(f'<reference type="{kind}" href="{name}"/>' for kind, name in kinds)
    nav = '<nav epub:type="toc"><a href="a.xhtml">Chapter 1</a><a href="b.xhtml">The End</a></nav>'
    document = read_document(epub(pages, guide=guide, nav=nav), "epub")
    assert [passage.chapter for passage in document.passages if passage.chapter] == ["Chapter 1", "The End"]
    assert document.skipped[1:] == ("The copyright page (c.xhtml) is left out.",)


def test_book_with_only_front_matter_is_read() -> None:
    guide = '<reference type="title-page" href="a.xhtml"/>'
    document = read_document(epub({"a.xhtml": page("<p>It was dark.</p>")}, guide=guide), "epub")
    assert [passage.text for passage in document.passages] == ["It was dark."]
    assert document.skipped == ("The table of contents (nav.xhtml) is left out.",)


@pytest.mark.parametrize(("control", "read"), [("\v", " "), ("\x1f", ""), ("\x92", "’"), ("\x1b", " "), ("\x7f", " ")])
@pytest.mark.parametrize("kind", ["txt", "md", "csv", "srt"])
def test_control_characters_become_what_they_stood_for(kind: str, control: str, read: str) -> None:
    before = {"csv": "text,pause\n", "srt": "1\n00:00:01,000 --> 00:00:02,000\n"}.get(kind, "")
    after = ",1" if kind == "csv" else ""
    [passage] = read_document(f"{before}Do it{control}now{after}\n".encode(), kind).passages
    assert passage.text == f"Do it{read}now"


@pytest.mark.parametrize("mark", ["~", "-o0o-"])
def test_scene_break_is_recognised_in_every_format(mark: str) -> None:
    lines = ["It was dark.", mark, "It was light."]
    word = "".join(f"<w:p><w:r><w:t>{line}</w:t></w:r></w:p>" for line in lines)
    web = page("".join(f"<p>{line}</p>" for line in lines))
    text = "\n\n".join(lines).encode()
    books = {"txt": text, "md": text, "docx": docx(word), "epub": epub({"a.xhtml": web}), "pdf": pdf([lines])}
    for kind, data in books.items():
        passages = read_document(data, kind).passages
        assert [(passage.text, passage.scene) for passage in passages] == [(lines[0], True), (lines[2], False)], kind


SCENES = "<p>One two.</p><hr/><p>Three.</p><p>Four. Five.</p><p>* * *</p><h2>Next</h2><p>Six.</p><p>⁂</p>"


@pytest.mark.parametrize("split_by", ["length", "paragraph", "sentence"])
def test_scene_ends_with_a_pause_and_parts_do_not_span_it(split_by: SplitBy) -> None:
    marks = "<w:p><w:r><w:t>{}</w:t></w:r></w:p>"
    word = "".join(marks.format(text) for text in ("One two.", "* * *", "Three.", "Four. Five.", "***"))
    word += '<w:p><w:pPr><w:outlineLvl w:val="1"/></w:pPr><w:r><w:t>Next</w:t></w:r></w:p>' + marks.format("Six.")
    for data, kind in ((epub({"a.xhtml": page(SCENES)}), "epub"), (docx(word), "docx")):
        parts = parts_of(data, kind, split_by=split_by)
        assert (parts[0].text, parts[0].scene) == ("One two.", True)
        assert not any(part.scene for part in parts[1:])  # chapters have a pause of their own
        assert [part.text for part in parts if part.chapter] == ["Next"]


def test_subtitles_keep_their_times_and_survive_a_round_trip() -> None:
    text = "\ufeff1\r\n00:00:01,500 --> 00:00:03,000\r\n<i>Hello</i>\r\n{\\an8}there\r\n\r\n"
    text += "2\n01:00:00.25 --> 01:00:01,000\nBye\n"
    parts = parts_of(text, "srt")
    assert [(part.text, part.start, part.end) for part in parts] == [
        ("Hello\nthere", 1.5, 3.0),
        ("Bye", 3600.25, 3601.0),
    ]
    written = "".join(write_srt((part.start or 0, part.end or 0, part.text, "") for part in parts))
    assert parts_of(written, "srt") == parts


TIMES = "00:00:01,000 --> 00:00:02,000"
LATER = "00:00:03,000 --> 00:00:04,000"


@pytest.mark.parametrize(
    ("text", "texts"),
    [
        (f"1\n{TIMES}\nFirst.\n2\n{LATER}\nSecond.", ["First.", "Second."]),
        (f"1\n{TIMES}\nFirst.\n\nAnd more.\n\n2\n{LATER}\nSecond.\n\n3\n", ["First.\nAnd more.", "Second."]),
        (f"2\n{LATER}\nSecond.\n\n1\n{TIMES}\nFirst.", ["First.", "Second."]),
        (f"{TIMES}\n1984\n\n{LATER}\nIt was 3.\n\n", ["1984", "It was 3."]),
        (f"1\n{TIMES}\nA --> B.\nOn --> 9:30\n\n2\n{LATER}\n1984\n<- -->", ["A --> B.\nOn --> 9:30", "1984"]),
        ("1\n00:00:01 --> 00:00:02\nFirst.\n\n2\n0:00:03.5-->0:00:04.0 X1:1\nSecond.", ["First.", "Second."]),
        (
            f"1\n{TIMES}\n{{\\an8}}<i>- Tea &amp; milk?</i>\n- Yes.\n♪ la ♪\n-5 degrees",
            ["Tea & milk?\nYes.\nla\n-5 degrees"],
        ),
        (f"1\n{TIMES}\n\n2\n{LATER}\n<b></b>\n\n3\n00:00:03,500 --> 00:00:03,000\nOver it.", ["Over it."]),
        (
            "WEBVTT - a film\nKind: captions\n\nNOTE no\nmore\n\nSTYLE\n::cue { color: red }\n\nopening\n"
            "00:01.000 --> 00:02.000 align:start position:0%\n \n<v Anna>Hi, <00:01.500><c.loud>you</c>.\n\n"
            "2\n00:03.000 --> 00:04.000\nSecond.\n\nNOTE the end",
            ["Hi, you.", "Second."],
        ),
    ],
)
def test_subtitles_are_read_as_players_read_them(text: str, texts: list[str]) -> None:
    for data in (text.encode(), text.encode("utf-8-sig").replace(b"\n", b"\r\n"), text.encode("utf-16")):
        passages = read_document(data, "srt").passages
        assert [passage.text for passage in passages if passage.text] == texts
        starts = [passage.start or 0.0 for passage in passages]
        assert starts == sorted(starts) and starts[0] in (1.0, 3.5)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "cp1252", "utf-16", "utf-16-le", "utf-16-be"])
def test_text_is_read_in_common_encodings(encoding: str) -> None:
    text = "“Café,” she said – and the naïve boy didn’t understand. Über die Straße…"
    assert [part.text for part in parts_of(text.encode(encoding), "txt")] == [text]


BEFORE_UNICODE = {
    "gb18030": "第一章 离家\n\n那天早上下着雨，他背着包走了。",
    "big5": "老人坐在窗前，望著那條很久沒有人走過的路。\n\n「你去哪裡？」女兒問他。",
    "cp932": "第一章 出発\n\n「行ってきます」と彼は言った。",
    "euc_jp": "こんにちは世界、元気ですか。今日はいい天気です。",
    "cp949": "제1장 시작\n\n그날 아침에는 비가 내렸다.",
    "cp1250": "Rano padał deszcz i nikt nie wyszedł z domu. Potem wstał, włożył płaszcz i wziął list, który leżał.",
    "cp1251": "Утром шёл дождь, и никто не вышел из дома.",
    "koi8_r": "Утром шёл дождь. Он собрал вещи и ушёл.",
    "cp1253": "Το πρωί έβρεχε και κανείς δεν βγήκε από το σπίτι.",
    "cp1254": "Sabah yağmur yağdı ve kimse evden çıkmadı. Yaşlı adam yola baktı. Çok uzun bir yol olduğu için gitmedi.",
    "cp1255": "בבוקר ירד גשם ואיש לא יצא מן הבית. הזקן ישב ליד החלון והביט בדרך.",
    "cp1256": "في الصباح نزل المطر ولم يخرج أحد من البيت.",
    "cp874": "ตอนเช้าฝนตกและไม่มีใครออกจากบ้าน ชายชรานั่งอยู่ริมหน้าต่าง",
    "mac_roman": "The café was “closed”, she said – and the naïve boy didn’t understand.",
    "cp1252": "The café was “closed”, she said – and the naïve boy didn’t understand.",
}


@pytest.mark.parametrize("encoding", BEFORE_UNICODE)
@pytest.mark.parametrize("kind", ["txt", "srt", "csv"])
def test_encoding_from_before_unicode_is_detected_and_named(encoding: str, kind: str) -> None:
    lines = BEFORE_UNICODE[encoding].replace("\n\n", " " if kind != "txt" else "\n\n")
    head = {"txt": "", "srt": f"1\n{TIMES}\n", "csv": "text\n"}[kind]
    document = read_document(f"{head}{lines}\n".encode(encoding), kind)
    assert "\n\n".join(passage.text for passage in document.passages) == lines
    [note] = document.skipped
    assert "is read as" in note and "choose its encoding" in note and document.encoding == encoding


SHORT = [
    *(("big5", text) for text in ("你好，世界。", "謝謝你的幫忙", "早安")),
    *(("gb18030", text) for text in ("你好，世界。", "谢谢你的帮助")),
    *(("cp874", text) for text in ("ขอบคุณ", "สวัสดีครับ วันนี้อากาศดีมาก")),
    ("cp932", "第一章\n彼は言った。「こんにちは」"),
    ("euc_jp", "こんにちは、世界。"),
    ("cp949", "안녕하세요, 세상."),
    *((encoding, "Привет мир, как дела") for encoding in ("cp1251", "koi8_r")),
    ("cp1253", "Το πρωί έβρεχε."),
    ("mac_roman", "“No,” said Anna."),
]


@pytest.mark.parametrize(("encoding", "text"), SHORT)
def test_encoding_of_a_few_words_is_detected_by_common_letters(encoding: str, text: str) -> None:
    assert read_document(text.encode(encoding), "txt").encoding == encoding


def test_latin_word_with_a_pair_of_accents_is_not_taken_for_korean() -> None:
    assert read_document("Grüß Gott; hallo".encode("cp1252"), "txt").passages[0].text == "Grüß Gott; hallo"


@pytest.mark.parametrize(
    "data",
    [
        "Я не знаю".encode("cp1251"),  # as likely Greek, by these few letters
        "Le matin il pleuvait – «\u202fOù vas-tu\u202f?\u202f» Le vieil homme était assis.".encode()[:-20] + b"\xe9.",
        "第一章 离家，那天早上下着雨，他背着包走了。".encode() + b"\xff",
    ],
)
def test_text_in_an_unclear_encoding_is_refused(data: bytes) -> None:
    with pytest.raises(InvalidDocument, match="line 1: this is not UTF-8 text"):
        read_document(data, "txt")


def test_numbers_of_lines_of_verse_are_left_out_and_other_numbers_stay() -> None:
    lines = [f"A line of verse, the {'very ' * (at % 3)}one" for at in range(16)]
    right = [f"{line}      {at + 1}" if at % 5 == 4 else line for at, line in enumerate(lines)]
    left = [f"{at + 1:>3}  {line}" if at % 5 == 4 else f"     {line}" for at, line in enumerate(lines)]
    for numbered in (right, left):
        document = read_document("\n".join([*numbered, "", "It cost  5", "and the other cost  10"]).encode(), "txt")
        verse, costs = (" ".join(passage.text.split()) for passage in document.passages)
        assert (verse, costs) == (" ".join(lines), "It cost 5 and the other cost 10")
        assert document.skipped == ("3 numbers of lines in the margin are left out.",)
    for rows in (
        [f"{at}  item of the list" for at in range(1, 9)],
        [f"Apples and pears   {at}0" for at in range(1, 9)],
    ):
        assert [part.text for part in parts_of("\n".join(rows), "txt")] == ["\n".join(rows)]


def test_table_has_one_part_per_row_with_voice_and_pause() -> None:
    parts = parts_of('Voice;Text;Pause;x\nanna;"One; ""two""\nthree";1,5;\n;Four;;y\nbert;;;\n', "csv")
    assert [(part.text, part.voice, part.pause) for part in parts] == [
        ('One; "two"\nthree', "anna", 1.5),
        ("Four", None, None),
    ]


@pytest.mark.parametrize(
    "text",
    [
        "sep=;\ntext;voice\nHello, you;Maya\n",
        '"sep=;"\r\nVOICE; Text \r\nMaya;"Hello, you"\r\n',
        "\ufefftext\tVoice\nHello, you\tMaya",
        "Text|voice\nHello, you|Maya",
    ],
)
def test_separator_of_a_table_is_taken_from_its_first_line(text: str) -> None:
    assert [(part.text, part.voice) for part in parts_of(text, "csv")] == [("Hello, you", "Maya")]


CELLS = ("=1+1", "+1", "-1", "@SUM(1)", "\t=1", "＝1", "'=1", "''=1", "'Twas", "'", "", '- Hello,\n= "you"', "5-1")


def test_written_table_has_no_formulas_and_is_read_back_unchanged() -> None:
    rows = [("text", "note", "number"), *((cell, cell, -1.5) for cell in CELLS)]
    table = write_rows(rows).encode()
    shown = list(csv.reader(io.StringIO(table.decode(), newline="")))
    assert not [cell for row in shown for cell in row[:2] if cell.startswith(("=", "+", "-", "@", "\t", "＝"))]
    assert shown[1][2] == "-1.5", "numbers stay numbers"
    assert [(row["text"], row["note"]) for row, _ in rows_of(table, ("text",))] == [(cell, cell) for cell in CELLS]


@pytest.mark.parametrize("package", ["studio", "longform", "manuscript"])
def test_only_one_function_writes_tables(package: str) -> None:
    writers = [
        path for path in (ROOT / package).rglob("*.py") if re.search(r"csv\.(Dict)?[wW]riter", path.read_text("utf-8"))
    ]
    assert writers == ([ROOT / "manuscript" / "table.py"] if package == "manuscript" else [])


def test_a_table_of_one_column_keeps_its_commas() -> None:
    assert [part.text for part in parts_of('Text\nHello, you; all\n"And, you"\n', "csv")] == [
        "Hello, you; all",
        "And, you",
    ]


@pytest.mark.parametrize(
    ("kind", "text", "why"),
    [
        ("txt", b"fine\nfine\n\xff", "line 3: this is not UTF-8 text"),
        ("txt", b"a\n\x00", "line 2: this contains a NUL"),
        ("txt", b" \n ", "no text to speak"),
        ("srt", b"1\n00:00:01,000 --> 00:00:02,000\nHi\n\n2\n00:00:0x\n", "line 6: expected the times"),
        ("srt", b"Dear Sir,\nhow are you?", "line 1: expected the times"),
        ("srt", b"1\n00:00:01,000 --> later\nHi", "line 2: expected the times"),
        ("srt", b"00:00:01,000 --> 00:00:02,000\nHi\n\n0O:00:02,000 --> 3\n", "line 4: expected the times"),
        ("csv", b"words\nHi", "line 1: .* among them text"),
        ("csv", b"sep=;\nwords;voice\nHi;", "line 2: .* among them text"),
        ("csv", b"text,voice\nHi,\nOne, two,anna", "line 3: this row has 3 fields, but there are 2 columns"),
        ("csv", b"text,pause\nHi,1\nHi,soon", "line 3: the pause 'soon'"),
        ("csv", b"text,pause\nHi,99", "line 2: a pause must be"),
        ("csv", b'text\n"Hi', "line 2"),
        ("odt", b"x", "'odt' is not a kind"),
    ],
)
def test_invalid_document_is_refused_with_the_line_and_reason(kind: str, text: bytes, why: str) -> None:
    with pytest.raises(InvalidDocument, match=why):
        read_document(text, kind)


@pytest.mark.parametrize(
    ("data", "what"),
    [
        (png(), "a PNG picture, not a document"),
        (b"\xff\xd8\xff\xe0\0\x10JFIF", "a JPEG picture"),
        (b"ID3\x04\0\0", "an audio file"),
        (b"\0\0\0\x1cftypM4A ", "an MPEG-4 file"),
        (pdf([["Some text."]]), "a PDF: rename it to end in .pdf"),
        (docx("<w:p/>"), "a Word document: rename it to end in .docx"),
        (epub({"a.xhtml": page("Hi")}), "an EPUB: rename it to end in .epub"),
        (b"PK\x03\x04a.txt", "an archive: unpack it"),
        (b"\xd0\xcf\x11\xe0", "an old Word document"),
        (b"{\\rtf1\\ansi Hi}", "an RTF document: save it as .docx"),
        (b"\xef\xbb\xbf\n<!DOCTYPE html>\n<p>Hi</p>", "a web page"),
        (b"<html lang='en'>Hi", "a web page"),
    ],
)
def test_file_of_another_kind_is_refused_naming_its_kind(data: bytes, what: str) -> None:
    with pytest.raises(InvalidDocument, match=f"^this is {what}"):
        read_document(data, "txt")
    if what.startswith("a PDF"):
        with pytest.raises(InvalidDocument, match=f"^this is {what}"):
            read_document(data, "docx")


def test_voice_of_a_cast_line_lasts_to_the_end_of_its_paragraph() -> None:
    text = "It was late.\nANNA: Who is there?\nNote: nobody.\n\nAnd so on."
    parts = parts_of(text, "txt", voices=("ANNA",))
    assert [(part.text, part.voice) for part in parts] == [
        ("It was late.", None),
        ("Who is there?\nNote: nobody.", "anna"),
        ("And so on.", None),
    ]
    assert parts_of("00:00:01,000 --> 00:00:02,000\nANNA: Hi", "srt", voices=("ANNA",))[0].voice == "anna"


def test_unsupported_files_and_exceeded_limits_are_refused() -> None:
    assert kind_of("My.Book.EPUB") == "epub" and kind_of("x.tsv") == "csv"
    with pytest.raises(InvalidDocument, match="cannot be read"):
        kind_of("x.odt")
    with pytest.raises(InvalidDocument, match=r"save it as \.docx"):
        kind_of("x.doc")
    with pytest.raises(InvalidDocument, match=r"begins with .x+. has 4001 characters.*divide it"):
        parts_of("text\nHi\n" + "x" * 4001, "csv")
    with pytest.raises(InvalidDocument, match="more than 20000 parts"):
        parts_of("text\n" + "x\n" * 20_001, "csv")
