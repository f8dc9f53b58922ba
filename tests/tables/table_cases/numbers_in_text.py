"""How a number is written in text, in CSV files: separators, exponents, signs, what stands for a missing one."""

from __future__ import annotations

import math
from typing import Any

from dpselect.tables import Written
from tests.tables.table_cases.case import NAN, Case


def cells(name: str, thread: str, texts: list[str], want: Any, declared: Written | None = None, **more: Any) -> Case:
    """A column of these cells, written in quotes where they hold the delimiter."""
    declared = declared or Written()
    delimiter = declared.delimiter or ","
    rows = "".join(f'r{place}{delimiter}"{text}"\n' for place, text in enumerate(texts))
    return Case(name=name, thread=thread, make=f"id{delimiter}x\n{rows}", want=want, declared=declared, **more)


EURO = Written(";", decimal=",")
GERMAN = Written(";", None, ",", ".")
COMMAS = Written(thousands=",")

CASES = (
    cells("Python's underscore is none of CSV's", "pandas-dev/pandas#30045", ["1_000", "2"], (NAN, 2)),
    cells("a decimal comma", "pandas-dev/pandas#12933", ["7,35", "31"], (7.35, 31), EURO),
    Case(
        name="a decimal comma beside commas",
        thread="pandas-dev/pandas#35873",
        make='id,x\na,"7,35"\nb,31\n',
        want="decimal: must differ",
        declared=Written(decimal=","),
    ),
    cells(
        "a point where the comma is declared",
        "tidyverse/readr#1522",
        ["1.234", "2.1", "1,5"],
        (NAN, NAN, 1.5),
        EURO,
        pandas=False,
        refused={"quantile": "other separators"},
    ),
    cells(
        "one point where the comma is declared",
        "pandas-dev/pandas#59299",
        ["1,20", "22,3", "1.234,56"],
        (1.2, 22.3, NAN),
        EURO,
        pandas=False,
    ),
    cells(
        "points of thousands",
        "pola-rs/polars#18797",
        ["1.234,5", "12.345.678", "1.299,99"],
        (1234.5, 12345678, 1299.99),
        GERMAN,
    ),
    cells(
        "an id of points beside thousands",
        "pandas-dev/pandas#50270",
        ["16.000", "0", "4923.600.041"],
        (16000, 0, NAN),
        GERMAN,
        pandas=False,
    ),
    cells("commas of thousands", "pandas-dev/pandas#4598", ["2,334.01", "13", "-1,994"], (2334.01, 13, -1994), COMMAS),
    cells(
        "groups that are not of three",
        "pandas-dev/pandas#62658",
        ["1,994", "1,99", "1,,0", "50,00,000"],
        (1994, NAN, NAN, NAN),
        COMMAS,
        pandas=False,
        refused={},
    ),
    cells(
        "a comma after a number", "pandas-dev/pandas#64655", ["1 ,", "1 ,0", "7"], (NAN, NAN, 7), COMMAS, pandas=False
    ),
    cells(
        "blanks of thousands", "tidyverse/readr#827", ["1 994,5", "1 123"], (1994.5, 1123), Written(";", None, ",", " ")
    ),
    cells(
        "blanks that do not break",
        "tidyverse/readr#796",
        ["1\u202f234", "1\u00a0994"],
        (1234, 1994),
        Written(";", None, ",", " "),
        pandas=False,
    ),
    cells("an apostrophe of thousands", "tidyverse/readr#1459", ["1'994.5", "2"], (1994.5, 2), Written(thousands="'")),
    cells(
        "commas of thousands that are not declared",
        "tidyverse/readr#799",
        ["1,994", *"23456"],
        (NAN, 2, 3, 4, 5, 6),
        pandas=False,
    ),
    cells(
        "many commas that are not declared",
        "pandas-dev/pandas#22584",
        ["1,000", "2,000", "54,908"],
        (NAN, NAN, NAN),
        pandas=False,
        refused={"study": "no cell that can be read", "quantile": "other separators"},
    ),
    cells("booleans in any case", "tidyverse/readr#672", ["TRUE", "False", "true", "FALSE"], (1, 0, 1, 0)),
    cells(
        "booleans of one letter are not known unless declared",
        "Rdatatable/data.table#4033",
        ["T", "F", "1", "0"],
        (NAN, NAN, 1, 0),
        pandas=False,
    ),
    cells(
        "yes and no are not known unless declared",
        "Rdatatable/data.table#4563",
        ["Y", "N", "1"],
        (NAN, NAN, 1),
        pandas=False,
    ),
    cells(
        "infinities and NaN",
        "JuliaData/CSV.jl#168",
        ["inf", "NaN", "-Infinity", "-inf", "-nan"],
        (math.inf, NAN, -math.inf, -math.inf, NAN),
    ),
    cells(
        "more digits than a double has",
        "pandas-dev/pandas#12340",
        ["0.1000000000000000055511151231257827", "9007199254740993", "6144039378640938.000000"],
        (0.1, 2.0**53, 6144039378640938.0),
        pandas=False,
    ),
    cells(
        "a third of a number to the last digit",
        "PEtab-dev/PEtab#443",
        ["0.999", "18292498239.824001"],
        (0.999, 18292498239.824001),
        pandas=False,
    ),
    cells(
        "a long integer beside an empty cell",
        "pandas-dev/pandas#48170",
        ["", "1234567890123456789"],
        (NAN, 1234567890123456789.0),
    ),
    cells(
        "an integer of 64 bits without a sign",
        "go-gota/gota#207",
        ["16699327784941023797", "1"],
        (16699327784941023797.0, 1),
    ),
    cells(
        "an id of 22 digits", "tidyverse/readr#976", ["11898508762506083287000", "3"], (11898508762506083287000.0, 3)
    ),
    cells("an id that is an exponent", "mholt/PapaParse#1078", ["713752e1", "5e5"], (7137520, 500000)),
    cells(
        "an id that is too large an exponent",
        "tilo/smarter_csv#345",
        ["0047583311587E590003", "15E2621", "7"],
        (math.inf, math.inf, 7),
        pandas=False,
    ),
    cells("an exponent without digits", "pandas-dev/pandas#12237", ["2E", "2E+", "25"], (NAN, NAN, 25), pandas=False),
    cells("a point before an exponent", "JuliaData/CSV.jl#416", ["428.E+03", ".5e1", "7."], (428000, 5, 7)),
    cells("a negative exponent of a negative", "pola-rs/polars#5819", ["-1e1", "0e1", "-2E-1"], (-10, 0, -0.2)),
    cells("exponents as NumPy writes them", "binjr/binjr#137", ["6.000000e-03", "2.399700e+01"], (0.006, 23.997)),
    cells("a very small number", "calpaterson/csvbase#55", ["9.999999974e-07", "2.00E-07"], (9.999999974e-07, 2e-07)),
    cells(
        "a subnormal number",
        "JuliaData/Parsers.jl#83",
        ["9.3494547075363499E-311", "4.0E-323"],
        (9.3494547075363e-311, 4e-323),
        pandas=False,
    ),
    cells("below all numbers", "simdjson/simdjson#1898", ["-1e-999", "1e-330", "1"], (-0.0, 0, 1), pandas=False),
    cells(
        "a negative zero",
        "lemire/fast_double_parser#50",
        ["-0.0", "-0.0e-22", "-0", "0.0"],
        (-0.0, -0.0, -0.0, 0.0),
        pandas=False,
    ),
    cells("a plus before a number", "frictionlessdata/frictionless-r#18", ["+2.3", "2.3E+9"], (2.3, 2.3e9)),
    cells("a minus after a number", "quentinsf/icsv2ledger#83", ["42-", "7"], (NAN, 7), pandas=False),
    cells("two minus signs", "quentinsf/icsv2ledger#83", ["--42.55", "7"], (NAN, 7), pandas=False),
    cells(
        "a minus of typesetters",
        "pola-rs/polars#28163",
        ["\u22123,5", "10,99", "-0,50"],
        (NAN, 10.99, -0.5),
        EURO,
        pandas=False,
    ),
    cells(
        "a sign of a currency",
        "firefly-iii/firefly-iii#1087",
        ["$1.23", "\u20ac1,44", "7"],
        (NAN, NAN, 7),
        pandas=False,
    ),
    cells(
        "brackets for a negative", "moneymanagerex/moneymanagerex#2898", ["(33.52)", "1.5"], (NAN, 1.5), pandas=False
    ),
    cells("a sign of per cent", "wireservice/csvkit#892", ["1%", "0.5"], (NAN, 0.5), pandas=False),
    cells("a unit behind a number", "tidyverse/readr#308", ["5G", "-4"], (NAN, -4), pandas=False),
    cells("hexadecimal digits", "Keyang/node-csvtojson#130", ["0x15a9", "12"], (NAN, 12), pandas=False),
    cells(
        "hexadecimal digits without a mark",
        "PlotJuggler/PlotJuggler#1135",
        ["9", "A", "B"],
        (9, NAN, NAN),
        pandas=False,
    ),
    cells("leading zeros", "scpike/us-state-county-zip#1", ["01730", "00060", "7"], (1730, 60, 7)),
    cells("NA of R", "pola-rs/polars#1831", ["NA", "1.5", "<NA>"], (NAN, 1.5, NAN)),
    cells("None of Python", "pandas-dev/pandas#55280", ["None", "1.5"], (NAN, 1.5)),
    cells("NULL of databases", "apache/arrow#4184", ["NULL", "null", "1.5", "\\N"], (NAN, NAN, 1.5, NAN), pandas=False),
    cells("n/a of brain images", "pandas-dev/pandas#16078", ["n/a", "N/A", "1.5"], (NAN, NAN, 1.5)),
    cells(
        "marks of statistics offices",
        "Rdatatable/data.table#2927",
        ["-", "..", "*", "#VALUE!", "n.a.", "1.5"],
        (NAN, NAN, NAN, NAN, NAN, 1.5),
        pandas=False,
    ),
    cells(
        "NaN of old compilers", "pandas-dev/pandas#30152", ["-1.#IND", "1.#QNAN", "#N/A", "1.5"], (NAN, NAN, NAN, 1.5)
    ),
    cells("the text <null>", "DataResponsibly/DataSynthesizer#1", ["<null>", "40.7"], (NAN, 40.7), pandas=False),
    cells(
        "blanks for a missing number",
        "man-group/dtale#240",
        ["1", "00", "1.05", " ", "   ", "", "02", "..", "none", "nan"],
        (1, 0, 1.05, NAN, NAN, NAN, 2, NAN, NAN, NAN),
        pandas=False,
    ),
    cells("a date among numbers", "duckdb/duckdb#15473", ["2024/12/12", "1", "163"], (NAN, 1, 163), pandas=False),
    cells("a time among numbers", "Rdatatable/data.table#567", ["12:30", "1"], (NAN, 1), pandas=False),
    cells("a formula of a spreadsheet", "pandas-dev/pandas#55105", ["=(39)", "29"], (NAN, 29), pandas=False),
    cells("several numbers in a cell", "pola-rs/polars#2313", ["2.3 2.4", "4.5"], (NAN, 4.5), pandas=False),
    cells("digits of other scripts", "", ["\u0663", "\uff11\uff12", "7"], (3, 12, 7), pandas=False),
    cells("blanks that do not break around a number", "", ["\u00a01", "2\u00a0"], (1, 2), pandas=False),
)
