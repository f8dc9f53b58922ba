"""Tables of two columns and their declared facts."""

from dpselect.study.data import load
from dpselect.study.schema_data import Data
from dpselect.tables.table import open_table

FACTS = {"age": {"bounds": (0, 100)}, "colour": {"categories": ("red", "blue")}}


def data(**changes):
    return Data.model_validate(
        {"source": "d.csv", "label": "label", "classes": ("no", "yes"), "columns": FACTS, **changes}
    )


def write(tmp_path, text, name="d.csv"):
    (tmp_path / name).write_text(text)
    return tmp_path


def rows_of(tmp_path, text, **changes):
    facts = data(**changes)
    return load(facts, open_table(facts.source, write(tmp_path, text)))
