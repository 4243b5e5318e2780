"""The reader of PDFs: lines with their places, what repeats on pages, and paragraphs with their chapters."""
