"""What a test file registers by decorators, as a file outside of the package would, and other tests must not see."""

from contextlib import ExitStack
from unittest.mock import patch

import pytest

from dpselect.registry import Registry


def only_in_this_file(*entries: tuple[Registry, str]):
    """Take the entries back at once; the fixture that is returned puts them there for each test of the file."""
    taken = []
    for registry, name in entries:
        assert name in list(registry)  # and the registry's own files are loaded
        taken.append((registry, name, registry._things.pop(name), registry._facts.pop(name)))

    @pytest.fixture(autouse=True)
    def registered():
        with ExitStack() as stack:
            for registry, name, thing, facts in taken:
                stack.enter_context(patch.dict(registry._things, {name: thing}))
                stack.enter_context(patch.dict(registry._facts, {name: facts}))
            yield

    return registered
