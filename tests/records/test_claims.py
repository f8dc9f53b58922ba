"""Claims of a search: only the latest one settles it, once, with the hash of one release."""

from __future__ import annotations

import pytest

from dpselect.errors import ClaimError, StudyError, UnwitnessedSearchWarning
from dpselect.records.claims import ClaimFile, claim_refusal


@pytest.fixture
def claims(tmp_path):
    return ClaimFile("search", tmp_path)


def test_only_the_latest_claim_settles(claims):
    claims.check_unclaimed()
    assert claims.claim("drawn", "first") is None
    assert claims.claim("drawn", "second") is None
    with pytest.raises(ClaimError, match="resumed from another copy"):
        claims.settle("drawn", "first", "hash")
    claims.settle("drawn", "second", "hash")
    assert claims.claim("drawn", "third") == "hash"


def test_one_release_alone_is_settled(claims):
    claims.claim("drawn", "first")
    claims.settle("drawn", "first", "hash")
    claims.settle("drawn", "any other", "hash")
    with pytest.raises(ClaimError, match="has released already"):
        claims.settle("drawn", "first", "other")
    assert claims.claim("drawn", "second") == "hash"


def test_a_search_that_nobody_claimed_is_settled_by_anyone(claims):
    claims.settle("drawn", "first", "hash")
    assert claims.claim("drawn", "second") == "hash"


def test_other_draws_are_refused(claims):
    claims.claim("drawn", "first")
    for call in (lambda: claims.claim("other", "first"), lambda: claims.settle("other", "first", "hash")):
        with pytest.raises(ClaimError, match="bound to other draws"):
            call()
    with pytest.raises(ClaimError, match="search search is bound to other draws"):
        claims.check_unclaimed()
    assert claims.claim("drawn", "second") is None


def test_searches_do_not_meet(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    one, other = ClaimFile.of("one"), ClaimFile.of("other")
    one.claim("drawn", "first")
    other.check_unclaimed()
    assert [path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*.head")] == [
        "dpselect/searches/one.head"
    ]


def test_a_folder_that_cannot_be_written_warns_and_a_damaged_file_refuses(tmp_path):
    (tmp_path / "file").touch()
    with pytest.warns(UnwitnessedSearchWarning, match="a copy could again"):
        assert ClaimFile("search", tmp_path / "file").claim("drawn", "first") is None
    (tmp_path / "search.head").write_bytes(b"x" * 9000)
    with pytest.raises(StudyError, match="damaged"):
        ClaimFile("search", tmp_path).claim("drawn", "first")


@pytest.mark.parametrize(
    ("why", "said"),
    [
        ("released", "released already"),
        ("closed", "closed for good"),
        ("superseded", "resumed from another copy"),
        ("bound otherwise", "bound to other draws"),
    ],
)
def test_each_refusal_names_the_search_and_its_reason(why, said):
    assert str(claim_refusal("search x", why)).startswith("search x ")
    assert said in str(claim_refusal("search x", why))
