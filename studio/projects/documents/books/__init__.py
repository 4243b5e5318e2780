"""Shared by the readers of EPUB, Word and Markdown: note marks, list numbers, rows of tables."""
