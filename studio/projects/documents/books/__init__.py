"""What books as EPUB and as Word documents have in common: marks of notes, numbers of lists, the list of omissions."""
