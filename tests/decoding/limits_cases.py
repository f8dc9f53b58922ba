"""The cost of a call, and refusals, for the tests of decoders."""

from __future__ import annotations

import gc
import time
import tracemalloc

from dpselect.errors import ArgumentError, ContentError


def cost(call, size):
    """Processor seconds and bytes of memory at most; the size counts as held already."""
    gc.freeze()  # what other tests left is no part of the time
    tracemalloc.start()
    start = time.process_time()
    try:
        call()
    except ContentError:
        pass
    finally:
        seconds, peak = time.process_time() - start, tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        gc.unfreeze()
    return seconds, peak


class _nothing(list[BaseException]):
    """Refusals pass; what else is raised does not."""

    def __enter__(self):
        return self

    def __exit__(self, kind, error, _):
        if isinstance(error, ContentError | ArgumentError):
            self.append(error)
        return bool(self)


def depth_of(value):
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else None
    return 0 if inner is None else 1 + max(map(depth_of, inner), default=0)
