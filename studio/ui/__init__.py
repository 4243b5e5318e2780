"""The page: one quiet Gradio screen over the same door as the API."""
