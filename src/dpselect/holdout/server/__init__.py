"""Holdouts and gates over HTTP: a server with submitters, quotas and a leaderboard, and its client.

`docs/server.md` is the guide. The server needs the extra "server", the client nothing.
"""

from lazy_loader import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
