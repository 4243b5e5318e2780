"""Reads Word documents: styles, numbering, and the paragraphs of the body and of notes."""
