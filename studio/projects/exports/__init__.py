"""Exports of a project: one file, chapters, parts, subtitles, tracks, samples and books that are read along."""
