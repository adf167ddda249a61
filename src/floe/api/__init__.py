"""The HTTP API: receives events, and serves the catalog."""

from floe.api.app import create_app, describe_api

__all__ = ["create_app", "describe_api"]
