"""The version of azjax, which certificates record."""

__version__ = "0.1.0"
