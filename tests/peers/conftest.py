"""What a test of a peer is given: comparisons that are counted for each peer and fail together."""

from __future__ import annotations

import pytest

from tests.peers.comparison import Comparison


@pytest.fixture
def compare(request):
    """`with compare("opacus") as peer:` counts each comparison with a value that the peer's own tests assert.

    With `live=True` the value comes from a call of the installed peer.
    """

    def start(project: str, *, live: bool = False) -> Comparison:
        return Comparison(project, live, request.node.user_properties)

    return start
