"""The placement engine against a second one in exact fractions: starts, ends, GPUs, preemptions and sums."""

import math
from dataclasses import replace
from fractions import Fraction
from itertools import count
from random import Random

import exact_gandiva
import exact_placement as exact
import exact_sharing
import exact_tiresias
import pytest
from hypothesis import settings

from equipoise.heuristics.placement.gandiva import GandivaPolicy
from equipoise.heuristics.placement.lucid import LucidPolicy
from equipoise.heuristics.placement.queue import FifoPolicy, SjfPolicy, SrtfPolicy
from equipoise.heuristics.placement.service_distribution import ServiceDistribution
from equipoise.heuristics.placement.sjf_sharing import SjfBsbfPolicy, SjfFfsPolicy
from equipoise.heuristics.placement.tiresias import TiresiasGittinsPolicy, TiresiasPolicy
from equipoise.simulation import Cluster, Trace
from equipoise.simulation.placement import (
    PLACEMENTS,
    DurationSpeeds,
    ModelSpeeds,
    ModelTable,
    Move,
    PlacementRules,
    Start,
    Stop,
    Wake,
    simulate_placement,
)

MODELS = ("a", "b", "c")
TICK = exact.TICK


def cases():
    """Cases of each policy: 2,000 with the profile `explore`, as in `make verify-full`; 100 in CI, else 20."""
    return max(20, settings().max_examples)


def drawn_rate(seed):
    """Return rational speeds that depend on all that a `Running` states."""

    def rate(run):
        draw = Random(f"{seed} rate {run[1:]}")
        return Fraction(draw.randint(1, 9), draw.randint(1, 9))

    return rate


def drawn_share(seed):
    return lambda run: Fraction(Random(f"{seed} share {run[1:]}").randint(0, 5), 5)


def drawn_ratio(seed):
    """Return the largest of the ratios of the pairs."""

    def ratio(mine, others):
        return max(
            1 + Fraction(Random(f"{seed} ratio {mine[1]} {mine.sub_batch} {other[1]} {other[3]}").randint(0, 8), 4)
            for other in others
        )

    return ratio


class RationalSpeeds:
    """The same speeds for the engine, rounded to floats."""

    def __init__(self, work, rate, exposed):
        self._work, self._rate, self._exposed = [float(value) for value in work], rate, exposed

    def work(self, trace):
        return self._work

    def rate(self, run):
        return float(self._rate(run))

    def exposed(self, run):
        return float(self._exposed(run))


class RationalModelSpeeds(RationalSpeeds, ModelSpeeds):
    """The same with a table of models, of which the memory of workers counts."""

    def __init__(self, table, work, rate, exposed):
        RationalSpeeds.__init__(self, work, rate, exposed)
        self.table = table


class RationalInterference:
    def __init__(self, ratio):
        self._ratio = ratio

    def ratio(self, mine, others):
        return float(self._ratio(mine, others))


class Drawn:
    """Random feasible actions on shared GPUs with leases in the first calls; then every job runs to its end."""

    name, knows = "drawn", frozenset()

    def __init__(self, seed, jobs_per_gpu):
        self.seed, self.most, self.calls = seed, jobs_per_gpu, 0

    def decide(self, state):
        self.calls += 1
        draw, drawing = Random(f"{self.seed} call {self.calls}"), self.calls <= 20
        for job in state.expired:
            if not drawing or draw.random() < 0.6:
                lease_s = self.lease_s(draw) if drawing else math.inf
                yield Start(job.trace_index, job.gpu_ids, lease_s=lease_s)
        if drawing:
            for _ in range(draw.randint(0, 4)):
                yield from self.action(state, draw)
            yield Wake(state.time_s + Fraction(draw.randint(1, 30), draw.randint(1, 4)))
        else:
            for index in sorted(state.waiting):
                usable = self.usable(state)
                if usable:
                    gang = state.waiting[index].gang_gpus
                    yield Start(index, tuple(usable[: min(gang, len(usable))]))

    def action(self, state, draw):
        """Start, stop or move a job, whichever is feasible."""
        index = draw.choice([*range(8), *sorted(state.waiting), *sorted(state.waiting)])
        if index in state.running and draw.random() < 0.4:
            yield Stop(index)
        elif index in state.running or index in state.waiting:
            usable = self.usable(state, index)
            if usable:
                draw.shuffle(usable)
                gpu_ids = tuple(usable[: draw.randint(1, len(usable))])
                batch = draw.choice([None, None, 2, 4])
                part = draw.choice([None, None, 1])
                kind = Move if index in state.running else Start
                yield kind(index, gpu_ids, batch, part, self.lease_s(draw))

    def usable(self, state, index=None):
        """Return the GPUs with fewer jobs than C; those of this job do not count."""
        return [g for g, jobs in enumerate(state.gpus.jobs_on) if len(set(jobs) - {index}) < self.most]

    def lease_s(self, draw):
        return draw.choice([math.inf, Fraction(draw.randint(1, 24), draw.randint(1, 4))])


class Case:
    """Random jobs on a random cluster, with the costs and speeds of both engines."""

    def __init__(self, seed):
        draw = Random(f"{seed} case")
        self.machines = draw.randint(1, 4)
        self.size = draw.randint(1, 8 // self.machines)
        self.racks = draw.choice([1, 2]) if self.machines % 2 == 0 else 1
        self.gpus = self.machines * self.size
        count, parts = draw.randint(1, 8), draw.choice([[1], [1, 2], [1, 2, 3, 5, 7]])
        self.gangs = [draw.randint(1, self.gpus) for _ in range(count)]
        self.work = [Fraction(draw.randint(1, 40), draw.choice(parts)) for _ in range(count)]
        self.models = [draw.choice(MODELS) for _ in range(count)]
        self.batches = [draw.randint(1, 2) for _ in range(count)]
        self.arrivals = []
        for _ in range(count):
            other = draw.choice(self.arrivals or [Fraction(0)])
            new = Fraction(draw.randint(0, 60), draw.choice(parts))
            # Arrivals within a tick are one event; those of a little more are two.
            self.arrivals.append(draw.choice([new, new, new, other, other + TICK * 3 / 5, other + TICK * 6 / 5]))
        self.checkpoint_s = draw.choice([Fraction(0), Fraction(1, 3), Fraction(2), Fraction(9, 2)])
        self.restart_s = draw.choice([Fraction(0), Fraction(1, 2), Fraction(7, 3), Fraction(10)])
        self.jobs_per_gpu = draw.randint(1, 3)
        self.placement, self.backfill = draw.choice(PLACEMENTS), draw.random() < 0.5
        self.slowdown = Fraction(draw.randint(4, 12), 4)
        self.scores = {model: draw.randint(0, 2) for model in MODELS if draw.random() < 0.7}
        self.default_score, self.capacity = draw.randint(0, 2), draw.randint(0, 3)
        self.ratio, self.share = drawn_ratio(seed), drawn_share(seed)
        self.rate = drawn_rate(seed)
        limits = {Fraction(draw.randint(1, 60), draw.choice([1, 1, 2, 3])) for _ in range(draw.randint(1, 3))}
        self.thresholds = sorted(limits)
        self.promote = draw.choice([None, Fraction(1, 3), Fraction(1), Fraction(5, 2)])
        self.skew, self.skew_threshold = {"a": Fraction(9, 10), "b": Fraction(1, 4)}, draw.choice([Fraction(1, 2), 1])
        values = [Fraction(draw.randint(1, 150), draw.choice(parts)) for _ in range(draw.randint(1, 5))]
        self.service = ServiceDistribution(values, [draw.randint(1, 5) for _ in values])
        # A slice lasts longer than it takes to suspend and resume a job, so that all jobs make progress.
        self.quantum_s = self.checkpoint_s + self.restart_s + Fraction(draw.randint(1, 40), 2)
        self.utilization = {model: Fraction(draw.randint(0, 8), 8) for model in MODELS if draw.random() < 0.7}
        self.defragment = Fraction(draw.randint(0, 4), 4)
        self.adaptive = [model for model in MODELS if draw.random() < 0.5] if draw.random() < 0.8 else []
        self.grow_after_s = Fraction(draw.randint(1, 60), draw.choice([1, 3, 9]))

    worker_gb = None

    def rational_speeds(self):
        return RationalSpeeds(self.work, self.rate, self.share)

    def by_durations(self):
        """Replace the drawn speeds with those of `DurationSpeeds`."""
        self.share = lambda run: Fraction(0)
        self.rate = lambda run: 1 / self.slowdown if run.machines > run.fewest_machines else Fraction(1)
        return DurationSpeeds(float(self.slowdown))

    def engine(self, policy, durations):
        trace = Trace(
            job_id=list(range(len(self.gangs))), model=self.models, gang_gpus=self.gangs, batch_size=self.batches,
            arrival_s=[float(time_s) for time_s in self.arrivals], duration_s=[float(work) for work in self.work],
        )  # fmt: skip
        if self.machines == 1 and len(self.gangs) % 2:
            cluster = Cluster(gpus_by_type={"gpu": self.gpus})
        else:
            cluster = Cluster(gpus_by_type={"gpu": self.gpus}, machines=self.machines, racks=self.racks)
        rules = PlacementRules(
            jobs_per_gpu=self.jobs_per_gpu, checkpoint_s=float(self.checkpoint_s), restart_s=float(self.restart_s)
        )
        speeds = self.by_durations() if durations else self.rational_speeds()
        return simulate_placement(
            trace, policy, cluster=cluster, speeds=speeds, rules=rules, interference=RationalInterference(self.ratio)
        )

    def reference(self, policy):
        rows = zip(self.models, self.gangs, self.batches, self.arrivals, self.work, strict=True)
        return exact.ExactSimulation(
            [exact.ExactJob(index, *row) for index, row in enumerate(rows)], policy,
            gpus=self.gpus, size=self.size, per_rack=self.machines // self.racks, rate=self.rate, exposed=self.share,
            ratio=self.ratio, checkpoint_s=self.checkpoint_s, restart_s=self.restart_s,
            jobs_per_gpu=self.jobs_per_gpu, worker_gb=self.worker_gb,
        ).simulate()  # fmt: skip


class CrowdedCase(Case):
    """More and smaller jobs on several small machines, so that every rule of gandiva applies in many cases."""

    def __init__(self, seed):
        super().__init__(seed)
        draw = Random(f"{seed} crowded")
        self.machines, self.racks = draw.choice([(1, 1), (2, 1), (2, 2), (3, 1), (4, 1), (4, 2)])
        self.size = draw.choice([2, 3, 4, 4, 6])
        self.gpus = self.machines * self.size
        few = [draw.randint(1, self.size) for _ in range(2)]
        gangs = [*draw.choice([few, range(1, self.size + 1)]), draw.randint(1, self.gpus)]
        count, last = draw.randint(4, 16), draw.choice([1, 20, 60, 200])
        waves = [0, draw.choice([0, 100, 300])]
        self.gangs = [draw.choice([*draw.choice([few, [1, 2, 2]]), *gangs]) for _ in range(count)]
        self.work = [
            Fraction(draw.choice([20, 40, 200]) + draw.randint(0, 40), draw.randint(1, 9)) for _ in range(count)
        ]
        self.models = [draw.choice(MODELS) for _ in range(count)]
        self.batches = [draw.randint(1, 2) for _ in range(count)]
        late = [Fraction(0), Fraction(0), TICK * 3 / 5, TICK * 6 / 5]
        self.arrivals = [
            draw.choice(waves) + Fraction(draw.randint(0, last), draw.randint(1, 3)) + draw.choice(late)
            for _ in range(count)
        ]
        self.jobs_per_gpu = draw.choice([1, 2, 2, 2, 3])


class SharingCase(CrowdedCase):
    """Crowded cases whose jobs can share: memory, sub-batches of up to 7 samples, and ratios often equal."""

    def __init__(self, seed):
        super().__init__(seed)
        draw = Random(f"{seed} sharing")
        self.batches = [draw.choice([1, 2, 4, 5, 7]) for _ in self.gangs]
        self.gpu_memory_gb, self.order = draw.choice([8.0, 12.0, 16.0]), draw.choice(["time", "time", "gpus"])
        self.rule = draw.choice(["pair", "pair", "sign"])
        self.count_waiting = self.rule == "pair" and draw.random() < 0.4
        self.memory = {model: (draw.randint(0, 6) / 2, draw.choice([0.25, 0.5, 1.0, 2.0])) for model in MODELS}
        slower, steps, rate = Fraction(draw.randint(0, 4), 8), draw.choice([2, 4, 8]), self.rate

        def rate_by_parts(run):
            # Sub-batches make an iteration longer; five make it shorter, which does not count in the choice.
            parts = math.ceil(Fraction(run.batch_size, run.sub_batch))
            longer = slower * (parts - 1) if parts != 5 else -slower / 2
            return rate(run._replace(sub_batch=run.batch_size)) / (1 + longer)

        self.rate = rate_by_parts
        constant = 1 + Fraction(draw.randint(0, 9), 10) if draw.random() < 0.4 else None

        def pair_ratio(mine, other):
            names = (mine.model, mine.sub_batch, mine.machines, other.model, other.gpus, other.sub_batch)
            return constant or 1 + Fraction(Random(f"{seed} ratio {names}").randint(0, 8), steps)

        self.ratio = lambda mine, others: max(pair_ratio(mine, other) for other in others)

    def worker_gb(self, model, samples):
        fixed, by_sample = self.memory[model]
        return Fraction(fixed) + Fraction(by_sample) * samples

    def rational_speeds(self):
        known = replace(ModelTable.builtin().row("bert"), min_gpu_batch=1, memory_source="drawn")
        rows = [
            replace(known, model=model, memory_gb=fixed, memory_gb_per_sample=by_sample)
            for model, (fixed, by_sample) in self.memory.items()
        ]
        return RationalModelSpeeds(ModelTable(rows), self.work, self.rate, self.share)

    def by_durations(self):
        self.worker_gb = None
        return super().by_durations()


class GrownPartnerCase(Case):
    """A slice ends on machine 0, and its job 0 is packed with job 2, which has grown to all of machine 1."""

    def __init__(self):
        super().__init__("grown partner")
        self.machines, self.racks, self.size, self.gpus = 2, 1, 3, 6
        self.gangs, self.models, self.batches = [2, 1, 2, 1, 2], ["a", "b", "c", "b", "b"], [1] * 5
        self.work = [Fraction(seconds) for seconds in (100, 10, 400, 100, 100)]
        self.arrivals = [Fraction(seconds) for seconds in (0, 1, 2, 3, 40)]
        self.rate, self.ratio = lambda run: Fraction(run.gpus, run.gang_gpus), lambda mine, others: Fraction(3, 2)
        self.jobs_per_gpu, self.quantum_s, self.grow_after_s = 2, Fraction(15), Fraction(20)
        self.utilization, self.defragment, self.adaptive = {"a": Fraction(1, 2)}, Fraction(1), ["c"]


def assert_same(found, wanted):
    """Compare all columns; times to 1e-9, numbers exactly."""
    jobs = wanted.all
    for name in ("restarts", "preemptions", "moves", "machines", "tier"):
        assert getattr(found, name).tolist() == [getattr(job, name) for job in jobs], name
    for name in ("start_s", "end_s", "run_s", "gpu_s", "held_s", "shared_gpu_s", "exposed_s"):
        values = [float(getattr(job, name)) for job in jobs]
        # A sum of differences of times is exact to the rounding of the times.
        assert getattr(found, name).tolist() == pytest.approx(values, rel=1e-9, abs=1e-10), name
    rows = found.stretches
    stretches = sorted(
        zip(rows.trace_index.tolist(), rows.start_s.tolist(), rows.end_s.tolist(), map(tuple, rows.ids()), strict=True)
    )
    expected = sorted(wanted.stretches)
    assert [(row[0], row[3]) for row in stretches] == [(row[0], row[3]) for row in expected]
    for place in (1, 2):
        times = [float(row[place]) for row in expected]
        assert [row[place] for row in stretches] == pytest.approx(times, rel=1e-9, abs=1e-10)
    calls = [float(time_s) for time_s in wanted.calls]
    assert [call.time_s for call in found.solve_rows] == pytest.approx(calls, rel=1e-9)


TIRESIAS = ("thresholds", "promote", "skew", "skew_threshold")
GANDIVA = ("quantum_s", "utilization", "defragment", "adaptive", "grow_after_s")
SHARING = ("gpu_memory_gb", "order", "placement")
POLICIES = {
    "fifo": (FifoPolicy, exact.fifo, ("backfill", "placement")),
    "sjf": (SjfPolicy, exact.sjf, ("backfill", "placement")),
    "srtf": (SrtfPolicy, exact.srtf, ("placement",)),
    "lucid": (LucidPolicy, exact.lucid, ("scores", "default_score", "capacity", "placement")),
    "sjf-ffs": (SjfFfsPolicy, exact_sharing.sjf_ffs, SHARING),
    "sjf-bsbf": (SjfBsbfPolicy, exact_sharing.sjf_bsbf, (*SHARING, "rule", "count_waiting")),
    "tiresias": (TiresiasPolicy, exact_tiresias.tiresias, TIRESIAS),
    "tiresias-gittins": (TiresiasGittinsPolicy, exact_tiresias.tiresias_gittins, (*TIRESIAS, "service")),
    "gandiva": (GandivaPolicy, exact_gandiva.gandiva, GANDIVA),
}
CASES = {"sjf-ffs": SharingCase, "sjf-bsbf": SharingCase, "gandiva": CrowdedCase}


@pytest.mark.parametrize("name", POLICIES)
def test_policies_agree_with_the_reference(name):
    tested, plain, fields = POLICIES[name]
    compared = 0
    for number in count():
        case = CASES.get(name, Case)(f"{name} {number}")
        options = {field: getattr(case, field) for field in fields}
        # Durations are known on gangs alone, on which adaptive jobs do not stay.
        durations = number % 2 and not options.get("adaptive")
        found, reference = case.engine(tested(**options), durations), plain(**options)
        wanted = case.reference(reference)
        if getattr(reference, "amplification", 1) > 10**12:
            continue  # the rounding errors of the engine's floats would grow to seconds
        assert_same(found, wanted)
        compared += 1
        if compared == cases():
            break
    assert number < 1.1 * cases()


def test_random_actions_agree_with_the_reference():
    shared = moved = 0
    for number in range(cases()):
        case = Case(f"drawn {number}")
        case.jobs_per_gpu = 2 if number % 4 else 3
        found = case.engine(Drawn(number, case.jobs_per_gpu), durations=False)
        assert_same(found, case.reference(Drawn(number, case.jobs_per_gpu).decide))
        shared += found.shared_gpu_s.any()
        moved += found.moves.any()
    # The cases try what they are for.
    assert min(shared, moved) > cases() / 4


@pytest.mark.thorough
def test_crowded_cases_try_every_rule_of_gandiva():
    placing, migrating = {f"1.{rule}" for rule in range(1, 7)}, {f"2.{rule}" for rule in range(1, 5)}
    untried = placing | migrating | {"3", "4", "grow", "shrink"}
    for number in range(100):
        if untried:
            case = CrowdedCase(f"gandiva {number}")
            plain = exact_gandiva.gandiva(*(getattr(case, field) for field in GANDIVA))
            case.reference(plain)
            untried -= {rule for rule, times in plain.fired.items() if times}
    assert not untried


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["sjf-ffs", "sjf-bsbf"])
def test_sharing_cases_try_what_they_are_for(name):
    spans, parts, gains = [], [], []
    for number in range(60):
        case = SharingCase(f"{name} {number}")
        _, plain, fields = POLICIES[name]
        decide = plain(**{field: getattr(case, field) for field in fields})
        case.reference(decide)
        spans, parts, gains = spans + decide.spans, parts + decide.parts, gains + decide.gains
    assert sum(count > 1 for count in spans) > 10
    assert sum(parts) > 10
    assert len(gains) / 10 < sum(gains) < 9 * len(gains) / 10


def test_a_grown_job_shrinks_for_the_job_that_is_packed_with_it():
    case = GrownPartnerCase()
    options = {field: getattr(case, field) for field in GANDIVA}
    wanted = case.reference(exact_gandiva.gandiva(**options))
    assert_same(case.engine(GandivaPolicy(**options), durations=False), wanted)
    held = [(start_s, gpu_ids) for index, start_s, _, gpu_ids in wanted.stretches if index == 2]
    assert held[:3] == [(2, (4, 5)), (31, (3, 4, 5)), (55, (3, 4))]
    assert (0, 55, (3, 4)) in [(index, start_s, gpu_ids) for index, start_s, _, gpu_ids in wanted.stretches]
