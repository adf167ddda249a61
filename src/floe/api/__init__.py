"""The catalog over HTTP: events come in, everything that is known can be asked for."""

from floe.api.app import create_app, describe_api

__all__ = ["create_app", "describe_api"]
