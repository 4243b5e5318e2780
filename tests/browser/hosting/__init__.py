"""The page on other hosts and for other clients: proxies, ZeroGPU, gradio_client, few requests."""
