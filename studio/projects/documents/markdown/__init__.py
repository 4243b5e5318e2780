"""The reader of Markdown, and of the front matter that names the book."""
