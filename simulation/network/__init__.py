"""Communication of jobs over tiers of a network, as speeds of the placement engine: measured, modelled or penalties."""

from .all_reduce_speeds import AllReduceSpeeds
from .calibration import CalibratedModel, calibrate
from .communication_table import TIERS, CommunicationRow, CommunicationTable
from .dimension import ALGORITHMS, TOPOLOGIES, Dimension
from .gradients import exposed_s, layer_bytes, layer_times_s, ready_shares
from .interconnect import SCHEMES, Network
from .penalty_speeds import PenaltySpeeds
from .ratio_speeds import RatioSpeeds
from .table_speeds import TableSpeeds
from .tier_latencies import placement_at, tier_latencies

__all__ = [
    "ALGORITHMS",
    "SCHEMES",
    "TIERS",
    "TOPOLOGIES",
    "AllReduceSpeeds",
    "CalibratedModel",
    "CommunicationRow",
    "CommunicationTable",
    "Dimension",
    "Network",
    "PenaltySpeeds",
    "RatioSpeeds",
    "TableSpeeds",
    "calibrate",
    "exposed_s",
    "layer_bytes",
    "layer_times_s",
    "placement_at",
    "ready_shares",
    "tier_latencies",
]
