"""Shared by the readers of EPUB and Word: note marks and list numbers."""
