"""A study with three columns, and tables for it."""

from dpselect.study import parse_study

COLUMNS = {
    "age": {"bounds": [18, 100], "missing": "indicator"},
    "day": {"kind": "date", "bounds": ["2020-01-01", "2025-01-01"], "missing": "2022-01-01"},
    "grade": {"categories": ["low", "high"]},
}
ROW = ("40", "2021-05-06", "low", "yes")


def written(folder, rows, name="rows.csv"):
    lines = ["age,day,grade,y", *(",".join(row) for row in rows)]
    (folder / name).write_text("\n".join(lines) + "\n", encoding="utf-8")


def study(data=None, **tables):
    return parse_study(
        {
            "data": {"source": "rows.csv", "label": "y", "classes": ["yes", "no"], "columns": COLUMNS, **(data or {})},
            "privacy": {"epsilon": 2.0, "adjacency": "replace_one"},
            "learner": {"name": "output-perturbation"},
            "runs": {"executor": "inline"},
            "output": {"folder": "out"},
            **tables,
        }
    )


def base():
    return [ROW] * 5 + [("50", "2022-02-02", "high", "no")] * 5
