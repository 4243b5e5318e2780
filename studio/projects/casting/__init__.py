"""Speakers in prose: quotations, the characters of a book, and the speaker of each line with a reason."""
