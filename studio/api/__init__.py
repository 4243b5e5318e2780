"""The HTTP API: OpenAI's speech contract and what goes beyond it, on the studio's services."""

from studio.api.install import install_api

__all__ = ["install_api"]
