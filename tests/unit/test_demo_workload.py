"""What the demo's workload sets out to do, and how it counts; the transactions themselves need a Postgres."""

from __future__ import annotations

import re
from collections import Counter
from random import Random

import click
import pytest
from click.testing import CliRunner

from cdc_views.demo.__main__ import main as demo
from cdc_views.demo.programs import DSN_VARIABLE
from cdc_views.demo.traffic.ledger import Ledger
from cdc_views.demo.traffic.transactions import BANK, KEYS, KINDS, LEAST, LONG_TEXTS
from cdc_views.demo.traffic.values import ASSIGNMENTS, BESIDE_THE_TEXT, search
from cdc_views.demo.traffic.vocabulary import ODDITIES, SEARCHES, WORDS
from cdc_views.demo.workload import main as workload
from cdc_views.demo.workload import missing_kinds, schedule
from cdc_views.errors import BadSearch
from cdc_views.search import IndexOptions
from cdc_views.search.analyzer import Analyzer
from cdc_views.search.query import Query

WANTED = [name for name, kind in KINDS.items() if kind.wanted]


@pytest.mark.parametrize("program", [demo, workload])
@pytest.mark.parametrize("given", ["--rate=0", "--rate=nan", "--seconds=-1", "--seconds=inf"])
def test_program_refuses_a_load_that_is_none(program: click.Command, given: str) -> None:
    shown = CliRunner().invoke(program, [given], env={DSN_VARIABLE: "host=nowhere"})
    assert shown.exit_code == 2
    assert given.partition("=")[0] in shown.stderr


@pytest.mark.parametrize(("rate", "seconds"), [(400, 60), (5, 10), (0.1, 20)])
def test_schedule_at_any_rate_has_each_wanted_kind_often_enough(rate: float, seconds: float) -> None:
    jobs = schedule(rate, seconds, seed=1)
    counts = Counter(job.kind for job in jobs)
    assert min(counts[name] for name in WANTED) >= LEAST


@pytest.mark.parametrize("rate", [0.1, 50, 400])
def test_schedule_has_its_jobs_in_order_and_within_the_time(rate: float) -> None:
    due = [job.due_s for job in schedule(rate, 30, seed=2)]
    assert due == sorted(due)
    assert due[-1] < 30


def test_schedule_of_the_demo_asks_for_as_many_changes_as_rate_and_time_say() -> None:
    changes = sum(KINDS[job.kind].row_changes for job in schedule(400, 60, seed=3))
    assert changes == pytest.approx(400 * 60, rel=0.03)


def test_schedule_with_the_same_seed_is_the_same() -> None:
    assert schedule(100, 20, seed=4) == schedule(100, 20, seed=4) != schedule(100, 20, seed=5)


def test_no_assignment_touches_the_money_of_the_bank() -> None:
    assert not [text for table in BANK for text, _ in ASSIGNMENTS[table] if "balance" in text]


def test_every_table_has_a_key_and_assignments() -> None:
    assert ASSIGNMENTS.keys() == KEYS.keys()


def test_assignments_beside_a_long_text_leave_it_alone() -> None:
    assert not [text for table, column in LONG_TEXTS.items() for text, _ in BESIDE_THE_TEXT[table] if column in text]


def terms_of(text: str) -> list[str]:
    return [token.term for token in Analyzer("english").tokens(text)]


def test_words_of_the_demo_have_stems_of_their_own() -> None:
    # Otherwise the patterns of demo/postgres/views/post_alerts.sql would find other posts than the index.
    texts = {word for text in (*WORDS, *ODDITIES) for word in re.split(r"\W+", text.lower()) if word}
    stems = {word: terms_of(word) for word in texts}
    assert len({term for terms in stems.values() for term in terms}) == sum(map(len, stems.values()))
    prefixes = {word[:3] for word in WORDS}
    odd = [
        (word, prefix)
        for word, terms in stems.items()
        for prefix in prefixes
        if word.startswith(prefix) != any(term.startswith(prefix) for term in terms)
    ]
    assert odd == []


@pytest.mark.parametrize("text", SEARCHES)
def test_first_saved_searches_are_of_words_of_the_demo(text: str) -> None:
    known = {*WORDS, "author:", *(f"{word[:3]}*" for word in WORDS)}
    assert set(re.findall(r"\w+[:*]?", text)) <= known


def test_saved_searches_are_understood_but_for_one_in_ten() -> None:
    options, random = IndexOptions("post_id", {"body": 2.0, "author": 1.0}, "english"), Random(1)
    refused = Counter(error_of(search(random), options) for _ in range(1000))
    assert refused.pop("") == pytest.approx(900, abs=40)
    assert all("no closing quotation mark" in error for error in refused)


def error_of(text: str, options: IndexOptions) -> str:
    try:
        Query.parse(text, options)
    except BadSearch as error:
        return error.message
    return ""


def test_ledger_counts_changes_by_table_and_operation() -> None:
    ledger = Ledger()
    ledger.committed("insert", {("posts", "insert"): 2, ("users", "update"): 1})
    ledger.committed("insert", {("follows", "insert"): 0})
    summary = ledger.summary(1.5)
    assert (summary["row_changes"], summary["transactions"], summary["by_kind"]) == (3, 1, {"insert": 2})
    assert summary["by_operation"] == {"insert": 2, "update": 1}


def test_missing_kinds_are_those_that_came_too_seldom() -> None:
    ledger = Ledger()
    for name in WANTED:
        for _ in range(LEAST - (name == "rollback")):
            ledger.rolled_back_on_purpose(name)
    assert missing_kinds(ledger) == ["rollback"]
