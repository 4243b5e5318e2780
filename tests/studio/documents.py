"""Generated documents of the usual formats: EPUB, Word and PDF, corrupt archives and covers."""

from __future__ import annotations

import io
import struct
import zipfile
import zlib
from collections.abc import Mapping, Sequence

from pypdf import PdfWriter
from pypdf.generic import DecodedStreamObject, DictionaryObject, NameObject

CONTAINER = (
    '<?xml version="1.0"?>'
    '<container version="1.0" xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles>'
    '<rootfile full-path="OEBPS/book.opf" media-type="application/oebps-package+xml"/></rootfiles></container>'
)


def epub(
    pages: Mapping[str, str | bytes],
    title: str = "A Book",
    prologue: str = "",
    encoding: str = "utf-8",
    author: Sequence[str] = (),
    language: str = "",
    cover: bytes = b"",
    cover_type: str = "image/png",
    nav: str = "<h1>Contents</h1>",
    ncx: str = "",
    guide: str = "",
    files: Mapping[str, str | bytes] | None = None,
    lacks: Sequence[str] = (),
    aside: Sequence[str] = (),
    kinds: Mapping[str, str] | None = None,
    unlisted: Sequence[str] = (),
) -> bytes:
    """An EPUB 3 of XHTML pages by file name, in this order.

    `prologue` precedes the package's root element, `nav` is the body of the contents, `ncx` the navMap of EPUB 2 and
    `guide` its references. `files` are further entries by full path; `lacks` names pages without a file, `aside`
    pages outside the main text, `unlisted` ids in its spine that the manifest lacks. `kinds` are the attributes of the
    items of other pages than XHTML, whose ids are "i0", "i1" and so on.
    """
    xhtml = dict.fromkeys(pages, 'media-type="application/xhtml+xml"') | dict(kinds or {})
    items = "".join(f'<item id="i{n}" href="{name}" {xhtml[name]}/>' for n, name in enumerate(pages))
    linear = dict.fromkeys(aside, ' linear="no"')
    spine = "".join(f'<itemref idref="i{n}"{linear.get(name, "")}/>' for n, name in enumerate(pages))
    spine += "".join(f'<itemref idref="{name}"/>' for name in unlisted)
    about = "".join(f"<dc:creator>{name}</dc:creator>" for name in author) + f"<dc:language>{language}</dc:language>"
    if cover:
        items += f'<item id="front" href="front.png" media-type="{cover_type}" properties="cover-image"/>'
    if ncx:
        items += '<item id="ncx" href="toc.ncx" media-type="application/x-dtbncx+xml"/>'
    guide = f"<guide>{guide}</guide>" if guide else ""
    package = (
        f'<?xml version="1.0"?>{prologue}<package xmlns="http://www.idpf.org/2007/opf" version="3.0">'
        f'<metadata xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:title>{title}</dc:title>{about}</metadata>'
        '<manifest><item id="nav" href="nav.xhtml" media-type="application/xhtml+xml" properties="nav"/>'
        f'{items}</manifest><spine toc="ncx"><itemref idref="nav"/>{spine}</spine>{guide}</package>'
    )
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("mimetype", "application/epub+zip")
        archive.writestr("META-INF/container.xml", CONTAINER)
        archive.writestr("OEBPS/book.opf", package.encode(encoding))
        archive.writestr("OEBPS/nav.xhtml", f"<html><body>{nav}</body></html>")
        archive.writestr(
            "OEBPS/toc.ncx", f'<ncx xmlns="http://www.daisy.org/z3986/2005/ncx/"><navMap>{ncx}</navMap></ncx>'
        )
        archive.writestr("OEBPS/front.png", cover)
        for name, text in pages.items():
            if name not in lacks:
                archive.writestr(f"OEBPS/{name}", text)
        for path, content in (files or {}).items():
            archive.writestr(path, content)
    return file.getvalue()


def spoilt(archive: bytes, name: str) -> bytes:
    """The same zip with an entry's compressed bytes corrupted."""
    with zipfile.ZipFile(io.BytesIO(archive)) as opened:
        info = opened.getinfo(name)
    start = info.header_offset + 30 + len(name.encode())
    end = start + info.compress_size
    return archive[:start] + b"\xff" * info.compress_size + archive[end:]


def page(body: str) -> str:
    return f'<html xmlns="http://www.w3.org/1999/xhtml"><head><title>no</title></head><body>{body}</body></html>'


def png(width: int = 8, height: int = 8) -> bytes:
    """A PNG image of one colour."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    rows = zlib.compress((b"\0" + b"\x90\x30\x20" * width) * height)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")


def docx(
    body: str, about: str = "", styles: str = "", numbering: str = "", footnotes: str = "", endnotes: str = ""
) -> bytes:
    """A Word document with this markup, where w: is Word's namespace and dc: Dublin Core's."""
    names = (
        'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main" '
        'xmlns:mc="http://schemas.openxmlformats.org/markup-compatibility/2006" '
        'xmlns:dc="http://purl.org/dc/elements/1.1/"'
    )
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("word/document.xml", f"<w:document {names}><w:body>{body}</w:body></w:document>")
        archive.writestr("word/styles.xml", f"<w:styles {names}>{styles}</w:styles>")
        archive.writestr("docProps/core.xml", f"<about {names}>{about}</about>")
        for part, markup in (("numbering", numbering), ("footnotes", footnotes), ("endnotes", endnotes)):
            if markup:
                archive.writestr(f"word/{part}.xml", f"<w:{part} {names}>{markup}</w:{part}>")
    return file.getvalue()


def placed(*pieces: tuple[float, float, float, str]) -> bytes:
    """A page of a PDF with positioned texts (x, y and size in points), each drawn separately."""
    return "\n".join(f"BT /F1 {size} Tf 1 0 0 1 {x} {y} Tm ({text}) Tj ET" for x, y, size, text in pieces).encode(
        "cp1252"
    )


def pdf(
    pages: Sequence[Sequence[str] | bytes],
    outline: Mapping[int, str] | Sequence[tuple[int, str]] | None = None,
    locked_with: str = "",
) -> bytes:
    """A PDF in Helvetica; pages are lists of lines or drawing commands; ``outline``: pages, from 0, and titles."""
    writer = PdfWriter()
    font = DictionaryObject(
        {NameObject(f"/{name}"): NameObject(f"/{value}") for name, value in (
            ("Type", "Font"), ("Subtype", "Type1"), ("BaseFont", "Helvetica"), ("Encoding", "WinAnsiEncoding"),
        )}
    )  # fmt: skip
    for lines in pages:
        page = writer.add_blank_page(612, 792)
        fonts = DictionaryObject({NameObject("/F1"): font})
        page[NameObject("/Resources")] = DictionaryObject({NameObject("/Font"): fonts})
        stream = DecodedStreamObject()
        if isinstance(lines, bytes):
            stream.set_data(lines)
        else:
            shown = "".join(f"({line}) Tj 0 -14 Td\n" for line in lines)
            stream.set_data(f"BT /F1 12 Tf 72 720 Td\n{shown}ET".encode("cp1252"))
        page[NameObject("/Contents")] = writer._add_object(stream)
    for number, title in outline.items() if isinstance(outline, Mapping) else outline or ():
        writer.add_outline_item(title=title, page_number=number)
    writer.add_metadata({"/Title": "A PDF", "/Author": "Ann"})
    if locked_with:
        writer.encrypt(locked_with, algorithm="RC4-128")
    file = io.BytesIO()
    writer.write(file)
    return file.getvalue()
