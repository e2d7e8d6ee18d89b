"""StochasticMarket: its four programs against exhaustion, theory and one another."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from enumerated_policies import best_deterministic, mixing_program, outcomes
from examples import fewer
from hypothesis import given
from hypothesis import strategies as st

import equipoise as eq
from equipoise.validation.strategies.stochastic import stochastic_markets

GAP = 1e-6
# Rows may be broken by feasibility_tol = 1e-6 of a capacity, which is worth at most so much per unit of budget here.
SLACK = 1e-5
IDLE = [[1.0]]
FEWER = fewer(4)  # several programs to each example


def still(utilities, demands=None):
    """A job of one state, its actions worth `utilities`."""
    demands = range(len(utilities)) if demands is None else demands
    return eq.JobChain(
        initial=[1.0], transitions=[IDLE] * len(utilities), utilities=[[u] for u in utilities], demands=list(demands)
    )


def market_of(chains, capacities=1.0, rounds=1, budgets=None):
    budgets = np.ones(len(chains)) if budgets is None else budgets
    return eq.StochasticMarket(chains=chains, budgets=budgets, capacities=capacities, rounds=rounds)


def solved(market, form="decoupled", **options):
    result = eq.solve(market, form=form, rel_gap=GAP, **options)
    assert result.termination.reason is eq.Reason.OPTIMAL, result.termination
    return result


def assert_same_optimum(first, second, shift=0.0, factor=1.0):
    """Each bound holds for the other's plan, once the first market's values are scaled and shifted."""
    slack = SLACK * max(1.0, abs(second.objective))
    assert first.objective * factor + shift <= second.bound + slack
    assert second.objective <= first.bound * factor + shift + slack


def rebuilt(market, chains=None, **changes):
    """The market with other chains or fields."""
    return replace(market, chains=market.chains if chains is None else tuple(chains), **changes)


def changed(chain, **fields):
    return replace(chain, **fields)


# -- Exhaustion --------------------------------------------------------------------------------------------------------


@pytest.mark.thorough
@FEWER
@given(stochastic_markets(max_actions=2, max_resources=2, certain_start=True))
def test_every_form_has_the_optimum_that_exhaustion_finds(market):
    for form in ("joint", "decoupled"):
        oracle = solved(mixing_program(market, form), form="matrix", backend="highs")
        assert_same_optimum(solved(market, form), oracle)
    for form in ("joint-deterministic", "decoupled-deterministic"):
        known, found = best_deterministic(market, form), eq.solve(market, form=form, rel_gap=GAP)
        if known == -np.inf:
            assert found.termination.reason is eq.Reason.INFEASIBLE
        else:
            assert found.termination.reason is eq.Reason.OPTIMAL, found.termination
            assert found.objective == pytest.approx(known, abs=SLACK)
            assert found.plan.is_deterministic


def test_exhaustion_finds_the_outcomes_that_a_hand_finds():
    chain = eq.JobChain(
        initial=[1, 0], transitions=[np.eye(2), [[0.5, 0.5], [0, 1]]], utilities=[[0, 0], [1, 4]], demands=[0, 1]
    )
    found = outcomes([chain], np.ones((1, 2)))
    # (utility, use of round 1, use of round 2): idle; later; first; first and then in one state or the other or both.
    known = [(0, 0, 0), (1, 0, 1), (1, 1, 0), (1.5, 1, 0.5), (3, 1, 0.5), (3.5, 1, 1)]
    assert [tuple(row) for row in found] == known


@pytest.mark.thorough
@FEWER
@given(stochastic_markets())
def test_a_relaxation_is_never_worse_than_what_it_relaxes(market):
    decoupled, joint = solved(market), solved(market, "joint")
    assert joint.objective <= decoupled.bound + SLACK
    pure = eq.solve(market, form="joint-deterministic", rel_gap=1e-4)
    if pure.plan is not None:
        assert pure.objective <= joint.bound + SLACK
    own = eq.solve(market, form="decoupled-deterministic", rel_gap=1e-4)
    if own.plan is not None:
        assert own.objective <= decoupled.bound + SLACK


def test_the_relaxation_can_be_strictly_better():
    # One GPU and two rounds, certain jobs: expectations may trade a risk of idling for one of running both at once.
    lucky = eq.JobChain(
        initial=[0.5, 0.5], transitions=[np.eye(2), np.eye(2)], utilities=[[0, 0], [0, 2]], demands=[0, 1]
    )
    market = market_of([lucky, lucky])
    decoupled, joint = solved(market), solved(market, "joint")
    atol = 2.0 * GAP**0.5  # at a gap of GAP in the logarithms
    np.testing.assert_allclose(decoupled.plan.utilities, 1.0, atol=atol)  # both run when worth it
    np.testing.assert_allclose(joint.plan.utilities, 0.75, atol=atol)  # they meet in one run out of four, and share it
    assert decoupled.objective > joint.bound + 0.5


def test_one_job_alone_gets_the_best_it_could_have_in_every_form():
    chain = eq.JobChain.from_regimes(
        epochs=3, epochs_per_round=[[0, 1, 1.5], [0, 2, 2.5]], change_probability=0.5, demands=[0, 1, 2]
    )
    market = market_of([chain], capacities=[2, 1, 2], rounds=3)
    for form in market.forms:
        plan = solved(market, form).plan
        np.testing.assert_allclose(plan.utilities, market.best_alone, rtol=1e-6)
        np.testing.assert_allclose(plan.shares, 1.0, rtol=1e-6)


# -- The paper's program -----------------------------------------------------------------------------------------------


def equation_6(market):
    """Eq. 6 of Appendix F entry by entry: pi_t(s, x) over all jobs' states and actions, T one more than the rounds."""
    chains, last = market.chains, market.rounds + 1
    states = list(itertools.product(*(range(chain.num_states) for chain in chains)))
    actions = list(itertools.product(*(range(chain.num_actions) for chain in chains)))
    capacities = np.hstack([market.capacities, market.capacities[:, -1:]])  # of round T, in which nothing is earned
    use = np.array([sum(chain.demands[a] for chain, a in zip(chains, x, strict=True)) for x in actions])
    fits = (use[None] <= capacities.T[:, None] + 1e-9).all(axis=2)
    build = eq.ProgramBuilder(sense="max")
    pi = build.add_columns("pi", (last, len(states), len(actions)), upper=fits[:, None, :].astype(float))

    def chance(s, x, z):
        return np.prod([chain.transitions[a, i, k] for chain, a, i, k in zip(chains, x, s, z, strict=True)])

    start = [np.prod([chain.initial[i] for chain, i in zip(chains, s, strict=True)]) for s in states]
    build.add_rows(
        "start", (len(states),), terms=[(np.arange(len(states))[:, None], pi[0], 1.0)], lower=start, upper=start
    )
    flow = [(t * len(states) + z, pi[t + 1, z], 1.0) for t in range(last - 1) for z in range(len(states))]
    for t, (place, s), (choice, x), (z, there) in itertools.product(
        range(last - 1), enumerate(states), enumerate(actions), enumerate(states)
    ):
        flow.append((t * len(states) + z, pi[t, place, choice], -chance(s, x, there)))
    build.add_rows("flow", ((last - 1) * len(states),), terms=flow, lower=0.0, upper=0.0)
    inside = [
        (job, pi[t, place, choice], chain.utilities[x[job], s[job]])
        for t, (place, s), (choice, x) in itertools.product(range(last - 1), enumerate(states), enumerate(actions))
        for job, chain in enumerate(chains)
    ]
    build.add_logs(market.budgets, terms=inside)
    return build.program(gap_unit=market.total_budget)


@FEWER
@given(stochastic_markets(max_actions=2, max_resources=2))
def test_the_joint_form_is_equation_6_with_one_round_less(market):
    printed = eq.solve(equation_6(market), rel_gap=GAP)
    assert printed.termination.reason is eq.Reason.OPTIMAL, printed.termination
    assert_same_optimum(printed, solved(market, "joint"))


def test_equation_6_is_not_the_decoupled_form_and_pays_nothing_in_its_last_round():
    lucky = eq.JobChain(
        initial=[0.5, 0.5], transitions=[np.eye(2), np.eye(2)], utilities=[[0, 0], [0, 2]], demands=[0, 1]
    )
    printed = eq.solve(equation_6(market_of([lucky, lucky])), rel_gap=GAP)
    assert printed.objective == pytest.approx(2 * np.log(0.75), abs=1e-5)  # the decoupled optimum is 0
    # Three rounds of pi, of which two earn 1 each.
    alone = eq.solve(equation_6(market_of([still([0, 1])], rounds=2)), rel_gap=GAP)
    assert len(alone.plan["pi"]) == 3
    assert alone.objective == pytest.approx(np.log(2), abs=1e-6)


# -- The paper's example -----------------------------------------------------------------------------------------------


def test_two_jobs_and_one_unit_get_half_each_by_lot_and_nothing_without():
    market = market_of([still([0, 1])] * 2)
    for form in ("decoupled", "joint"):
        result = solved(market, form)
        np.testing.assert_allclose(result.plan.utilities, 0.5, atol=1e-3)
        assert result.objective == pytest.approx(2 * np.log(0.5), abs=1e-6)
    for form in ("decoupled-deterministic", "joint-deterministic"):
        result = eq.solve(market, form=form)
        assert result.termination.reason is eq.Reason.INFEASIBLE
        assert "every log argument above 0" in result.termination.message
        assert result.plan is None
        assert result.bound == -np.inf


def test_the_decoupled_prices_are_the_worth_of_one_more_unit():
    plan = solved(market_of([still([0, 1])] * 2)).plan
    np.testing.assert_allclose(plan.prices, [[2.0]], rtol=1e-3)  # d/dc of 2 log(c/2) at c = 1
    # With room to spare nothing has a price: budgets are not spent, and the plan is no equilibrium.
    plan = solved(market_of([still([0, 1])] * 2, capacities=3)).plan
    np.testing.assert_allclose(plan.prices, 0.0, atol=1e-4)


@given(stochastic_markets(), st.sampled_from([-0.5, -0.25, 0.5]))
def test_prices_say_what_any_other_capacity_would_be_worth_at_most(market, change):
    market = rebuilt(market, capacities=market.capacities + 2.5)  # every action fits, before and after
    result, capacities = solved(market), market.capacities + change
    other = solved(rebuilt(market, capacities=capacities))
    worth = float((result.plan.prices * (capacities - market.capacities)).sum())
    assert other.objective <= result.bound + worth + 1e-4


def test_only_a_decoupled_plan_has_prices():
    market = market_of([still([0, 1])] * 2)
    assert solved(market, "joint").plan.prices is None
    assert market.decode(market.encode(solved(market).plan)).prices is None


# -- Relations ---------------------------------------------------------------------------------------------------------


@given(stochastic_markets(max_jobs=3, max_states=3, max_rounds=3))
def test_what_only_renames_changes_nothing(market):
    before = solved(market)
    order = np.arange(len(market.chains))[::-1]
    permuted = rebuilt(market, [market.chains[i] for i in order], budgets=market.budgets[order])
    assert_same_optimum(before, solved(permuted))
    renamed = []
    for chain in market.chains:
        p = np.roll(np.arange(chain.num_states), 1)
        table = chain.transitions[:, p][:, :, p]
        renamed.append(changed(chain, initial=chain.initial[p], transitions=table, utilities=chain.utilities[:, p]))
    assert_same_optimum(before, solved(rebuilt(market, renamed)))


@pytest.mark.thorough
@FEWER
@given(stochastic_markets())
def test_a_useless_action_and_an_unreachable_state_change_nothing(market):
    bigger = []
    for chain in market.chains:
        A, S = chain.utilities.shape
        transitions = np.zeros((A + 1, S + 1, S + 1))
        transitions[:A, :S, :S], transitions[A, :S, :S] = chain.transitions, chain.transitions[0]
        transitions[:, S, S] = 1.0
        utilities = np.zeros((A + 1, S + 1))
        utilities[:A, :S], utilities[:, S] = chain.utilities, 9.0  # worth a lot, and never reached
        utilities[A, :S] = chain.utilities[0]
        demands = np.vstack([chain.demands, chain.demands.max(axis=0) + 0.5])
        bigger.append(
            eq.JobChain(
                initial=np.append(chain.initial, 0.0), transitions=transitions, utilities=utilities, demands=demands
            )
        )
    for form in ("decoupled", "joint"):
        assert_same_optimum(solved(market, form), solved(rebuilt(market, bigger), form))
    pure = eq.solve(market, form="joint-deterministic")
    again = eq.solve(rebuilt(market, bigger), form="joint-deterministic")
    assert again.termination.reason is pure.termination.reason


@FEWER
@given(stochastic_markets())
def test_units_do_not_matter(market):
    before = solved(market)
    scales = np.array([7.0**i * 1e3 for i in range(len(market.chains))])
    louder = [changed(c, utilities=c.utilities * k) for c, k in zip(market.chains, scales, strict=True)]
    assert_same_optimum(before, solved(rebuilt(market, louder)), shift=float(market.budgets @ np.log(scales)))
    smaller = [changed(c, demands=c.demands / 8) for c in market.chains]
    assert_same_optimum(before, solved(rebuilt(market, smaller, capacities=market.capacities / 8)))
    assert_same_optimum(before, solved(rebuilt(market, budgets=market.budgets * 5)), factor=5.0)


@given(stochastic_markets())
def test_two_copies_of_a_market_side_by_side_are_worth_twice_one(market):
    # Decoupled only: by concavity, copies may as well do the same. Jobs that share a capacity's last unit gain more.
    twice = rebuilt(market, market.chains * 2, budgets=np.tile(market.budgets, 2), capacities=market.capacities * 2)
    fits = [(c.demands[:, None] <= market.capacities.T).all(axis=2).all() for c in market.chains]
    if all(fits):  # otherwise twice the capacity makes new actions available
        assert_same_optimum(solved(market), solved(twice), factor=2.0)
    else:
        assert solved(market).objective * 2 <= solved(twice).bound + SLACK


@FEWER
@given(stochastic_markets())
def test_more_capacity_is_never_worse(market):
    more = rebuilt(market, capacities=market.capacities + 1.0)
    for form in ("decoupled", "joint"):
        assert solved(market, form).objective <= solved(more, form).bound + SLACK


@pytest.mark.parametrize("form", ["decoupled", "joint"])
def test_certain_jobs_and_fine_actions_are_a_volatile_market(form):
    rng = np.random.default_rng(5)
    worth, rounds = rng.integers(1, 9, size=(2, 3)).astype(float), 3
    budgets, capacities = np.array([1.0, 2.0]), np.array([1.0, 2.0, 1.0])
    walk = np.roll(np.eye(rounds), 1, axis=1)  # the state is the round
    # All of the capacity or nothing: lotteries between the two are as fine as any amount.
    chains = [
        eq.JobChain(
            initial=np.eye(rounds)[0],
            transitions=[walk] * 3,
            utilities=[np.zeros(rounds), row, 2 * row],
            demands=[0, 1, 2],
        )
        for row in worth
    ]
    market = eq.StochasticMarket(chains=chains, budgets=budgets, capacities=capacities, rounds=rounds)
    amounts = eq.VolatileFisherMarket(
        utilities=worth[:, None, :], budgets=budgets, capacities=capacities[None], family="linear"
    )
    known = eq.solve(amounts, rel_gap=GAP)
    found = solved(market, form)
    assert_same_optimum(found, known)
    np.testing.assert_allclose(found.plan.utilities, known.plan.utilities, rtol=1e-3)


def test_a_second_resource_binds_as_the_first_does():
    chain = still([0, 1], demands=[[0, 0], [1, 2]])
    market = market_of([chain] * 2, capacities=[[2.0], [2.0]])
    np.testing.assert_allclose(solved(market).plan.utilities, 0.5, atol=1e-3)
    plan = solved(market, "joint").plan
    np.testing.assert_allclose(plan.expected_use, [[1.0], [2.0]], atol=1e-4)


# -- Plans -------------------------------------------------------------------------------------------------------------


@given(stochastic_markets(max_resources=2))
def test_a_plan_carries_its_own_proof(market):
    for form in ("decoupled", "joint"):
        plan = solved(market, form).plan
        assert plan.form == form
        objective, residuals = market.evaluate(plan)
        assert residuals.worst <= 1e-6
        program = market.program(form)
        values = market.encode(plan, form)
        assert program.residuals_at(values).worst <= 1e-6
        assert program.objective_at(values) == pytest.approx(objective, abs=1e-9)
        again = market.decode(values, form=form)
        for one, other in zip(again.occupancy, plan.occupancy, strict=True):
            np.testing.assert_allclose(one, other, atol=1e-9)
        for job in range(len(market.chains)):
            own = plan.job_occupancy(job)
            np.testing.assert_allclose(own.sum(axis=(1, 2)), 1.0, atol=1e-9)
            worth = np.einsum("tsa,as->", own, market.chains[job].utilities)
            assert worth == pytest.approx(plan.utilities[job], abs=1e-9)


@given(stochastic_markets())
def test_a_joint_plan_stands_for_a_decoupled_one(market):
    joint = solved(market, "joint")
    program, values = market.program("decoupled"), market.encode(joint.plan, "decoupled")
    assert program.residuals_at(values).worst <= 1e-6
    assert program.objective_at(values) == pytest.approx(joint.objective, abs=1e-9)


@FEWER
@given(stochastic_markets())
def test_a_deterministic_plan_warm_starts_its_own_form(market):
    first = eq.solve(market, form="joint-deterministic")
    if first.plan is not None:
        values = market.encode(first.plan, "joint-deterministic")
        program = market.program("joint-deterministic")
        assert program.residuals_at(values).worst <= 1e-6
        again = eq.solve(market, form="joint-deterministic", backend="highs", warm_start=first.plan)
        assert again.objective == pytest.approx(first.objective, abs=1e-3)


def test_a_randomised_plan_leaves_the_choices_of_a_deterministic_form_open():
    market = market_of([still([0, 1])] * 2)
    values = market.encode(solved(market).plan, "decoupled-deterministic")
    assert np.isnan(values).sum() == 4
    assert np.isfinite(values).sum() == 4
    alone = market_of([still([0, 1])] * 2, rounds=2)
    joint = solved(alone, "joint").plan
    for form in ("decoupled-deterministic", "joint-deterministic"):
        result = eq.solve(alone, form=form, backend="highs", warm_start=joint)
        assert result.objective == pytest.approx(0.0, abs=1e-3)  # a round each


def test_a_state_never_reached_idles_for_certain():
    chain = eq.JobChain(initial=[1, 0], transitions=[np.eye(2), np.eye(2)], utilities=[[0, 0], [1, 1]], demands=[0, 1])
    for form in ("decoupled", "joint"):
        (policy, *_) = solved(market_of([chain], rounds=2), form).plan.policy
        np.testing.assert_array_equal(policy[:, 1], [[1, 0], [1, 0]])
        np.testing.assert_allclose(policy[:, 0], [[0, 1], [0, 1]], atol=1e-6)


def test_an_action_beyond_the_capacity_of_a_round_is_not_available():
    market = market_of([still([0, 1, 5])], capacities=[1, 2], rounds=2)
    plan = solved(market).plan  # in expectation one unit would allow half of the action of two
    np.testing.assert_allclose(plan.utilities, 6.0, rtol=1e-6)
    assert plan.policy[0][0, 0, 2] == 0.0
    assert solved(market_of([still([0, 1])], capacities=[1, 0], rounds=2)).plan.utilities == pytest.approx([1.0])


def test_amounts_that_add_up_to_the_capacity_fit_it_whatever_the_rounding():
    market = market_of([still([0, 1], [0, 0.1]), still([0, 1], [0, 0.2])], capacities=0.3)
    np.testing.assert_allclose(solved(market, "joint").plan.utilities, 1.0, rtol=1e-6)


def corrupted(plan, change):
    parts = [part.copy() for part in plan.policy]
    change(parts)
    return replace(plan, policy=tuple(parts))


def test_evaluate_sees_every_kind_of_fault():
    market = market_of([still([0, 1])] * 2)
    plan = solved(market).plan

    def greedy(parts):
        for part in parts:
            part[:] = [0.0, 1.0]

    assert market.evaluate(corrupted(plan, greedy))[1].row == pytest.approx(1.0)
    assert market.evaluate(corrupted(plan, lambda parts: parts[0].__imul__(0.9)))[1].bound == pytest.approx(0.1)

    def negative(parts):
        parts[0][0, 0] = [-0.5, 1.5]

    assert market.evaluate(corrupted(plan, negative))[1].bound == pytest.approx(0.5)
    claimed = replace(plan, form="decoupled-deterministic")
    assert market.evaluate(claimed)[1].integrality == pytest.approx(0.5, abs=0.01)

    tight = market_of([still([0, 1, 2])], capacities=[1, 2], rounds=2)
    wide = corrupted(solved(tight, "joint").plan, lambda parts: parts[0].__setitem__((0, 0), [0, 0, 1]))
    assert tight.evaluate(wide)[1].row == pytest.approx(1.0)
    assert market.evaluate(corrupted(plan, lambda parts: parts[0].__setitem__((0, 0), [1, 0])))[0] == -np.inf


# -- Input -------------------------------------------------------------------------------------------------------------


def test_backends_are_weighed_by_the_class_of_the_form():
    market = market_of([still([0, 1])] * 2)
    for form in market.forms:
        assert market.program(form).problem_class is market.class_of(form)
        reasons = {row.name: row.reason for row in eq.candidates(market, form=form)}
        assert ("cannot state MILOG" in reasons["clarabel"]) is form.endswith("deterministic")
    with pytest.raises(eq.UnsupportedProblem, match="clarabel"):
        eq.solve(market, form="joint-deterministic", backend="clarabel")
    assert {"highs", "clarabel"} <= {row.name for row in eq.backends(market)}


@pytest.mark.parametrize("form", ["decoupled", "joint"])
def test_conic_and_linear_solvers_agree(form):
    pytest.importorskip("clarabel")
    chain = eq.JobChain.from_regimes(
        epochs=3, epochs_per_round=[[0, 1.0], [0, 1.75]], change_probability=0.3, demands=[0, 1]
    )
    other = eq.JobChain.from_regimes(epochs=2, epochs_per_round=[[0, 0.5]], change_probability=[], demands=[0, 1])
    market = market_of([chain, other], budgets=[1.0, 2.0], rounds=4)
    found = [eq.solve(market, form=form, backend=name, rel_gap=1e-6) for name in ("clarabel", "highs")]
    for result in found:
        assert result.termination.reason is eq.Reason.OPTIMAL
    assert_same_optimum(*found)


def test_a_market_and_its_plan_travel_to_a_process_of_their_own():
    market = market_of([still([0, 1])] * 2)
    result = eq.solve(market, backend="highs", isolate=True)
    assert result.termination.reason is eq.Reason.OPTIMAL
    np.testing.assert_allclose(result.plan.utilities, 0.5, atol=1e-2)


def test_a_product_too_large_for_the_joint_program_is_refused_with_its_size():
    chain = eq.JobChain.from_regimes(epochs=9, epochs_per_round=[[0, 1.0]], change_probability=[], demands=[0, 1])
    market = market_of([chain] * 6, rounds=2)
    for form in ("joint", "joint-deterministic"):
        with pytest.raises(eq.UnsupportedProblem, match="1000000 product states x 64 joint actions"):
            market.program(form)
    full = eq.JobChain(
        initial=np.ones(12) / 12, transitions=np.ones((2, 12, 12)) / 12, utilities=np.ones((2, 12)), demands=[0, 1]
    )
    with pytest.raises(eq.UnsupportedProblem, match="1728 product states have"):
        eq.solve(market_of([full] * 3, rounds=2), form="joint")
    assert solved(market).plan is not None  # the decoupled form has no such limit


# -- Input -------------------------------------------------------------------------------------------------------------

GOOD = {"chains": (still([0, 1]), still([0, 1])), "budgets": [1.0, 2.0], "capacities": 1.0, "rounds": 3}


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("chains", (), r"chains = '\[\]': must not be empty"),
        ("chains", 3, "chains = 3: must be a sequence of JobChain"),
        ("chains", still([0, 1]), "chains = <JobChain: 1 states, 2 actions>: must be a sequence of JobChain"),
        ("chains", (still([0, 1]), "job"), r"chains\[1\] = 'str': must be a JobChain"),
        (
            "chains",
            (still([0, 1]), still([0, 1], [[0, 0], [1, 1]])),
            r"chains\[1\] = .*: takes of 2 resources, chains\[0\] of 1",
        ),
        (
            "chains",
            (still([0, 1]), still([0, 0])),
            r"chains\[1\] = .*: has no positive utility even without other jobs",
        ),
        ("chains", (still([0, 1]), still([0, 1], [0, 2])), r"chains\[1\] = .*: has no positive utility even"),
        ("chains", (still([0, 1]), still([0, 1e308])), r"chains\[1\] = .*: its utilities are too large"),
        ("budgets", [1.0], "budgets = '1 values': there are 2 chains"),
        ("budgets", [1.0, 0.0], r"budgets\[1\] = 0.0: must be greater than 0"),
        ("budgets", [1.0, np.nan], r"budgets\[1\] = nan: must be finite"),
        ("budgets", [1e308, 1e308], "their sum must be finite"),
        ("capacities", -1.0, "capacities = -1.0: at least 0"),
        ("capacities", "one", "capacities = 'one': must be a number"),
        ("capacities", [1, 2], r"capacities = 'array of shape \(2,\)': must have shape \(3,\)"),
        ("capacities", [1, -2, 1], r"capacities\[1\] = -2.0: at least 0"),
        ("capacities", [1, np.inf, 1], r"capacities\[1\] = inf: must be finite"),
        ("capacities", [[1, 1, 1]] * 2, r"capacities = 'array of shape \(2, 3\)': must have shape \(1, 3\)"),
        ("rounds", 0, "rounds = 0: at least 1"),
        ("rounds", 2.5, "rounds = 2.5: must be a whole number"),
        ("rounds", 100_000, "rounds = 100000: at most 10000"),
    ],
)
def test_bad_input_is_named(field, value, message):
    eq.StochasticMarket(**GOOD)
    with pytest.raises(eq.InvalidInput, match=message) as caught:
        eq.StochasticMarket(**{**GOOD, field: value})
    assert caught.value.field == field


def test_forms_and_plans_that_are_not_its_own_are_named():
    market = market_of([still([0, 1])] * 2)
    plan = solved(market).plan
    for call in (market.program, market.processes, lambda form: market.decode(np.zeros(4), form=form)):
        with pytest.raises(eq.InvalidInput, match="form = 'fluid': must be one of decoupled, joint"):
            call("fluid")
    with pytest.raises(eq.InvalidInput, match="has no values for the joint program"):
        market.encode(plan, "joint")
    with pytest.raises(eq.InvalidInput, match="only a joint plan has joint actions"):
        _ = plan.joint_actions
    with pytest.raises(eq.InvalidInput, match="must be a StochasticPlan"):
        market.evaluate("plan")
    other = market_of([still([0, 1])] * 2, rounds=2)
    with pytest.raises(eq.InvalidInput, match=r"plan\.policy"):
        other.evaluate(plan)


def test_a_market_is_frozen_and_keeps_its_own_copies():
    capacities = np.ones(3)
    market = eq.StochasticMarket(**{**GOOD, "capacities": capacities})
    capacities[:] = 5.0
    np.testing.assert_array_equal(market.capacities, np.ones((1, 3)))
    for array in (market.capacities, market.budgets, market.chains[0].transitions, market.chains[0].demands):
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 0.0
    with pytest.raises(AttributeError):
        market.rounds = 4
    assert repr(market) == "<StochasticMarket: 2 jobs of 2 states in all, 3 rounds>"
    assert repr(solved(market).plan).startswith("<StochasticPlan: 2 jobs, ")
