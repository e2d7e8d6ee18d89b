from .certificates.certify import (
    budget_clearing,
    certify,
    duality_gap,
    feasibility,
    market_clearing,
    optimal_spending,
    price_total,
)
from .certificates.check_result import Certificate, CheckResult, Witness
from .certificates.efficiency import maximal_nash_welfare, pareto_optimality
from .certificates.fairness import envy_freeness, finish_time_fairness_product, proportionality, sharing_incentive
from .contract.suite import check_backend
from .exact.certificate import exact_certificate
from .instances.markets import random_fisher_market
from .instances.taillard import TaillardInstance
from .instances.window import random_window
from .statements.verify import verify
from .theorems.catalogue import prove

__all__ = [
    "Certificate",
    "CheckResult",
    "TaillardInstance",
    "Witness",
    "budget_clearing",
    "certify",
    "check_backend",
    "duality_gap",
    "envy_freeness",
    "exact_certificate",
    "feasibility",
    "finish_time_fairness_product",
    "market_clearing",
    "maximal_nash_welfare",
    "optimal_spending",
    "pareto_optimality",
    "price_total",
    "proportionality",
    "prove",
    "random_fisher_market",
    "random_window",
    "sharing_incentive",
    "verify",
]
