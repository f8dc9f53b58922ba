"""Places of a ledger: files and servers by name, and network file systems, which are refused."""

from __future__ import annotations

import pytest

from dpselect.errors import ArgumentError
from dpselect.ledger import Ledger, LedgerUnavailableError
from dpselect.ledger.locations import file_of, network_file_system


def test_network_file_systems_are_refused(tmp_path, monkeypatch):
    mounts = tmp_path / "mountinfo"
    here = tmp_path.resolve()
    mounts.write_text(
        "1 0 8:1 / / rw - ext4 /dev/vda rw\n"
        f"2 1 0:5 / {here}/share rw - nfs4 server:/x rw\n"
        f"3 2 0:6 / {here}/share/local rw - ext4 /dev/vdb rw\n"
    )
    for folder in ("share/local/deep", "share/more", "shared"):
        (tmp_path / folder).mkdir(parents=True)
    assert network_file_system(tmp_path / "share" / "more", mounts=mounts) == "nfs4"
    assert network_file_system(tmp_path / "share" / "local" / "deep", mounts=mounts) is None
    assert network_file_system(tmp_path / "shared", mounts=mounts) is None
    monkeypatch.setattr("dpselect.ledger.locations.network_file_system", lambda folder: "nfs4")
    with pytest.raises(LedgerUnavailableError, match="nfs4"):
        Ledger.open(tmp_path / "budget.db")


def test_places(tmp_path):
    assert file_of(f"sqlite:///{tmp_path}/a.db") == tmp_path / "a.db"
    assert file_of("postgresql://host/db") is None
    for wrong in (":memory:", "", "sqlite://", "mysql://host/db"):
        with pytest.raises(ArgumentError):
            file_of(wrong)
