"""The reader of PDFs: lines with their positions, lines repeated across pages, and paragraphs with their chapters."""
