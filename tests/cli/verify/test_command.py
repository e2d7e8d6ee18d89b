"""`equipoise verify`: the table, the JSON, the page, the same problems for the same seed, and failures that show."""

import json
import re
import sys
from dataclasses import replace
from importlib import import_module

import numpy as np
import pytest

pytest.importorskip("sympy", reason="proofs need sympy: pip install 'equipoise[theory]'")

import equipoise as eq
from equipoise.cli import main
from equipoise.cli.verify.page import render
from equipoise.formulations.errors import BackendUnavailable, InvalidInput
from equipoise.validation.certificates.check_result import CheckResult
from equipoise.validation.statements import checks as statement_checks
from equipoise.validation.statements.checks import check_market
from equipoise.validation.statements.examples import kinds_of, text_of
from equipoise.validation.statements.verify import SUBJECTS, Verdict, verify
from equipoise.validation.theorems.catalogue import THEOREMS
from equipoise.validation.theorems.proof import ProofFailed

PROMISED = {"held", "proved"}
# The package exports the function of the same name, which hides the module.
statements = import_module("equipoise.validation.statements.verify")


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def document(capsys, *arguments, code=0):
    assert main.run(["verify", *arguments, "--json"]) == code
    out, err = capsys.readouterr()
    assert err == ""
    return json.loads(out)


# -- What it says ------------------------------------------------------------------------------------------------------


def test_everything_holds_and_the_table_and_the_page_say_so(here, capsys, monkeypatch):
    few = THEOREMS[4:9]  # all of them are proved in test_theorems.py
    monkeypatch.setattr(sys.modules[verify.__module__], "THEOREMS", few)
    assert main.run(["verify", "--examples", "3"]) == 0
    out, err = capsys.readouterr()
    for heading in ("Theorems", "Markets:", "random jobs", "The window program", "Jobs that share GPUs"):
        assert heading in out
    assert f"{len(few)} proved" in out
    assert "held on 3 examples" in out
    assert "held on 15 examples" in out  # five kinds of markets
    assert "FAIL" not in out
    assert "wrote the page to verify.html" in err
    assert [path.name for path in here.iterdir()] == ["verify.html"]
    page = (here / "verify.html").read_text()
    assert "Everything promised holds" in page
    assert "equipoise verify --examples 3 --seed 0" in page
    assert page.count("<details>") >= len(few)


def test_json_is_one_verdict_for_each_statement(here, capsys):
    found = document(capsys, "window", "market", "--examples", "4", "--seed", "3")
    assert found["format"] == "equipoise.verify/1"
    assert (found["examples"], found["seed"], found["fails"]) == (4, 3, 0)
    assert list(here.iterdir()) == []
    rows = found["verdicts"]
    assert list(dict.fromkeys(row["subject"] for row in rows)) == ["market", "window"]
    names = [(row["subject"], row["statement"]) for row in rows]
    assert len(set(names)) == len(names)
    for row in rows:
        assert row["verdict"] in {"held", "reported"}
        assert 0 <= row["held"] <= row["examples"] <= 20
        assert (row["verdict"] == "held") <= (row["held"] == row["examples"])
    reported = {row["statement"] for row in rows if row["verdict"] == "reported" and row["subject"] == "window"}
    assert any(statement.startswith("no envy") for statement in reported)
    assert any(statement.startswith("sharing incentive") for statement in reported)


def test_the_same_seed_tries_the_same_problems():
    for subject in ("market", "stochastic", "window"):
        for kind in kinds_of(subject):
            first, again, other = kind.draw(6, 1), kind.draw(6, 1), kind.draw(6, 2)
            assert [text_of(each) for each in first] == [text_of(each) for each in again]
            assert [text_of(each) for each in first] != [text_of(each) for each in other]
            assert len(first) == 6


def test_the_window_is_reported_to_miss_what_it_does_not_promise():
    verdicts = verify(["window"], examples=60, seed=1)
    assert not any(verdict.fails for verdict in verdicts)
    reported = [verdict for verdict in verdicts if verdict.verdict == "reported"]
    missed = [verdict for verdict in reported if verdict.held < verdict.examples]
    assert missed
    for verdict in missed:
        assert verdict.text == f"reported: held on {verdict.held} of {verdict.examples}"
        assert verdict.problem.startswith("ScheduleWindow(")


def test_problems_are_shown_as_code_that_makes_them_again():
    from scipy.sparse import csr_array

    names = {name: getattr(eq, name) for name in eq.__all__} | {"csr_array": csr_array}
    for subject in ("market", "stochastic", "window"):
        for kind in kinds_of(subject):
            for problem in kind.draw(5, 0):
                again = eval(text_of(problem), dict(names))
                assert type(again) is type(problem)
                assert text_of(again) == text_of(problem)


# -- What fails, shows -------------------------------------------------------------------------------------------------


def worse(market, **options):
    """Solve, and then take from buyer 0 half of what it has."""
    result = eq.solve(market, **options)
    allocation = result.plan.allocation.copy()
    allocation[:1] = allocation[:1] * 0.5 if isinstance(allocation, np.ndarray) else allocation[:1].multiply(0.5)
    return replace(result, plan=market.equilibrium(allocation, result.plan.prices))


def test_a_broken_solver_fails_with_the_smallest_market_and_exit_code_1(here, capsys, monkeypatch):
    monkeypatch.setattr(statement_checks, "solve", worse)
    assert main.run(["verify", "market", "--examples", "3"]) == 1
    out, _ = capsys.readouterr()
    assert "fails on" in out
    assert "FAIL" in out
    page = (here / "verify.html").read_text()
    assert "statements fail" in page
    verdicts = {verdict.statement: verdict for verdict in verify(["market"], examples=3)}
    broken = verdicts["budgets spent"]
    assert broken.verdict == "fails"
    assert broken.held < broken.examples == 15
    assert "buyer 0" in broken.witness
    assert verdicts["allocation within capacities"].verdict == "held"  # half of a plan is feasible still
    # Shrunk as far as it goes: one buyer and one good.
    market = eval(broken.problem, {name: getattr(eq, name) for name in eq.__all__})
    assert market.utilities.size == 1
    assert any(not checked.result.holds for checked in check_market(market))


def test_a_broken_checker_fails_too(here, capsys, monkeypatch):
    def never(market, plan, gap):
        yield CheckResult(statement="pigs fly", source="nowhere", holds=market.num_buyers > 1, violation=1.0)

    monkeypatch.setattr(statement_checks, "certify", never)
    found = document(capsys, "market", "--examples", "8", code=1)
    (row,) = (row for row in found["verdicts"] if row["statement"] == "pigs fly")
    assert row["verdict"] == "fails"
    assert 0 < row["held"] < row["examples"] == 40
    assert row["problem"].endswith("budgets=[1])")
    assert found["fails"] == 1


def test_a_window_beyond_the_cluster_fails(monkeypatch):
    def crowded(window, **options):
        result = eq.solve(window, **options)
        return replace(result, plan=eq.WindowPlan(window=window, grants=np.ones_like(result.plan.grants)))

    monkeypatch.setattr(statement_checks, "solve", crowded)
    failing = {verdict.statement for verdict in verify(["window"], examples=15) if verdict.fails}
    assert "no round uses more GPUs than there are" in failing
    assert "no job runs after its end" in failing


def test_a_bound_that_is_none_fails(monkeypatch):
    def proud(problem, **options):
        result = eq.solve(problem, **options)
        return replace(result, bound=result.objective - 1.0)

    monkeypatch.setattr(statement_checks, "solve", proud)
    failing = {verdict.statement for verdict in verify(["window", "stochastic"], examples=2) if verdict.fails}
    assert any("beats the bound" in statement for statement in failing)
    assert any("relaxation" in statement for statement in failing)


def test_a_proof_that_does_not_close_fails_and_says_where(here, capsys, monkeypatch):
    def hopeless():
        raise ProofFailed("two and two: 4 = 5 leaves -1")

    monkeypatch.setattr(sys.modules[verify.__module__], "THEOREMS", (THEOREMS[-1], hopeless))
    found = document(capsys, "theorems", code=1)
    assert [row["verdict"] for row in found["verdicts"]] == ["fails", "proved"]
    assert found["verdicts"][0]["witness"] == "two and two: 4 = 5 leaves -1"
    assert found["verdicts"][1]["steps"]


def test_what_nothing_installed_can_solve_is_not_called_held(monkeypatch):
    def poor(problem, **options):
        if problem.kind == "VolatileFisherMarket:ces":
            raise BackendUnavailable("nothing here solves it")
        return eq.solve(problem, **options)

    monkeypatch.setattr(statement_checks, "solve", poor)
    verdicts = verify(["market"], examples=2)
    (missing,) = (verdict for verdict in verdicts if verdict.verdict == "not checked")
    assert "Everything promised that was checked holds" in render(verdicts, "equipoise verify market")
    assert "ces markets" in missing.witness
    assert {verdict.examples for verdict in verdicts if "budgets" in verdict.statement} == {8}


# -- What it takes -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["markets"], "nothing to verify is called 'markets'"),
        (["window", "--examples", "0"], "examples = 0"),
        (["window", "--seed", "-1"], "seed = -1"),
        (["window", "--html", "none/page.html"], "does not exist"),
        (["gpu-sharing", "--interference", "none.csv"], "no such file"),
    ],
)
def test_bad_arguments_are_bad_input(arguments, message, here, capsys):
    assert main.run(["verify", *arguments]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert message in err
    assert list(here.iterdir()) == []


def test_the_library_refuses_unknown_subjects():
    with pytest.raises(InvalidInput, match="window"):
        verify(["windw"])


@pytest.mark.parametrize(("package", "subject"), [("sympy", "theorems"), ("hypothesis", "window")])
def test_a_missing_package_is_named_with_what_installs_it(package, subject, here, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, package, None)
    for name in [name for name in sys.modules if re.match(r"equipoise\.validation\.strategies(\.|$)", name)]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.delattr(sys.modules["equipoise.validation"], "strategies", raising=False)
    assert main.run(["verify", subject, "--examples", "1"]) == 4
    out, err = capsys.readouterr()
    assert out == ""
    assert package in err
    assert "pip install 'equipoise[theory]'" in err


def test_an_interrupt_is_130_and_leaves_no_page(here, capsys, monkeypatch):
    def interrupt(problem, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(statement_checks, "solve", interrupt)
    assert main.run(["verify", "window", "--examples", "2"]) == 130
    assert capsys.readouterr() == ("", "equipoise: interrupted\n")
    assert list(here.iterdir()) == []


def test_progress_counts_every_proof_and_problem(monkeypatch):
    monkeypatch.setattr(sys.modules[verify.__module__], "THEOREMS", THEOREMS[4:7])
    seen = []
    verify(["theorems", "window"], examples=3, on_progress=lambda done, total: seen.append((done, total)))
    assert seen == [(done, 6) for done in range(7)]
    assert SUBJECTS[0] == "theorems"


def test_the_page_needs_no_network_and_takes_no_markup_from_a_witness():
    verdict = Verdict(
        subject="market", statement="a <b> & c", source="x", verdict="fails", examples=2, held=1,
        witness="<script>alert(1)</script><!--LEAD-->", problem="Market('<i>')",
    )  # fmt: skip
    page = render([verdict], "equipoise verify market")
    assert "<script" not in page
    assert "http" not in page.replace("http-equiv", "")
    assert not re.search(r"<!--[A-Z]+-->", page)
    assert "a &lt;b&gt; &amp; c" in page
    assert "1 of 1 statements fail" in page
    assert page.isascii()
