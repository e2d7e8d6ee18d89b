"""`equipoise tune`: searches for configurations of policies that suit the jobs of a trace."""

from __future__ import annotations

import typer

from .delays import tune_delays
from .wfq import tune_wfq

tune_app = typer.Typer(
    help="Search for configurations of policies.", no_args_is_help=False, add_completion=False, rich_markup_mode=None
)
tune_app.command("wfq")(tune_wfq)
tune_app.command("delays")(tune_delays)
