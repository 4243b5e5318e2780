"""The named endpoints for gradio_client, one subject per file; their names and arguments are frozen."""
