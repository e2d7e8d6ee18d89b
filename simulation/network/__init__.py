"""Communication of jobs over tiers of a network, as speeds of the placement engine: measured, modelled or penalties."""

from .communication_table import TIERS, CommunicationRow, CommunicationTable
from .penalty_speeds import PenaltySpeeds
from .ratio_speeds import RatioSpeeds
from .table_speeds import TableSpeeds

__all__ = [
    "TIERS",
    "CommunicationRow",
    "CommunicationTable",
    "PenaltySpeeds",
    "RatioSpeeds",
    "TableSpeeds",
]
