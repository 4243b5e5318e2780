"""The named endpoints for gradio_client, a subject a file; their names and arguments are frozen."""
