"""No conversion of a time stamp, a duration or an integer wraps around, regardless of its unit and its container."""

from __future__ import annotations

import datetime
import itertools
import random
from datetime import timedelta, timezone
from fractions import Fraction

import numpy as np
import pytest
from typer.testing import CliRunner

from dpselect.cli.app import app
from dpselect.errors import ArgumentError
from dpselect.numerics import moments
from dpselect.ordered import median, open_column, quantile_interval, quantiles
from dpselect.ordered.public_domain import PublicDomain
from dpselect.randomness import keyed_source
from tests.numerics.moments_cases import EPOCH, LAST, LENGTHS, NAT, UNITS, begin, of_arrow, spark_file, stamps
from tests.ordered.sources import column_laws as laws

SECOND = 10**18


def last_tick(seconds, unit):
    """The last tick that is not after a moment; months are searched by halves, from a guess."""
    if unit not in ("Y", "M"):
        return seconds // Fraction(LENGTHS[unit])
    guess = seconds // (31_556_952 if unit == "Y" else 2_629_746)
    low, high = guess - 4, guess + 4
    assert begin(low, unit) <= seconds < begin(high, unit)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if begin(middle, unit) <= seconds else (low, middle)
    return low


def held(tick):
    return min(max(tick, -LAST), LAST)


def some_ticks(unit, seed=0):
    """The ends of what the unit holds, those of the other units, the years 1 to 9999, moments near 1970."""
    drawn = random.Random(f"{unit} {seed}")
    found = [NAT, -LAST, -LAST + 1, LAST, LAST - 1, 0, 1, -1, *(drawn.randrange(-LAST, LAST) for _ in range(4))]
    found += [drawn.choice((-1, 1)) << drawn.randrange(63) for _ in range(6)]
    for other in UNITS:
        found += [last_tick(begin(end, other), unit) + step for end in (-LAST, LAST) for step in (-1, 0, 1)]
    for year in (1, 1500, 1677, 1678, 1900, 1969, 1970, 2000, 2024, 2100, 2262, 9999):
        day = datetime.date(year, drawn.randrange(1, 13), drawn.randrange(1, 29)).toordinal() - EPOCH
        found.append(last_tick(Fraction(day * 86_400) + Fraction(drawn.randrange(SECOND), SECOND), unit))
    return [tick for tick in found if NAT <= tick <= LAST]


@pytest.mark.parametrize("source", UNITS)
def test_arrays_of_every_unit_in_every_unit(source):
    ticks = some_ticks(source)
    for unit in UNITS:
        wanted = [NAT if tick == NAT else held(last_tick(begin(tick, source), unit)) for tick in ticks]
        assert moments.ticks_in(stamps(ticks, source), unit).tolist() == wanted, unit
        swapped = stamps(ticks, source).astype(f">M8[{source}]")
        assert moments.ticks_in(swapped, unit).tolist() == wanted, unit
        for tick in ticks[:12]:
            if tick != NAT:
                instant = moments.instant_of(stamps([tick], source)[0])
                assert Fraction(instant, SECOND) == begin(tick, source)
                assert moments.tick_at(instant, unit) == last_tick(begin(tick, source), unit)
                upper = moments.tick_at(instant, unit, up=True)
                assert begin(upper - 1, unit) < begin(tick, source) <= begin(upper, unit)


@pytest.mark.parametrize("count", [2, 7, 25])
def test_several_units_to_a_tick(count):
    for source, unit in itertools.product(("Y", "M", "W", "D", "s", "ns", "as"), ("Y", "D", "ns")):
        ticks = some_ticks(source, count)[:14]
        several = np.array(ticks, dtype=np.int64).view(f"M8[{count}{source}]")
        wanted = [NAT if tick == NAT else held(last_tick(begin(tick * count, source), unit)) for tick in ticks]
        assert moments.ticks_in(several, unit).tolist() == wanted


@pytest.mark.parametrize("source", UNITS)
def test_seconds_are_one_double_in_all_units(source):
    ticks = [tick for tick in some_ticks(source) if tick != NAT]
    found = moments.seconds_of(stamps([*ticks, NAT], source))
    exact = [begin(tick, source) for tick in ticks]
    assert np.isnan(found[-1])
    lost = Fraction(1, 10**15) if source == "as" else 0
    for seconds, wanted in zip(found.tolist(), exact, strict=False):
        assert abs(Fraction(seconds) - wanted) <= abs(wanted) * Fraction(2, 1 << 52) + lost
    order = sorted(range(len(ticks)), key=lambda place: ticks[place])
    assert all(found[a] <= found[b] for a, b in itertools.pairwise(order))
    for unit in UNITS[2:]:
        same = [place for place, s in enumerate(exact) if begin(held(last_tick(s, unit)), unit) == s and abs(s) < 1e11]
        again = moments.seconds_of(stamps([last_tick(exact[place], unit) for place in same], unit))
        assert again.tolist() == found[same].tolist()


TEXTS = {
    "2000-01-01": 946_684_800,
    "2000": 946_684_800,
    "2000-03": 951_868_800,
    "1999-12-31T23:59:59.5": Fraction(1_893_369_599, 2),
    "1999-12-31 23:59:59.123456789123456789999": 946_684_799 + Fraction(123456789123456789, 10**18),
    "2000-01-01T01:30+01:30": 946_684_800,
    "1999-12-31T22:30:00-0130": 946_684_800,
    "2000-01-01T00Z": 946_684_800,
    "10000-01-01": 253_402_300_800,
    "-0001-12-31": -62_135_596_800 - 367 * 86_400,
    "99999-01-01T00:00:00.000000000": 3_093_496_444_800,
}


def test_texts():
    for text, seconds in TEXTS.items():
        assert Fraction(moments.instant_of(text), SECOND) == seconds, text
        if "Z" not in text and "+" not in text and text[-5:] != "-0130" and len(text) < 31:
            assert moments.instant_of(np.datetime64(text, "s")) == seconds // 1 * SECOND
    for text in ("now", "today", "NaT", "", "20000101", "2000-1-1", "2000-02-30", "2000-13", "2000-01-01T24", "٢٠٠٠",
                 "2000-01-01T12:60", "2000-01-01T12:00+24:00", "1e9", "2000-01-01x", " 2000", "9" * 5000):  # fmt: skip
        with pytest.raises(ValueError, match="ISO"):
            moments.instant_of(text)


def test_datetimes_of_python():
    far = datetime.datetime.max.replace(tzinfo=timezone(-timedelta(hours=14)))
    assert Fraction(moments.instant_of(far), SECOND) == 253_402_300_800 + 14 * 3600 - Fraction(1, 10**6)
    near = datetime.datetime.min.replace(tzinfo=timezone(timedelta(hours=14)))
    assert Fraction(moments.instant_of(near), SECOND) == -62_135_596_800 - 14 * 3600
    assert moments.instant_of(datetime.date.max) == moments.instant_of("9999-12-31")
    pd = pytest.importorskip("pandas")
    assert moments.instant_of(pd.Timestamp("2000-01-01T00:00:00.000000001", tz="Europe/Paris")) == (
        moments.instant_of("1999-12-31T23:00:00.000000001")
    )
    assert moments.instant_of(pd.NaT) is None


def bounds(low, high, unit=None):
    if unit is None:
        return {"lower": low, "upper": high}
    low, high = stamps([held(last_tick(begin_of(text), unit)) for text in (low, high)], unit)
    return {"lower": low, "upper": high}


def begin_of(text):
    return Fraction((datetime.date.fromisoformat(text).toordinal() - EPOCH) * 86_400)


CONTAINERS = {
    "array": (UNITS, lambda ticks, unit: stamps(ticks, unit)),
    "chunk": (UNITS, lambda ticks, unit: lambda: iter([stamps(ticks[:3], unit), stamps(ticks[3:], unit)])),
    "pandas": (("s", "ms", "us", "ns"), lambda ticks, unit: of_pandas(ticks, unit)),
    "pandas with a time zone": (("s", "ms", "us", "ns"), lambda ticks, unit: of_pandas(ticks, unit, "Asia/Tokyo")),
    "pandas of Arrow": (("s", "ms", "us", "ns"), lambda ticks, unit: of_pandas(ticks, unit, arrow=True)),
    "arrow": (("s", "ms", "us", "ns"), lambda ticks, unit: of_arrow(ticks, unit)),
    "arrow with a time zone": (("s", "ms", "us", "ns"), lambda ticks, unit: of_arrow(ticks, unit, "Asia/Tokyo")),
    "polars": (("ms", "us", "ns"), lambda ticks, unit: of_polars(ticks, unit)),
    "parquet": (("ms", "us", "ns"), lambda ticks, unit: of_arrow(ticks, unit)),
}


def of_pandas(ticks, unit, zone=None, arrow=False):
    pd = pytest.importorskip("pandas")
    if arrow:
        return pd.Series(pd.arrays.ArrowExtensionArray(of_arrow(ticks, unit)))
    found = pd.Series(stamps(ticks, unit))
    return found if zone is None else found.dt.tz_localize("UTC").dt.tz_convert(zone)


def of_polars(ticks, unit):
    pl = pytest.importorskip("polars")
    return pl.Series([None if tick == NAT else tick for tick in ticks], dtype=pl.Int64).cast(pl.Datetime(unit))


def exact_ranks(ticks, source, unit, low, high):
    """What `laws.ranks` should find: rows of a column in `unit`, of time stamps in `source`."""
    found = {}
    for tick in ticks:
        if tick != NAT:
            code = min(max(held(last_tick(begin(tick, source), unit)), low), high) - low
            found[code] = found.get(code, 0) + 1
    return found


@pytest.mark.parametrize("container", CONTAINERS)
def test_units_of_data_and_of_bounds(container, tmp_path):
    kinds, make = CONTAINERS[container]
    for unit in kinds:
        ticks = some_ticks(unit)
        if container in ("pandas", "pandas with a time zone", "polars"):
            ticks = [tick for tick in ticks if abs(tick) < LAST - 10**14]  # a time zone of theirs needs room
        column = make(ticks, unit)
        if container == "parquet":
            pa = pytest.importorskip("pyarrow")
            import pyarrow.parquet

            pyarrow.parquet.write_table(pa.table({"x": column}), tmp_path / "x.parquet")
            with open_column(str(tmp_path / "x.parquet"), "x") as column:
                pass
        for other in (*UNITS, None):
            for ends in (("1500-01-01", "2100-01-01"), ("0001-01-01", "9999-12-31"), ("1960-01-01", "1980-01-01")):
                public = bounds(*ends, other)
                low, high = (Fraction(moments.instant_of(public[side]), SECOND) for side in ("lower", "upper"))
                first = -last_tick(-low, unit) if unit not in ("Y", "M") else last_tick(low, unit)
                first += begin(first, unit) < low
                first, last = max(first, -LAST), min(last_tick(high, unit), LAST)
                if first > last:
                    with pytest.raises(ArgumentError, match="lower and upper leave no timestamp"):
                        laws.ranks(column, **public)
                    continue
                domain, found, _ = laws.ranks(column, **public)
                assert (domain.lower, domain.upper, domain.unit) == (first, last, unit)
                assert found == exact_ranks(ticks, unit, unit, first, last)
                assert moments.instant_of(domain.decode(0)) == begin(first, unit) * SECOND
                assert moments.instant_of(domain.decode(domain.size - 1)) == begin(last, unit) * SECOND


@pytest.mark.parametrize("first", UNITS)
def test_chunks_in_any_order_of_units(first):
    public = {"lower": "0001-01-01", "upper": "9999-12-31"}
    domain = PublicDomain(**public).of_type(np.dtype(f"M8[{first}]"))
    others = random.Random(first).sample(UNITS, 6)
    for order in ([first, *others], [first, *reversed(others)]):
        parts = [(some_ticks(unit, 1), unit) for unit in order]
        wanted = {}
        for ticks, unit in parts:
            for code, count in exact_ranks(ticks, unit, first, domain.lower, domain.upper).items():
                wanted[code] = wanted.get(code, 0) + count
        chunks = [stamps(ticks, unit) for ticks, unit in parts]
        assert laws.ranks(iter(chunks), **public)[:2] == (domain, wanted)
        cells = [chunks[0], *([cell for cell in chunk] for chunk in chunks[1:])]  # noqa: C416
        assert laws.ranks(lambda cells=cells: iter(cells), **public)[:2] == (domain, wanted)


def in_unit(text, unit, rows):
    return np.full(rows, stamps([last_tick(begin_of(text), unit)], unit)[0])


@pytest.mark.parametrize("ends", [("1500-01-01", "2100-01-01"), (datetime.date(1500, 1, 1), datetime.date(2100, 1, 1))])
def test_a_bound_that_nanoseconds_do_not_reach(ends):
    days = np.arange(3653, 18_262)  # 1980 to 2020
    values = (days * 86_400 * 10**9).view("M8[ns]")
    public = {"lower": ends[0], "upper": ends[1], "epsilon": 9, "random": keyed_source(1)}
    middle = np.datetime64("2000-01-01", "ns")
    assert abs(median(values, **public).value - middle) < np.timedelta64(40, "D")
    assert abs(quantiles(values, qs=[0.25, 0.5], **public).value[1] - middle) < np.timedelta64(40, "D")
    low, high = quantile_interval(values, q=0.5, **public).value
    assert low < middle < high


@pytest.mark.parametrize(("fine", "coarse"), [*itertools.combinations(reversed(UNITS[3:10]), 2)])
def test_chunks_of_a_coarser_unit(fine, coarse):
    chunks = [in_unit("2000-01-01", fine, 100), in_unit("1950-01-01", coarse, 300)]
    public = {"lower": "1900-01-01", "upper": "2100-01-01", "epsilon": 9, "random": keyed_source(1)}
    assert median(iter(chunks), **public).value == np.datetime64("1950-01-01", fine)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"lower": "now"}, "lower must be a timestamp"),
        ({"upper": np.datetime64("NaT")}, "upper must be a timestamp"),
        ({"upper": 1.5}, "upper must be a timestamp"),
        ({"lower": "20000101"}, "lower must be a timestamp"),
        ({"lower": "2101-01-01"}, "lower must be at most upper"),
        ({"lower": "0001-01-01", "upper": "1500-01-01"}, "leave no timestamp"),
        ({"lower": "3000-01-01", "upper": "9999-01-01"}, "leave no timestamp"),
        ({"granularity": np.timedelta64(1, "M")}, "granularity must be a duration of whole units"),
        ({"granularity": np.timedelta64(1, "ps")}, "granularity must be a duration of whole units"),
        ({"granularity": np.timedelta64("NaT")}, "granularity must be a duration of whole units"),
        ({"granularity": np.timedelta64(0, "D")}, "granularity must be at least one unit"),
    ],
)
def test_public_moments_are_refused_by_name(wrong, said):
    with pytest.raises(ArgumentError, match=said):
        PublicDomain(**{"lower": "1900-01-01", "upper": "2100-01-01"} | wrong).of_type(np.dtype("M8[ns]"))


def test_bounds_lie_within_the_bounds_in_whole_units():
    domain = PublicDomain(lower="2000-01-01T12", upper="2000-01-03T12").of_type(np.dtype("M8[D]"))
    assert (domain.decode(0), domain.size) == (np.datetime64("2000-01-02"), 2)
    for step in (np.timedelta64(LAST, "W"), timedelta(days=999_999_999), 1 << 80):
        domain = PublicDomain(lower="1900", upper="2100", granularity=step).of_type(np.dtype("M8[ns]"))
        assert (domain.size, domain.decode(0)) == (1, np.datetime64("1900-01-01"))
        assert domain.encode(in_unit("2050-01-01", "ns", 1)).tolist() == [0]


@pytest.mark.parametrize("flag", [("--granularity", f"{10**30} D"), ("--granularity", "1 x"), ("--lower", "now")])
def test_the_command_refuses_moments_by_the_name_of_the_flag(flag, tmp_path):
    path = spark_file(tmp_path / "x.parquet", [0])
    asked = ["quantile", str(path), "--column", "x", "--q", "0.5", "--epsilon", "9", "--upper", "2100-01-01"]
    with pytest.raises(ArgumentError, match=flag[0]):
        CliRunner().invoke(app, [*asked, "--lower", "1900-01-01", *flag], catch_exceptions=False)


WHOLE = {"i1": 8, "i8": 64, "u1": 8, "u8": 64}


@pytest.mark.parametrize("kind", WHOLE)
@pytest.mark.parametrize("number", [int, np.int64, np.uint64, Fraction, float])
def test_whole_numbers_at_the_ends_of_their_types(kind, number):
    info = np.iinfo(kind)
    values = np.array([info.min, info.min + 1, 0, 1, info.max - 1, info.max], dtype=kind)
    ends = [-(1 << 63), -(1 << 63) + 1, -129, -1, 0, 1, 127, 1 << 53, (1 << 53) + 1, (1 << 63) - 1, 1 << 63,
            (1 << 64) - 1]  # fmt: skip
    for low, high in itertools.combinations(ends, 2):
        try:
            public = {"lower": number(low), "upper": number(high)}
        except OverflowError:
            continue
        low, high = int(public["lower"]), int(public["upper"])
        if low > high:
            continue
        domain, found, _ = laws.ranks(values, **public)
        assert (domain.lower, domain.upper) == (low, high)
        wanted = {}
        for value in values.tolist():
            code = min(max(value, low), high) - low
            wanted[code] = wanted.get(code, 0) + 1
        assert found == wanted


def test_bounds_beyond_every_type():
    values = np.array([0, (1 << 64) - 1], dtype=np.uint64)
    exact = Fraction((1 << 70) + 1, 3)
    domain, found, _ = laws.ranks(values, lower=-exact, upper=exact)
    assert (domain.lower, domain.upper) == (-(exact // 1), exact // 1)
    assert sorted(found) == [-domain.lower, (1 << 64) - 1 - domain.lower]
