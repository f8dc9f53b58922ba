"""The base of every session: an object that holds a budget, a secret noise or private rows, and answers questions.

There is one of it. A copy, a pickle or a forked child would answer from the same budget or with the same noise a second
time. So would a second thread, or a question asked from within the answer to another. A new session is a subclass
of `Session` whose methods that answer are marked with `answers`:

>>> from dpselect.errors import BudgetError
>>> from dpselect.randomness import system_source
>>> class Coins(Session):
...     def __init__(self, count):
...         super().__init__()
...         self._left = count
...     @answers
...     def toss(self):
...         if self._left < 1:
...             raise BudgetError("no coin is left")
...         self._left -= 1  # charged before it is drawn: what raises half-way was paid for
...         return system_source().bits(1)
"""

from __future__ import annotations

import functools
import threading
import weakref
from collections.abc import Callable
from typing import Any, Concatenate, NoReturn, ParamSpec, TypeVar

from dpselect.errors import ForkedSourceError, SessionError
from dpselect.randomness.process import this_process

__all__ = ["Session", "Unrepeatable", "answers"]

_Asked = TypeVar("_Asked", bound="Session")
_Given = ParamSpec("_Given")
_Answer = TypeVar("_Answer")


class Unrepeatable:
    """An object that is not copied and not pickled."""

    __slots__ = ()

    def _refuse(self, *_: Any) -> NoReturn:
        raise TypeError(
            f"a {type(self).__name__} is not copied or pickled: two of them would share one budget, or one secret"
        )

    __reduce__ = __getstate__ = __setstate__ = _refuse


class Session(Unrepeatable):
    """An object that answers questions, one at a time, in the process and under the identity that it was made with.

    A subclass calls `super().__init__()` first of all and marks the methods that answer with `answers`. Such a method
    counts what it spends before it draws, so that an exception of any kind leaves that spent. It calls no other marked
    method of the same object.
    """

    _turn: _Turn | None = None

    def __init__(self) -> None:
        if self._turn is not None:
            raise SessionError(f"this {type(self).__name__} is made: a new session is a new object, with its own price")
        self._turn = _Turn(self)


class _Turn:
    """Whose turn it is to be answered."""

    __slots__ = ("busy", "lock", "owner", "process")

    def __init__(self, owner: Session) -> None:
        # a copy that is made behind the session's back carries the turn of another object
        self.owner = weakref.ref(owner)
        self.process = this_process()
        # may be taken twice by one thread, so that the second time can be told from another thread's wait
        self.lock = threading.RLock()
        self.busy = False


def answers(method: Callable[Concatenate[_Asked, _Given], _Answer]) -> Callable[Concatenate[_Asked, _Given], _Answer]:
    """Marks a method of a `Session` that gives an answer, or changes what is left.

    Threads take turns. Raises `ForkedSourceError` in a forked child, and `SessionError` in an object that its
    constructor did not make. An estimator, candidate or stream that is called during an answer gets a `SessionError`
    too. (A thread that it starts and waits for would wait for ever.)
    """

    @functools.wraps(method)
    def answer(self: _Asked, /, *args: _Given.args, **options: _Given.kwargs) -> _Answer:
        turn = self._turn
        if turn is None or turn.owner() is not self:
            raise SessionError(f"this {type(self).__name__} was not made by its constructor: it answers nothing")
        if turn.process is not this_process():
            raise ForkedSourceError(
                f"this {type(self).__name__} was made before a fork: parent and child would share one budget, or one "
                "secret"
            )
        with turn.lock:
            if turn.busy:
                raise SessionError(
                    f"this {type(self).__name__} is giving an answer: what is called for that cannot ask it"
                )
            turn.busy = True
            try:
                return method(self, *args, **options)
            finally:
                turn.busy = False

    return answer
