"""The page: one quiet Gradio screen over the same services as the API."""

from studio.ui.import_gradio import import_gradio

import_gradio()
