"""Long texts: projects made of documents, spoken part by part in the background, and put together as files."""
