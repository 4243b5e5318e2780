"""Long form: documents, projects, their worker and their files."""
