"""Quotas of submitters in one database, for several servers, and errors that name none of them."""

import multiprocessing
import sqlite3

import pytest

from dpselect.errors import ArgumentError, StudyError
from dpselect.holdout.server.boards import BoardAnswer
from dpselect.holdout.server.submitters import QuotaError, Submitters
from tests.holdout.server.serving import POSTGRES, fresh_database

pytest.importorskip("starlette")
pytest.importorskip("uvicorn")


def draw_on_quota(where, token, barrier, said):
    """As one server of several: submissions of one submitter until the quota is used up."""
    with Submitters(where) as people:
        who = people.by_token(token)
        barrier.wait(60)
        for _ in range(30):
            try:
                said.put(people.begin(who, "pets", None).again)
            except QuotaError:
                said.put("quota")


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.skipif(not POSTGRES, reason="no server"))])
def where(request, tmp_path):
    """A place for submitters."""
    if request.param == "sqlite":
        yield str(tmp_path / "submitters.db")
        return
    pytest.importorskip("psycopg")
    with fresh_database() as found:
        yield found


@pytest.mark.full
def test_one_quota_for_several_servers(where):
    with Submitters(where) as people:
        token = people.invite("Ada", questions=40)
    context = multiprocessing.get_context("spawn")
    barrier, said = context.Barrier(2), context.Queue()
    servers = [context.Process(target=draw_on_quota, args=(where, token, barrier, said)) for _ in range(2)]
    for server in servers:
        server.start()
    found = [said.get(timeout=60) for _ in range(60)]
    for server in servers:
        server.join()
    assert sorted(map(str, found)) == ["False"] * 40 + ["quota"] * 20


def test_a_database_of_submitters(where):
    """All that servers do with it, on each database."""
    with Submitters(where) as people, Submitters(where) as others:
        token = people.invite("Ada", questions=3, answers=2, boards=["pets"], max_bytes=10, rate=2.5)
        ada, bo = others.by_token(token), others.by_token(others.invite("Bo", questions=3))
        assert (ada.questions, ada.answers, ada.boards, ada.max_bytes, ada.rate) == (3, 2, ("pets",), 10, 2.5)
        assert people.by_token(token + "x") is None
        with pytest.raises(ArgumentError, match="taken"):
            others.invite("Ada", questions=1)
        first, again = people.begin(ada, "b", b"1"), others.begin(ada, "b", b"1")
        assert (first.again, again.again, again.number) == (False, True, first.number)
        others.finish(first, BoardAnswer(body={}, value=0.5, interval=(0.25, 0.75)))
        second = people.begin(ada, "b", b"2")
        with pytest.raises(QuotaError):
            people.begin(ada, "b", b"3")
        people.give_back(second)
        people.finish(people.begin(ada, "b", b"4"), BoardAnswer(body={}, scored=False, value=0.625))
        people.finish(people.begin(bo, "b", None), BoardAnswer(body={}, value=0.625, accepted=True))
        assert others.left(ada, "b") == (1, 1)
        day = people.standing("b", smaller_is_better=False)[0]["day"]
        assert others.standing("b", smaller_is_better=True) == [
            {"submitter": "Ada", "value": 0.5, "interval": [0.25, 0.75], "day": day},
            {"submitter": "Bo", "value": 0.625, "interval": None, "day": day},
        ]
        best = [(row["submitter"], row["value"]) for row in others.standing("b", smaller_is_better=False)]
        assert best == [("Ada", 0.625), ("Bo", 0.625)], "who was first is first"
        assert others.accepted("b") == [{"submitter": "Bo", "day": day}]
        assert people.valid(ada)
        others.revoke("Ada")
        assert people.by_token(token) is None
        assert not people.valid(ada)
        renewed = people.by_token(others.invite("Ada", questions=3, answers=2))
        assert people.left(renewed, "b") == (1, 1)
        assert not people.valid(ada), "the new token is another one"


def test_no_server_is_named_in_an_error():
    with pytest.raises((StudyError, ImportError)) as refused:
        Submitters("postgresql://ada:capybara@127.0.0.1:1/x")
    assert "capybara" not in str(refused.value)


def test_files_of_submitters_that_are_none(tmp_path):
    path = tmp_path / "submitters.db"
    path.write_text("something else, and long enough to be a file of its own" * 10)
    with pytest.raises(StudyError):
        Submitters(path)
    path.unlink()
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE x (y)")
    with pytest.raises(StudyError, match="another file"):
        Submitters(path)
