"""Drafts guess the kind of a column from whole words of its name."""


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
