"""The command line."""

from calstat._cli.commands import main

__all__ = ["main"]
