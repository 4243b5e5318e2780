"""The two autoregressive models in plain torch, and their data: tokens, prompts, caches, sampling."""
