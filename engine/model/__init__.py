"""The two autoregressive models in plain torch, and what they read: tokens, prompts, caches, sampling."""
