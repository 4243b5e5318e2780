"""Reads EPUBs: package, tables of contents, pages and chapters."""
