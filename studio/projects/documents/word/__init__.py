"""The reader of Word documents: styles, numbering, and the paragraphs of the body and of notes."""
