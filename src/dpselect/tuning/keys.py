"""Places of keys, under the name they had before `dpselect.storage`."""

from dpselect.storage.keys import KeyFile, KeyPlace, KeyVariable, key_place, state_folder

__all__ = ["KeyFile", "KeyPlace", "KeyVariable", "key_place", "state_folder"]
