"""The page: one quiet Gradio screen over the same services as the API."""
