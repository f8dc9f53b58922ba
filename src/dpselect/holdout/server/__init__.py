"""Holdouts and gates over HTTP: a server with submitters, quotas and a leaderboard, and its client.

`docs/how-to/server.md` is the guide. The server needs the extra "server", the client nothing.
"""

from dpselect.public_api import attach_public

__getattr__, __dir__, __all__ = attach_public(__name__, __file__)
