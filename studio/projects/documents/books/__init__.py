"""What books as EPUB and as Word documents have in common: marks of notes, and numbers of lists."""
