"""Blocks of a CSV file have the cells of its records."""

import math
import random
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from dpselect.errors import ContentError
from dpselect.tables.blocks import csv_blocks
from dpselect.tables.csv_text import CsvForm, csv_rows, opened, records
from dpselect.tables.numbers import number_in
from tests.tables.rows_alone import ODD

NAN = math.nan
CELLS = st.sampled_from(
    [
        *(
            "1",
            "-2.5",
            " 3 ",
            "1e400",
            "x",
            "",
            "nan",
            "TRUE",
            "1_0",
            '"4"',
            '"a,b"',
            '"a\nb"',
            "#",
            "\u0661",
            "NA",
            "+1",
        ),
        *("1e-400", " ", "Infinity", "-nan", "nan(1)", "0x10", "1d5", ".5", "5.", "\t6", "\x1c7", "1e", "8\0", "-0"),
        *("1,5", ",5", "5,", "1.234,5", "-0,0"),
    ]
)
FORMS = st.sampled_from([CsvForm(), CsvForm("\t"), CsvForm(";", decimal=",")])
ENDS = st.sampled_from(["\n", "\r\n", "\r", "\n\n"])


@pytest.mark.cases(2)
@pytest.mark.parametrize("parser", ["arrow", "numpy"])
@pytest.mark.parametrize("characters", [1 << 20, 7, 1])
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows=st.lists(st.tuples(st.lists(CELLS, min_size=1, max_size=4), ENDS), max_size=8), form=FORMS)
def test_blocks_are_the_rows(tmp_path, monkeypatch, characters, parser, rows, form):
    """No matter what Arrow or NumPy parses of a block, and wherever blocks end."""
    monkeypatch.setattr("dpselect.tables.blocks._LARGE", 0 if parser == "arrow" else math.inf)
    monkeypatch.setattr("dpselect.tables.blocks._CHARACTERS", characters)
    path = tmp_path / "t.csv"
    lines = [(["a", "b"], "\n"), *rows]
    path.write_bytes("".join(form.delimiter.join(cells) + end for cells, end in lines).encode())
    expected = [row for row in csv_rows(path, form) if row]
    blocks = list(csv_blocks(path, form, [1], [0]))
    numbers = [value for values, _ in blocks for value in values[0].tolist()]
    right = [number_in(row[1], form.decimal) if len(row) > 1 else NAN for row in expected]
    np.testing.assert_array_equal(numbers, right)
    assert [cell for _, texts in blocks for cell in texts[0]] == [row[0].strip() for row in expected]
    if any(len(row) != 2 for row in expected):
        with pytest.raises(ContentError, match="length"):
            list(csv_blocks(path, form, [1], [0], width=2))


@pytest.mark.parametrize("parser", ["arrow", "numpy"])
def test_plain_numbers_are_parsed_by_a_library(tmp_path, monkeypatch, parser):
    """To the same bits: the slow reading is never asked."""
    if parser == "arrow":
        pytest.importorskip("pyarrow")
    other = {"arrow": "_by_numpy", "numpy": "_by_arrow"}[parser]
    monkeypatch.setattr(f"dpselect.tables.blocks.{other}", lambda *_: None)
    monkeypatch.setattr("dpselect.tables.blocks._LARGE", 0)
    random = np.random.default_rng(1).integers(0, 2**63, 2000).view(np.float64)
    values = np.concatenate(
        [np.ldexp(np.arange(1.0, 200.0), np.arange(-100, 99)), [0.1, 1e308, 5e-324, -0.0], random[random == random]]
    )
    path = tmp_path / "t.csv"
    path.write_text("id,x\n" + "".join(f"a,{value!r}\n" for value in values.tolist()))
    monkeypatch.setattr("dpselect.tables.blocks._recorded", None)
    (((found,), _),) = csv_blocks(path, CsvForm(), [1])
    assert found.tobytes() == values.tobytes()


NUMBERS = (
    *("1.7976931348623157e308", "1.7976931348623159e308", "2.2250738585072011e-308", "4.9e-324", "0e999999", "1.e5"),
    *("nan(1)", "+nan", "-INFINITY", "infinit", "1d5", "1f", "\u0663", "1\u00a0000", "\u2009 2", "\x0b4", "6\x1f"),
    *("7\x85", "8\ufeff", "1\0", "1e", "--1", "12.34.56", "1.000.000", "1'000", "0,5", "nULL", "#1", "$5", "\\5", " "),
)


def _a_file(path, draw):
    """A CSV file of numbers and of what is none, and its form."""
    delimiter, decimal = draw.choice([(",", "."), (";", ","), ("\t", "."), ("|", "."), ("\u00a7", "."), ("x", ".")])
    form = CsvForm(delimiter, "utf-8", decimal, draw.choice(["", "", "'", " "]))
    width, few = draw.choice([1, 2, 3]), draw.sample([*ODD, *NUMBERS], draw.choice([1, 4, 30]))
    good, ends = draw.choice([0, 0.5, 0.9, 1]), draw.choice([("\n",), ("\r\n",), ("\r",), ("\n", "\r\n", "\r", "\n\n")])

    def cell():
        text = repr(draw.uniform(-1e3, 1e3)).replace(".", decimal) if draw.random() < good else draw.choice(few)
        return (
            f'"{text}"'.replace('o"t', "ot") if draw.random() < 0.002 else text.replace(delimiter, "").replace('"', "")
        )

    rows = draw.choice([1, 10, 150])
    lines = (delimiter.join(cell() for _ in range(width + (draw.random() < 0.003))) for _ in range(rows))
    path.write_bytes(f"{delimiter.join('abc'[:width])}\n{''.join(line + draw.choice(ends) for line in lines)}".encode())
    return form, width


@pytest.mark.parametrize(
    "files", [25, pytest.param(400, marks=pytest.mark.full), pytest.param(9000, marks=pytest.mark.slow)]
)
def test_a_block_is_read_as_its_records_are_bit_by_bit(tmp_path, monkeypatch, files):
    for seed in range(files):
        draw = random.Random(seed)
        form, width = _a_file(tmp_path / "t.csv", draw)
        with opened(tmp_path / "t.csv", form, "replace") as file:
            rows = [row + [""] * width for row in records(file, form) if row][1:]
        numbers = [place for place in range(width) if draw.random() < 0.7]
        texts = [place for place in range(width) if place not in numbers]
        monkeypatch.setattr("dpselect.tables.blocks._LARGE", draw.choice([0, 0, 1 << 18]))
        monkeypatch.setattr("dpselect.tables.blocks._CHARACTERS", draw.choice([1, 50, 300, 1 << 20]))
        found = list(csv_blocks(tmp_path / "t.csv", form, numbers, texts))
        for number, place in enumerate(numbers):
            wanted = [number_in(row[place], form.decimal, form.thousands) for row in rows]
            assert (
                np.concatenate([np.empty(0), *(block[0][number] for block in found)]).tobytes()
                == np.array(wanted).tobytes()
            ), seed
        for number, place in enumerate(texts):
            assert [cell for block in found for cell in block[1][number]] == [row[place].strip() for row in rows], seed


def test_a_row_that_lacks_cells_reads_as_empty_beside_numbers(tmp_path):
    (tmp_path / "t.csv").write_text("a,b\n1,x\n2\n")
    ((values, texts),) = csv_blocks(tmp_path / "t.csv", CsvForm(), [0], [1])
    assert (values[0].tolist(), texts) == ([1.0, 2.0], [["x", ""]])


def test_reading_numbers_imports_no_pandas(tmp_path):
    """It would take longer than reading a million cells."""
    pytest.importorskip("pyarrow")
    cells = "\n".join(f"{place}.5,{'' if place % 3 else place}" for place in range(50_000))
    (tmp_path / "t.csv").write_text(f"a,b\n{cells}\n")
    ask = (
        "import sys; from pathlib import Path; from dpselect.tables.table import open_table;"
        f"open_table('t.csv', Path({str(tmp_path)!r}), 'data').read(['a', 'b'], ['a', 'b']);"
        "print('pyarrow' in sys.modules, 'pandas' in sys.modules)"
    )
    said = subprocess.run([sys.executable, "-c", ask], capture_output=True, text=True, check=True).stdout
    assert said == "True False\n"
