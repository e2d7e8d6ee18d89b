"""The folder of traces and recorded results that may lie beside the repository; tests that need it skip without it."""

from pathlib import Path

DATA = Path(__file__).resolve().parents[3] / "shared" / "data"
SHOCKWAVE = DATA / "shockwave"
