"""Distributions in tables: draws against the rule and the quantiles of the table, units, and bad files by line."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from shared_data import DATA

import equipoise as eq
from equipoise.simulation.fluid import Cdf

PUBLISHED = DATA / "pcs" / "workload_cdfs"
N = 4000
# The share of draws at most x is further than this from its probability for some x once in 10^9 (Dvoretzky, Kiefer and
# Wolfowitz, with Massart's constant).
WITHIN = math.sqrt(math.log(2e9) / (2 * N))


@st.composite
def tables(draw):
    """Return ascending whole values and shares, with steps, the last share 1."""
    count = draw(st.integers(1, 8))
    values = sorted(draw(st.lists(st.integers(1, 1000), min_size=count, max_size=count)))
    shares = sorted(draw(st.lists(st.integers(0, 20), min_size=count - 1, max_size=count - 1)))
    return Cdf(values=np.array(values), cdf=np.array([*shares, 20]) / 20, unit="secs")


def write(folder, text):
    path = folder / "cdf.csv"
    path.write_text(text, encoding="utf-8")
    return path


@given(tables(), st.integers(0, 2**32))
def test_a_draw_follows_the_rule_row_by_row(table, seed):
    rng = np.random.default_rng(seed)
    rows, along = rng.random(50).tolist(), rng.random(50).tolist()
    expected = []
    for u, v in zip(rows, along, strict=True):
        row = next(index for index, share in enumerate(table.cdf.tolist()) if u <= share)
        high = float(table.values[row])
        low = float(table.values[row - 1]) if row else high
        expected.append(max(1, int(low + v * (high - low))))
    assert table.draw(np.random.default_rng(seed), 50).tolist() == expected


@given(tables(), st.integers(0, 2**32))
def test_quantiles_are_those_of_the_table(table, seed):
    drawn = table.draw(np.random.default_rng(seed), N)
    for row, (value, share) in enumerate(zip(table.values.tolist(), table.cdf.tolist(), strict=True)):
        if row + 1 < len(table.values) and table.values[row + 1] == value:
            continue  # the share of a step is that of its last row
        # Draws between two values are rounded down, possibly to the value below.
        assert (drawn < value).mean() - WITHIN <= share <= (drawn <= value).mean() + WITHIN


def test_a_draw_on_a_share_takes_the_row_of_this_share():
    u = float(np.random.default_rng(0).random())
    table = Cdf(values=[5, 5, 90], cdf=[0, u, 1], unit="secs")
    assert table.draw(np.random.default_rng(0), 1).tolist() == [5.0]


def test_equal_neighbours_are_steps():
    table = Cdf(values=[1, 1, 4, 4], cdf=[0, 0.75, 0.75, 1], unit="gpus-per-job")
    drawn = table.draw(np.random.default_rng(3), N)
    assert set(drawn.tolist()) == {1.0, 4.0}
    assert abs((drawn == 1).mean() - 0.75) < WITHIN


def test_no_draw_is_below_one_unit():
    table = Cdf(values=[0, 2], cdf=[0, 1], unit="minutes")
    assert set(table.draw(np.random.default_rng(0), N).tolist()) == {60.0}


@pytest.mark.parametrize(
    ("unit", "factor"), [("secs", 1), ("minutes", 60), ("hours", 3600), ("jobs", 1), ("gpus-per-job", 1)]
)
def test_units_of_a_file_scale_its_draws(tmp_path, unit, factor):
    path = write(tmp_path, f"#{unit},cdf\n10,0.0\n20,0.5\n90,1.0\n\n")
    drawn = Cdf.read(path).draw(np.random.default_rng(5), 100)
    plain = Cdf(values=[10, 20, 90], cdf=[0, 0.5, 1], unit="secs").draw(np.random.default_rng(5), 100)
    assert (drawn == factor * plain).all()
    assert Cdf.read(path).is_time == (factor > 1 or unit == "secs")


@pytest.mark.parametrize(
    ("text", "field", "why"),
    [
        ("#secs,cdf\n10,0\n5,1\n", "values", "must ascend: it is less than the one before it (cdf.csv, line 3)"),
        (
            "#secs,cdf\n9,0.5\n20,0.4\n30,1\n",
            "cdf",
            "must ascend: it is less than the one before it (cdf.csv, line 3)",
        ),
        ("#secs,cdf\n10,0\n\n20,0.9\n", "cdf", "the last one must be 1 (cdf.csv, line 4)"),
        ("#secs,cdf\n10,0\n20,1.5\n", "cdf", "at most 1 (cdf.csv, line 3)"),
        ("#secs,cdf\n10,-0.1\n20,1\n", "cdf", "at least 0 (cdf.csv, line 2)"),
        ("#secs,cdf\n-1,0\n20,1\n", "#secs", "at least 0 (cdf.csv, line 2)"),
        ("#secs,cdf\nnan,0\n20,1\n", "#secs", "must be finite (cdf.csv, line 2)"),
        ("#secs,cdf\n10,nan\n20,1\n", "cdf", "must be finite (cdf.csv, line 2)"),
        ("#secs,cdf\nmany,0\n20,1\n", "#secs", "must be a number (cdf.csv, line 2)"),
        ("#secs,cdf\n10,0,7\n20,1\n", "line", "3 cells, the header has 2 (cdf.csv, line 2)"),
        ("#weeks,cdf\n10,0\n20,1\n", "unit", "(cdf.csv)"),
        ("#minute,cdf\n10,0\n20,1\n", "unit", "did you mean 'minutes'? the units are secs, minutes, hours"),
        ("cdf,#secs\n0,10\n1,20\n", "header", 'must be such as "#minutes,cdf" (cdf.csv)'),
        ("#secs,cdf,more\n10,0,1\n", "header", 'must be such as "#minutes,cdf" (cdf.csv)'),
        ("#secs,share\n10,0\n20,1\n", "cdf", "column missing from the header of cdf.csv"),
        ("#secs,cdf\n", "path", "the file holds no row"),
    ],
)
def test_a_bad_file_is_refused_by_field_and_line(tmp_path, text, field, why):
    with pytest.raises(eq.InvalidInput) as caught:
        Cdf.read(write(tmp_path, text))
    assert caught.value.field == field
    assert why in caught.value.why


def test_a_missing_file_is_bad_input(tmp_path):
    with pytest.raises(eq.InvalidInput, match="No such file"):
        Cdf.read(tmp_path / "none.csv")


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"unit": "weeks"}, "unit"),
        ({"values": [3, 2]}, "values"),
        ({"values": [1, math.nan]}, "values"),
        ({"values": [1, 2, 3]}, "values"),
        ({"values": [], "cdf": []}, "values"),
        ({"cdf": [0.5, 0.2]}, "cdf"),
        ({"cdf": [0.5, 0.9]}, "cdf"),
        ({"cdf": [0.5, 1.1]}, "cdf"),
    ],
)
def test_bad_fields_are_named(change, field):
    with pytest.raises(eq.InvalidInput) as caught:
        Cdf(**{"values": [1, 2], "cdf": [0, 1], "unit": "secs"} | change)
    assert caught.value.field == field


@pytest.mark.skipif(not PUBLISHED.exists(), reason="no shared data")
def test_the_published_files_are_read_in_their_units():
    found = {path.name: Cdf.read(path) for path in sorted(PUBLISHED.glob("*.csv"))}
    assert len(found) == 15
    for name, cdf in found.items():
        assert cdf.is_time == ("service-times" in name)
    assert found["cdf-app-service-times-themis1.csv"].unit == "secs"
    assert found["cdf-app-service-times-gavel-contmultiple.csv"].unit == "minutes"
    trials = found["cdf-num-jobs-per-app-themis1.csv"].draw(np.random.default_rng(0), N)
    # Only 23% of the published applications have fewer than 20 trials; the others have up to 90.
    assert abs((trials < 20).mean() - 0.23) < WITHIN
    assert 80 < trials.max() < 90
