"""Taillard's sixty open-shop instances, from the published generator and seeds, with their optima."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...formulations.makespan.open_shop.problem import OpenShop

# X' = 16807 X mod (2^31 - 1), the "minimal standard" that the paper takes (Bratley, Fox and Schrage 1983).
FACTOR, MODULUS = 16807, 2**31 - 1
SHORTEST, LONGEST = 1, 99
#: Jobs (= machines) -> seeds of the times and of the machines, of instances 1 to 10.
SEEDS: dict[int, tuple[tuple[int, int], ...]] = {
    4: (
        (1166510396, 164000672), (1624514147, 1076870026), (1116611914, 1729673136), (410579806, 1453014524),
        (1036100146, 375655500), (597897640, 322140729), (1268670769, 556009645), (307928077, 421384574),
        (667545295, 485515899), (35780816, 492238933),
    ),
    5: (
        (527556884, 1343124817), (1046824493, 1973406531), (1165033492, 86711717), (476292817, 24463110),
        (1181363416, 606981348), (897739730, 513119113), (577107303, 2046387124), (1714191910, 1928475945),
        (1813128617, 2091141708), (808919936, 183753764),
    ),
    7: (
        (1840686215, 1827454623), (1026771938, 1312166461), (609471574, 670843185), (1022295947, 398226875),
        (1513073047, 1250759651), (1612211197, 95606345), (435024109, 1118234860), (1760865440, 1099909092),
        (122574075, 10979313), (248031774, 1685251301),
    ),
    10: (
        (1344106948, 1868311537), (425990073, 1111853152), (666128954, 1750328066), (442723456, 1369177184),
        (2033800800, 1344077538), (964467313, 1735817385), (1004528509, 967002400), (1667495107, 818777384),
        (1806968543, 1561913259), (938376228, 344628625),
    ),
    15: (
        (1561423441, 1787167667), (204120997, 213027331), (801158374, 1812110433), (1502847623, 1527847153),
        (282791231, 1855451778), (1130361878, 849417380), (379464508, 944419714), (1760142791, 1955448160),
        (1993140927, 179408412), (1678386613, 1567160817),
    ),
    20: (
        (957638, 9237185), (162587311, 1489531109), (965299017, 1054695706), (1158457671, 1499999517),
        (1191143707, 1530757746), (1826671743, 901609771), (1591533998, 1146547719), (937297777, 92726463),
        (687896268, 1731298717), (687034842, 684013066),
    ),
}  # fmt: skip
#: Jobs -> optimal makespans; from 7 x 7 on they are the most work of one job or machine.
OPTIMA: dict[int, tuple[int, ...]] = {
    4: (193, 236, 271, 250, 295, 189, 201, 217, 261, 217),
    5: (300, 262, 323, 310, 326, 312, 303, 300, 353, 326),
    7: (435, 443, 468, 463, 416, 451, 422, 424, 458, 398),
    10: (637, 588, 598, 577, 640, 538, 616, 595, 595, 596),
    15: (937, 918, 871, 934, 946, 933, 891, 893, 899, 902),
    20: (1155, 1241, 1257, 1248, 1256, 1204, 1294, 1169, 1289, 1241),
}


@dataclass(frozen=True)
class TaillardInstance:
    """One of the instances: its number counts from 1 within its size."""

    size: int
    number: int

    @property
    def name(self) -> str:
        """As the literature calls it, "tai10_3"."""
        return f"tai{self.size}_{self.number}"

    @property
    def optimum(self) -> int:
        """The shortest makespan without preemption."""
        return OPTIMA[self.size][self.number - 1]

    def shop(self) -> OpenShop:
        """Return the instance as a problem."""
        return OpenShop(open_shop_times(self.size, *SEEDS[self.size][self.number - 1]).astype(np.float64))


def taillard_instances(sizes: tuple[int, ...] = tuple(SEEDS)) -> Iterator[TaillardInstance]:
    """Yield the instances of these sizes."""
    for size in sizes:
        for number in range(1, len(SEEDS[size]) + 1):
            yield TaillardInstance(size, number)


def open_shop_times(size: int, time_seed: int, machine_seed: int) -> NDArray[np.int64]:
    """Return the times of a square instance, shape (jobs, machines), as Taillard's algorithm draws them.

    The times d_ij are drawn first, job by job; the machine of the j-th of them is entry j of a permutation of the job's
    own, made by exchanges with later entries. E. Taillard, "Benchmarks for basic scheduling problems", European Journal
    of Operational Research 64, 1993, Sections 2 and 5.
    """
    draw = _uniform(time_seed)
    lengths = [[draw(SHORTEST, LONGEST) for _ in range(size)] for _ in range(size)]
    draw = _uniform(machine_seed)
    times = np.zeros((size, size), dtype=np.int64)
    for i in range(size):
        machines = list(range(size))
        for j in range(size):
            other = draw(j, size - 1)
            machines[j], machines[other] = machines[other], machines[j]
        times[i, machines] = lengths[i]
    return times


def _uniform(seed: int) -> Callable[[int, int], int]:
    """Return a function that draws whole numbers from an interval, ends included."""
    state = seed

    def draw(low: int, high: int) -> int:
        nonlocal state
        state = FACTOR * state % MODULUS
        return low + int(state / MODULUS * (high - low + 1))

    return draw
