"""Nothing gets a second answer out of a session: no copy, no fork, no thread, no question within an answer."""

from __future__ import annotations

import ast
import asyncio
import copy
import os
import pickle
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import dpselect
from dpselect.errors import BudgetError, ForkedSourceError, SessionError, StudyError
from dpselect.privacy import pure_dp
from dpselect.randomness import RandomSource, keyed_source
from dpselect.randomness.session import Session, Unrepeatable, answers
from dpselect.selection import PercentileSparseVector
from tests.randomness.session_kinds import KINDS, Kind, nothing

REFUSED = BudgetError, StudyError
ROOT = Path(dpselect.__file__).parent


def every(kinds: Any = KINDS) -> Any:
    return pytest.mark.parametrize("kind", kinds, ids=lambda kind: kind.name)


def answers_left(kind: Kind, session: Any) -> int:
    """How many answers it gives before it refuses."""
    given = 0
    while given <= kind.budget:
        try:
            kind.ask(session, nothing)
        except REFUSED:
            break
        given += 1
    return given


def behind_its_back(session: Any) -> Any:
    """A copy by hand, of an object whose constructor is not called."""
    twin = object.__new__(type(session))
    twin.__dict__.update(session.__dict__)
    return twin


def through_state(session: Any) -> Any:
    twin = object.__new__(type(session))
    twin.__setstate__(session.__dict__)
    return twin


@pytest.mark.cases(6)
@every()
def test_a_session_is_not_copied(kind: Kind) -> None:
    session = kind.make()
    copies: list[Callable[[Any], Any]] = [copy.copy, copy.deepcopy, pickle.dumps, through_state]
    copies += [lambda s, p=p: s.__reduce_ex__(p) for p in range(pickle.HIGHEST_PROTOCOL + 1)]
    copies += [copy.replace] if hasattr(copy, "replace") else []
    for duplicate in copies:
        with pytest.raises(TypeError):
            duplicate(session)
    for twin in (behind_its_back(session), object.__new__(type(session))):
        with pytest.raises(SessionError, match="constructor"):
            kind.ask(twin, nothing)
    assert answers_left(kind, session) == kind.budget


def test_ten_copies_of_a_percentile_sparse_vector_are_not_ten_answers() -> None:
    search = PercentileSparseVector(guarantee=pure_dp(epsilon=0.01), epsilon=1.0, max_queries=1)
    with pytest.raises(TypeError, match="not copied or pickled"):
        [copy.copy(search) for _ in range(10)]


def test_a_session_is_begun_once() -> None:
    search = PercentileSparseVector(guarantee=pure_dp(epsilon=0.01), epsilon=50.0, max_queries=1)
    assert not search.above(-600.0)
    with pytest.raises(SessionError, match="a new object"):
        search.__init__(guarantee=pure_dp(epsilon=0.01), epsilon=1.0, max_queries=1)  # type: ignore[misc]
    with pytest.raises(BudgetError):
        search.above(-600.0)


@pytest.mark.cases(6)
@every()
def test_threads_share_one_budget(kind: Kind) -> None:
    """Eight threads ask a thousand times."""
    session, given, wrong = kind.make(), [], []
    start = threading.Barrier(8)

    def ask() -> None:
        start.wait()
        for _ in range(125):
            try:
                kind.ask(session, nothing)
            except REFUSED:
                continue
            except BaseException as error:
                wrong.append(error)
                return
            given.append(1)

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert len(given) == kind.budget


@pytest.mark.cases(5)
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this platform")
@every()
def test_a_forked_child_gets_no_answer(kind: Kind) -> None:
    session = kind.make()
    child = os.fork()
    if child == 0:
        status = 1
        try:
            kind.ask(session, nothing)
        except ForkedSourceError:
            status = 0
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


CALLING = [kind for kind in KINDS if kind.calls_back]


@pytest.mark.cases(4)
@every(CALLING)
def test_what_is_called_for_an_answer_gets_none(kind: Kind) -> None:
    session, refused = kind.make(), []

    def greedy(*_: Any) -> float:
        with pytest.raises(SessionError, match="is giving an answer"):
            kind.ask(session, nothing)
        refused.append(1)
        return 0.0

    kind.ask(session, greedy)
    assert refused
    assert answers_left(kind, session) == kind.budget - 1


INTERRUPTS = [KeyboardInterrupt, SystemExit, GeneratorExit, asyncio.CancelledError]


@pytest.mark.cases(4)
@every(CALLING)
def test_an_interrupt_never_makes_an_answer_free(kind: Kind) -> None:
    session, left = kind.make(), kind.budget
    for error in INTERRUPTS[: 2 if kind.budget > 2 else 1]:

        def interrupted(*_: Any, error: type[BaseException] = error) -> float:
            raise error

        try:
            kind.ask(session, interrupted)
            left -= 1  # some count what ends with `SystemExit` as an estimator that fails
        except error:
            left -= kind.interrupt
        except REFUSED:
            assert left <= 0
    assert answers_left(kind, session) == max(left, 0)


@pytest.mark.cases(4)
@every(CALLING)
@pytest.mark.parametrize("error", [ValueError, RecursionError, MemoryError, StopIteration, ZeroDivisionError])
def test_an_error_of_what_is_called_never_makes_an_answer_free(kind: Kind, error: type[Exception]) -> None:
    session, given = kind.make(), 0

    def failing(*_: Any) -> float:
        raise error("secret")

    try:
        kind.ask(session, failing)
        given = 1
    except (error, TypeError, RuntimeError):
        given = 1 if kind.interrupt else 0
    assert answers_left(kind, session) <= kind.budget - given


class Test_the_base_class:
    class Counter(Session):
        def __init__(self) -> None:
            super().__init__()
            self.left = 1

        @answers
        def ask(self) -> int:
            """Docstring."""
            self.left -= 1
            return self.left

    def test_marked_methods_keep_their_names(self) -> None:
        assert (self.Counter.ask.__name__, self.Counter.ask.__doc__) == ("ask", "Docstring.")

    def test_a_constructor_that_forgets_the_base_class_makes_nothing_that_answers(self) -> None:
        class Forgets(self.Counter):  # type: ignore[misc, name-defined]
            def __init__(self) -> None:
                self.left = 1

        with pytest.raises(SessionError, match="constructor"):
            Forgets().ask()

    def test_an_error_frees_the_turn(self) -> None:
        class Fails(self.Counter):  # type: ignore[misc, name-defined]
            @answers
            def fail(self) -> None:
                raise KeyboardInterrupt

        session = Fails()
        with pytest.raises(KeyboardInterrupt):
            session.fail()
        assert session.ask() == 0


def classes_with_base(name: str) -> set[str]:
    """The classes of this library with this base, by their source."""
    return {
        node.name
        for path in ROOT.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ClassDef) and name in [getattr(base, "id", None) for base in node.bases]
    }


@pytest.mark.full
def test_every_session_is_held_against_this() -> None:
    bases = ("Session", "PaidSession", "PassingSession")
    found = set[str]().union(*map(classes_with_base, bases))
    assert found - set(bases) == {type(kind.make()).__name__ for kind in KINDS}


def test_a_random_source_is_not_copied_and_is_shared_by_clones() -> None:
    assert issubclass(RandomSource, Unrepeatable)
    source = keyed_source(1)
    assert copy.deepcopy(source) is source
    with pytest.raises(TypeError, match="not copied or pickled"):
        copy.copy(source)
