"""Drafts guess the kind of a column from whole words of its name."""

import tomllib


def test_no_name_is_guessed_by_parts_of_words_or_by_a_bare_time():
    from dpselect.study.draft import guessed_columns

    names = [
        "day",
        "time",
        "dep_time",
        "arr_time",
        "air_time",
        "AtBat",
        "X3Ssn.Porch",
        "PID",
        "customerId",
        "last_seen",
    ]
    kinds = {column.name: column.kind for column in guessed_columns(names, {})}
    assert {name for name, kind in kinds.items() if kind == "number"} == set(names[:7])
    assert [kinds[name] for name in names[7:]] == ["none", "none", "date"]


def test_a_column_named_like_the_id_of_a_person_is_a_comment_that_is_called_a_guess():
    from dpselect.study.draft import Facts, draft_study, guessed_columns
    from dpselect.tables import Written

    def draft(*names):
        return draft_study("t.csv", "y", guessed_columns(names, {}), Facts(), form=Written())

    for name in ("customer_id", "patientId", "User ID", "PERSON.ID"):
        assert f'# person = "{name}"  # whose row it is: a guess, by its name.' in draft("age", name)
    for name in ("id", "customer", "person_idle", "customer_id_2", "superuser_id", "paid"):
        assert "# person" not in draft("age", name)
    assert tomllib.loads(draft("customer_id")) == tomllib.loads(draft("id"))
