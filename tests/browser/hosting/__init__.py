"""The page where others host it or call it: proxies, ZeroGPU, gradio_client, few requests."""
