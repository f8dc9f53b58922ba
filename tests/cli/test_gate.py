"""`dpselect gate`: files, exit statuses, certificates."""

from __future__ import annotations

import csv
import json
import sys
import time
from contextlib import redirect_stderr, redirect_stdout
from fractions import Fraction
from io import StringIO

import pytest

from dpselect.cli.app import main
from dpselect.errors import ContentError
from dpselect.holdout import Gate
from dpselect.holdout.gate.certificates import public_part, signed, verify_certificate
from dpselect.holdout.gate.files import read_groups, read_outcomes
from tests.documentation import ROOT

TASKS = 60


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "incumbent.csv", dict.fromkeys(range(TASKS), 0))
    write(tmp_path / "good.csv", {i: int(i % 3 > 0) for i in range(TASKS)})
    write(tmp_path / "bad.csv", dict.fromkeys(range(TASKS), 0))
    return tmp_path


def write(path, outcomes):
    path.write_text("id,outcome\n" + "".join(f"{name},{value}\n" for name, value in outcomes.items()))


def run(*words):
    """The command line as it is run: (status, standard output, standard error)."""
    out, err, before = StringIO(), StringIO(), sys.argv
    sys.argv = ["dpselect", "gate", *map(str, words)]
    try:
        with redirect_stdout(out), redirect_stderr(err):
            main()
        status = 0
    except SystemExit as left:
        status = left.code or 0
    finally:
        sys.argv = before
    return status, out.getvalue(), err.getvalue()


def made(*options):
    status, said, _ = run("create", "incumbent.csv", "--to", "my.gate", "--answer-seconds", "0", *options)
    assert status == 0
    return said


def test_answers_and_exit_statuses():
    assert "60 tasks, test sign" in made("--consultations", "3")
    assert run("ask", "bad.csv", "--gate", "my.gate") == (0, "rejected\n", "")
    assert run("ask", "bad.csv", "--gate", "my.gate", "--exit-code") == (1, "rejected\n", "")
    assert run("ask", "good.csv", "--gate", "my.gate", "--exit-code") == (0, "accepted\n", "")
    status, said, _ = run("ask", "bad.csv", "--gate", "my.gate", "--stake", "all", "--json")
    assert (status, json.loads(said)) == (0, {"verdict": "rejected"})
    status, said, error = run("ask", "good.csv", "--gate", "my.gate")
    assert (status, said) == (3, "")
    assert "error budget" in error
    status, said, _ = run("status", "--gate", "my.gate", "--json")
    assert json.loads(said)["asked"] == 4
    assert "accepted 1" in run("status", "--gate", "my.gate")[1]


MALFORMED = {
    "no column": "id,score\n1,1\n",
    "no rows": "id,outcome\n",
    "another id": "id,outcome\n" + "".join(f"{i + 1},1\n" for i in range(TASKS)),
    "an id twice": "id,outcome\n" + "".join(f"{i},1\n" for i in [*range(TASKS), 0]),
    "an uneven row": "id,outcome\n1\n",
    "nothing": "",
}


@pytest.mark.cases(5)
@pytest.mark.parametrize("kind", MALFORMED)
def test_a_malformed_candidate_is_status_two_and_not_charged(folder, kind):
    made()
    (folder / "odd.csv").write_text(MALFORMED[kind])
    status, said, error = run("ask", "odd.csv", "--gate", "my.gate", "--exit-code")
    assert (status, said) == (2, "")
    assert "nothing was charged" in error
    assert Gate.open(folder / "my.gate").status()["asked"] == 0


def test_a_file_that_is_not_there_is_no_answer(folder):
    made()
    assert run("ask", "nowhere.csv", "--gate", "my.gate", "--exit-code")[0] == 2
    assert run("ask", "good.csv", "--gate", "nowhere.gate", "--exit-code")[0] == 2
    assert run("ask", "good.csv", "--gate", "my.gate", "--stake", "much")[0] == 2
    assert run("ask", "good.csv", "--gate", "my.gate", "--stake", "0.9")[0] == 2
    assert Gate.open(folder / "my.gate").status()["asked"] == 0


def test_odd_outcomes_are_failures_and_not_errors(folder):
    made("--consultations", "2")
    write(folder / "odd.csv", {i: ["", "nan", "inf", "error", "2", "-1"][i % 6] for i in range(TASKS)})
    assert run("ask", "odd.csv", "--gate", "my.gate") == (0, "rejected\n", "")
    assert Gate.open(folder / "my.gate").status()["asked"] == 1


def test_the_same_content_is_not_charged_twice(folder):
    made()
    (folder / "model").write_bytes(b"\0\xff")
    for _ in range(2):
        assert run("ask", "bad.csv", "--gate", "my.gate", "--content", "model")[:2] == (0, "rejected\n")
    assert Gate.open(folder / "my.gate").status()["asked"] == 1


def test_regraded_and_retired(folder):
    made("--regraded", "--bound-failure-probability", "0.05")
    assert run("ask", "good.csv", "--gate", "my.gate")[0] == 2
    assert run("ask", "good.csv", "--gate", "my.gate", "--incumbent", "bad.csv")[1] == "accepted\n"
    status, said, _ = run("retire", "--gate", "my.gate", "--json")
    (gain,) = json.loads(said)["gains"]
    assert (status, 0.2 < gain < 0.67) == (0, True)
    assert "at least" in run("retire", "--gate", "my.gate")[1]
    assert run("ask", "good.csv", "--gate", "my.gate", "--incumbent", "bad.csv")[0] == 3


def test_ids_are_any_text_and_json_lines_hold_the_same(folder):
    names = ['a,"b"', "März", "1", "1.0", "Ω 東京", "x\ty"] + [f"task {i}" for i in range(20)]
    rows = [{"task": name, "a": i % 2, "b": [0.5, True]} for i, name in enumerate(names)]
    (folder / "one.jsonl").write_text("\n".join(map(json.dumps, rows)) + "\n\n")
    found = read_outcomes(folder / "one.jsonl", "task", ["a", "b"])
    assert list(found) == names
    assert found["März"] == [1, 0.5, True]
    with (folder / "two.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["task", "a", "b", "c", "cluster"])
        writer.writerows([name, i % 2, 0.5, 1, i // 3] for i, name in enumerate(names))
    assert {name: list(map(float, row)) for name, row in found.items()} == {
        name: list(map(float, row)) for name, row in read_outcomes(folder / "two.csv", "task", ["a", "b", "c"]).items()
    }
    assert read_groups(folder / "two.csv", "task", "cluster")["Ω 東京"] == "1"
    words = ["--id-column", "task", "--cluster-column", "cluster"]
    words += [word for column in "abc" for word in ("--outcome-column", column)]
    status, said, _ = run("create", "two.csv", "--to", "c.gate", *words, "--json")
    assert (status, json.loads(said)["units"], json.loads(said)["repeats"]) == (0, 9, 3)


def test_rows_of_one_task_are_repeats(folder):
    (folder / "r.csv").write_text("id,outcome\na,0\nb,1\na,1\nb,1\n")
    assert read_outcomes(folder / "r.csv", "id", ["outcome"]) == {"a": ["0", "1"], "b": ["1", "1"]}


@pytest.mark.parametrize("text", ["[1]\n", "{}\n", '{"id": 1}\n', "{\n", '{"id": "", "outcome": 1}\n', "", "\xff"])
def test_json_lines_of_another_form(folder, text):
    (folder / "x.jsonl").write_bytes(text.encode("latin-1"))
    with pytest.raises(ContentError):
        read_outcomes(folder / "x.jsonl", "id", ["outcome"])


def test_a_task_in_two_clusters(folder):
    (folder / "r.csv").write_text("id,c\na,0\na,1\n")
    with pytest.raises(ContentError, match="one cluster"):
        read_groups(folder / "r.csv", "id", "c")


# ---- certificates ----------------------------------------------------------------------------------------------------


@pytest.fixture
def certificate(folder):
    made("--consultations", "4")
    run("ask", "bad.csv", "--gate", "my.gate")
    run("ask", "good.csv", "--gate", "my.gate", "--content", "good.csv")
    assert run("certify", "--gate", "my.gate", "--to", "c.json")[0] == 0
    return json.loads((folder / "c.json").read_text())


def test_a_certificate_holds(certificate, folder):
    assert run("verify", "c.json", "--gate", "my.gate")[0] == 0
    assert run("verify", "--gate", "my.gate")[0] == 0
    key = certificate["terms"]["public_key"]
    status, said, _ = run("verify", "c.json", "--key", key)
    assert (status, "2 asks, 1 accepted" in said) == (0, True)
    assert run("verify", "c.json", "--public-key", key, "--json")[0] == 0
    assert run("verify", "c.json", "--public-key", "00" * 32)[0] == 1
    run("ask", "bad.csv", "--gate", "my.gate")
    assert run("verify", "c.json", "--gate", "my.gate")[0] == 0  # an older one is the beginning of the record
    assert run("certify", "--gate", "my.gate", "--to", "c.json")[0] == 1  # never written over
    assert run("verify")[0] == 2


CHANGES = {
    "verdict": lambda c: c["asks"][0].update(verdict="accepted"),
    "stake": lambda c: c["asks"][0].update(stake="1/1000"),
    "all of it": lambda c: c["asks"][0].update(stake="1/10"),
    "fewer": lambda c: c["asks"].pop(),
    "terms": lambda c: c["terms"].update(failure_probability=0.01),
    "claim": lambda c: c.update(claim="everything is better"),
    "purse": lambda c: c.update(purse="1/20"),
    "signature": lambda c: c.update(signature="00" * 64),
    "no signature": lambda c: c.pop("signature"),
    "format": lambda c: c.update(format=2),
    "asks": lambda c: c.update(asks=[1]),
    "division": lambda c: c.update(purse="1/0"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_changed_certificate_does_not_hold(certificate, folder, change):
    key = certificate["terms"]["public_key"]
    verify_certificate(certificate, public_key=key)
    CHANGES[change](certificate)
    with pytest.raises(ContentError, match="certificate"):
        verify_certificate(certificate, public_key=key)
    (folder / "d.json").write_text(json.dumps(certificate))
    assert run("verify", "d.json", "--key", key)[0] == 1


@pytest.mark.parametrize("change", ["all of it", "fewer", "purse"])
def test_a_gate_cannot_sign_what_does_not_add_up(certificate, change, monkeypatch):
    monkeypatch.setattr("dpselect.holdout.gate.certificates.well_signed", lambda *_: True)
    CHANGES[change](certificate)
    with pytest.raises(ContentError, match="error budget"):
        verify_certificate(certificate, public_key=certificate["terms"]["public_key"])


SECRET = "07" * 32


def invented(certificate, **terms):
    """A certificate of nothing, signed with a key that was made for it: ten acceptances."""
    body = {name: value for name, value in certificate.items() if name != "signature"}
    body["terms"] = {**body["terms"], "public_key": public_part(SECRET), **terms}
    body["asks"] = [{"stake": str(Fraction(0.05) / 2**i), "candidate": None, "verdict": "accepted"} for i in range(10)]
    return signed({**body, "purse": body["asks"][-1]["stake"]}, SECRET)


def test_a_certificate_that_signs_itself_is_not_valid(certificate, folder):
    (folder / "d.json").write_text(json.dumps(invented(certificate)))
    status, said, error = run("verify", "d.json")
    assert (status, said, "no trusted key" in error) == (1, "", True)
    status, said, _ = run("verify", "d.json", "--json")
    assert (status, json.loads(said)) == (1, {"valid": False, "reason": "no trusted key"})
    assert run("verify", "d.json", "--key", certificate["terms"]["public_key"])[0] == 1
    assert run("verify", "d.json", "--key", public_part(SECRET))[0] == 0


def test_a_key_may_be_in_a_file_or_be_pinned(certificate, folder):
    key = certificate["terms"]["public_key"]
    (folder / "key.txt").write_text(key + "\n")
    assert run("verify", "c.json")[0] == 1
    assert run("verify", "c.json", "--key", "key.txt", "--pin")[0] == 0
    assert run("verify", "c.json")[0] == 0
    (folder / "d.json").write_text(json.dumps(invented(certificate)))
    assert run("verify", "d.json")[0] == 1  # of the same gate, as it says, by another key
    assert run("verify", "d.json", "--key", public_part(SECRET), "--pin")[0] == 1
    assert run("verify", "c.json", "--key", "no key")[0] == 2


MISSHAPEN = {
    "failure_probability": 5.0,
    "consultations": "x",
    "tasks": True,
    "margin": "0",
    "units": 0,
    "test": "auto",
    "regraded": 0,
    "outcome_columns": [],
    "answer_seconds": -1,
    "more": 1,
}


@pytest.mark.parametrize("term", MISSHAPEN)
def test_the_published_form_is_what_the_verifier_takes(certificate, term):
    jsonschema = pytest.importorskip("jsonschema")
    document = invented(certificate, **{term: MISSHAPEN[term]})
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(document, json.loads((ROOT / "docs" / "gate.schema.json").read_text()))
    with pytest.raises(ContentError, match="published form"):
        verify_certificate(document, public_key=public_part(SECRET))


def test_the_number_of_the_form_is_no_truth_value(certificate):
    body = {name: value for name, value in invented(certificate).items() if name != "signature"}
    verify_certificate(signed(body, SECRET), public_key=public_part(SECRET))
    with pytest.raises(ContentError, match="published form: format"):
        verify_certificate(signed({**body, "format": True}, SECRET), public_key=public_part(SECRET))


@pytest.mark.parametrize("text", ["1e999999999999", "1e-99999999", "9" * 5000, "1/" + "9" * 5000])
def test_a_fraction_that_would_not_end_is_refused_at_once(certificate, folder, text):
    for change in ({"purse": text}, {"asks": [{"stake": text, "candidate": None, "verdict": "rejected"}]}):
        body = {name: value for name, value in certificate.items() if name != "signature"}
        document = signed({**body, **change, "terms": {**body["terms"], "public_key": public_part(SECRET)}}, SECRET)
        (folder / "d.json").write_text(json.dumps(document))
        start = time.process_time()
        assert run("verify", "d.json", "--key", public_part(SECRET))[0] == 1
        assert time.process_time() - start < 0.5


def test_the_certificate_of_another_gate(certificate):
    run("create", "incumbent.csv", "--to", "other.gate")
    assert run("verify", "c.json", "--gate", "other.gate")[0] == 1


def test_a_plan_needs_no_gate():
    status, said, _ = run("plan", "--tasks", "80", "--consultations", "12", "--json")
    assert (status, json.loads(said)["smallest_gain"]) == (0, [0.15] * 12)
    assert run("plan", "--tasks", "5", "--consultations", "12")[1].endswith("larger stakes\n")


def test_advice_from_development_tasks(folder):
    words = "--tasks", 500, "--purse", 0.05
    assert run("advise", "incumbent.csv", "good.csv", *words)[1].startswith("ask; ")
    assert run("advise", "good.csv", "incumbent.csv", *words)[1].startswith("do not ask yet")
    status, said, _ = run("advise", "incumbent.csv", "good.csv", *words, "--json")
    found = json.loads(said)
    assert (status, found["ask"]) == (0, True)
    assert found["stake"] == pytest.approx(0.05 * found["chance"])
    write(folder / "other.csv", {"a": 1})
    assert run("advise", "incumbent.csv", "other.csv", *words)[0] == 1


def test_certificates_have_the_published_form(certificate):
    jsonschema = pytest.importorskip("jsonschema")
    schema = json.loads((ROOT / "docs" / "gate.schema.json").read_text())
    jsonschema.validate(certificate, schema)
    for change in ("no signature", "format", "asks", "division"):
        changed = json.loads(json.dumps(certificate))
        CHANGES[change](changed)
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(changed, schema)
