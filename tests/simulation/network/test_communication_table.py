"""The table of measured communication: the paper's figures, scaling, files, and bad input."""

from pathlib import Path

import pytest

import equipoise as eq
from equipoise.formulations.errors import InvalidInput
from equipoise.simulation.network import CommunicationRow, CommunicationTable

SHIPPED = Path(eq.__file__).parent / "simulation" / "network" / "data" / "six_models.csv"
TABLE = CommunicationTable.builtin()
HEADER = "model,machine,rack,network,gradient_mb,layers,skew"
LINE = "net,0.1,0.2,0.4,10,5,0.5"


def test_the_shipped_table_is_the_paper_s():
    assert TABLE.models == ("VGG11", "AlexNet", "MobileNetV3", "ResNet18", "ResNet50", "BERT-large")
    assert [row.ratios for row in TABLE.rows] == [
        (0.01, 0.06, 0.07), (0.02, 0.13, 1.00), (0.42, 9.40, 195.92),
        (0.07, 1.16, 27.49), (0.12, 0.12, 0.38), (0.08, 0.23, 7.15),
    ]  # fmt: skip
    assert [row.gradient_mb for row in TABLE.rows] == [531.4, 244.4, 9.87, 46.7, 102, 562]
    assert [row.layers for row in TABLE.rows] == [11, 8, 52, 21, 54, 66]
    assert list(TABLE.skews.values()) == [0.77, 0.62, 0.41, 0.20, 0.09, 0.03]
    assert CommunicationTable.read(SHIPPED) == TABLE


@pytest.mark.parametrize(("gpus", "factor"), [(1, 0), (2, 1 / 1.75), (4, 1.5 / 1.75), (8, 1), (64, 2 * 63 / 64 / 1.75)])
def test_ratios_off_eight_gpus_are_scaled_by_the_data_that_a_ring_sends(gpus, factor):
    for tier, ratio in enumerate((0.08, 0.23, 7.15)):
        assert TABLE.ratio("BERT-large", gpus, tier) == pytest.approx(ratio * factor, rel=1e-12)


def write(tmp_path, *lines):
    path = tmp_path / "measured.csv"
    path.write_text("\n".join(lines))
    return path


def test_a_user_s_measurements_are_read(tmp_path):
    found = CommunicationTable.read(write(tmp_path, HEADER + ",source", LINE + ",ours", "", "one,0,0,0,1,1,1,ours"))
    assert found.models == ("net", "one")
    assert found.ratio("net", 8, 2) == 0.4
    assert found.row("one").layers == 1


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ([HEADER], "the file holds no model"),
        ([HEADER.replace(",rack", ""), LINE], "column missing from the header"),
        ([HEADER, LINE + ",1"], "8 cells, the header has 7 (measured.csv, line 2)"),
        ([HEADER, LINE, LINE], "a second row of the same model (measured.csv, line 3)"),
        ([HEADER, LINE.replace("0.2", "-0.2")], "rack = -0.2: at least 0 (measured.csv, line 2)"),
        ([HEADER, LINE.replace("0.2", "nan")], "rack = nan: must be finite (measured.csv, line 2)"),
        ([HEADER, LINE.replace("0.4", "inf")], "network = inf: must be finite (measured.csv, line 2)"),
        ([HEADER, LINE.replace("0.4", "many")], "network = 'many': must be a number (measured.csv, line 2)"),
        ([HEADER, LINE.replace("10", "0")], "gradient_mb = 0.0: must be greater than 0 (measured.csv, line 2)"),
        ([HEADER, LINE.replace(",5,", ",2.5,")], "layers = '2.5': must be a whole number (measured.csv, line 2)"),
        ([HEADER, LINE.replace(",0.5", ",1.5")], "skew = 1.5: at most 1 (measured.csv, line 2)"),
        ([HEADER, LINE.replace(",0.5", ",0.1")], "skew = 0.1: the largest of 5 layers has at least 1/5"),
        ([HEADER, LINE.replace("net", "")], "model = '': must not be empty (measured.csv, line 2)"),
    ],
)
def test_malformed_files_are_refused_by_line(tmp_path, lines, message):
    with pytest.raises(InvalidInput) as error:
        CommunicationTable.read(write(tmp_path, *lines))
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("call", "field"),
    [
        (lambda: TABLE.ratio("VGG-11", 8, 0), "model"),
        (lambda: TABLE.ratio("VGG11", 8, 3), "tier"),
        (lambda: TABLE.ratio("VGG11", 8, -1), "tier"),
        (lambda: TABLE.ratio("VGG11", 0, 0), "gpus"),
        (lambda: CommunicationTable([]), "rows"),
        (lambda: CommunicationTable("VGG11"), "rows"),
        (lambda: CommunicationTable([TABLE.rows[0]] * 2), "model"),
        (
            lambda: CommunicationRow(model=3, machine=0, rack=0, network=0, gradient_mb=1, layers=1, skew=1),
            "model",
        ),
    ],
)
def test_bad_arguments_are_refused(call, field):
    with pytest.raises(InvalidInput) as error:
        call()
    assert error.value.field == field


def test_a_model_that_is_missing_is_named_with_the_nearest():
    with pytest.raises(InvalidInput, match="VGG11"):
        TABLE.row("VGG-11")
