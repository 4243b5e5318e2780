"""Long-form projects: documents are split into parts, generated in the background and exported as files."""
