"""Durable writes, under the name they had before `dpselect.storage`."""

from dpselect.storage.durable import commit, connect, create_private, erase, sync, sync_folder, write_atomically

__all__ = ["commit", "connect", "create_private", "erase", "sync", "sync_folder", "write_atomically"]
