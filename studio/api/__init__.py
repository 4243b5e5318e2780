"""The HTTP API: OpenAI's speech API and its extensions, on the studio's services."""

from studio.api.install import install_api

__all__ = ["install_api"]
