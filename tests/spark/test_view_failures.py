"""Whatever a view raises is the failure of that view and of those above it: the rest of the epoch is published."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

import duckdb
import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from cdc_views.config import StoreSettings
from cdc_views.engine.views.declare import declare_views
from cdc_views.engine.views.maintain import ViewRunner
from cdc_views.engine.views.strategies import STRATEGIES, Recompute
from cdc_views.engine.views.strategies.difference import is_unique
from cdc_views.engine.views.strategies.guards import TOO_LARGE, Bound, bounded
from cdc_views.errors import BadView, CdcViewsError, DiskFull, DriverLost, Fenced, ViewFailed
from cdc_views.plan import compiled
from cdc_views.plan.facts.relation import RelationFacts
from cdc_views.store.control.control_log import TableVersion
from cdc_views.store.warehouse import Changes, Stamp
from cdc_views.testing import Delete, Insert, Update, ViewHarness, assert_equal
from tests.full_only import recompute_in_full

TABLE = "CREATE TABLE t (id bigint PRIMARY KEY, v bigint, s text)"
SAFE = "CREATE MATERIALIZED VIEW safe AS SELECT id, v FROM t"
ABOVE = "CREATE MATERIALIZED VIEW above AS SELECT count(*) AS n FROM risky"
GOOD = {"id": 1, "v": 1, "s": "1"}
BAD = {"id": 2, "v": 0, "s": "secret"}

# SELECT of a view that works for GOOD and fails as soon as BAD is there; what its failure says.
QUERIES = {
    "two rows of a scalar subquery": (
        "SELECT id FROM t WHERE v <= (SELECT v FROM t WHERE v < 5)",
        r"SCALAR_SUBQUERY_TOO_MANY_ROWS",
    ),
    "division in a subquery": (
        "SELECT id, (SELECT max(10 / v) FROM t) AS m FROM t",
        r"risky\.sql:1:\d+: \[DIVIDE_BY_ZERO\]",
    ),
    "division": ("SELECT id, 10 / v AS part FROM t", r"risky\.sql:1:\d+: \[DIVIDE_BY_ZERO\]"),
    "cast below a cross join": (
        "SELECT t.id, o.m FROM t CROSS JOIN (SELECT max(cast(s AS int)) AS m FROM t) o",
        r'CAST_INVALID_INPUT\] The value \.\.\. of the type "STRING" cannot be cast to "INT"',
    ),
    "cast": (
        "SELECT id, cast(s AS int) AS number FROM t",
        r'CAST_INVALID_INPUT\] The value \.\.\. of the type "STRING" cannot be cast to "INT"',
    ),
    "overflow of a cast": (
        "SELECT id, cast(id * 2000000000 AS int) AS number FROM t",
        r'CAST_OVERFLOW\] The value \.\.\. of the type "BIGINT"',
    ),
    "its own message": ("SELECT id, assert_true(s <> 'secret', s) IS NULL AS fine FROM t", r"USER_RAISED_EXCEPTION"),
    "pattern": (
        "SELECT id, s RLIKE concat(s, if(v = 0, '(', '')) AS found FROM t",
        r"INVALID_PARAMETER_VALUE\.PATTERN\] .* is invalid: \.\.\.\.",
    ),
    "pattern that Java alone refuses": (
        "SELECT id, size(split(s, concat(s, if(v = 0, '(', '')))) AS parts FROM t",
        r"PatternSyntaxException",
    ),
    "timestamp": (
        "SELECT id, to_timestamp(if(v = 0, s, '2026'), 'yyyy') AS at FROM t",
        r"CANNOT_PARSE_TIMESTAMP",
    ),
    "memory of a task": (
        "SELECT id, length(repeat(s, if(v = 0, 350000000, 1))) AS n FROM t",
        r"java\.lang\.OutOfMemoryError",
    ),
}  # fmt: skip


@pytest.fixture
def h(spark: SparkSession) -> Iterator[ViewHarness]:
    with ViewHarness(TABLE, spark) as harness:
        harness.apply([Insert("t", GOOD)])
        yield harness


def statuses(h: ViewHarness) -> dict[str, str]:
    return {name: table.status for name, table in h.records[-1].tables.items() if "." not in name}


def declare(h: ViewHarness, sql: str) -> None:
    for each in (SAFE, f"CREATE MATERIALIZED VIEW risky AS {sql}", ABOVE):
        h.create_view(each)
    h.run_epoch()
    assert set(statuses(h).values()) == {"live"}


@pytest.fixture(scope="module")
def failed(spark: SparkSession) -> Iterator[ViewHarness]:
    """All queries side by side, after the epoch in which they fail."""
    with ViewHarness(TABLE, spark) as harness:
        harness.apply([Insert("t", GOOD)])
        declare(harness, "SELECT id FROM t")
        for number, (sql, _) in enumerate(QUERIES.values()):
            harness.create_view(f"CREATE MATERIALIZED VIEW q{number} AS {sql}")
            harness.create_view(f"CREATE MATERIALIZED VIEW above{number} AS SELECT count(*) AS n FROM q{number}")
        harness.run_epoch()
        assert set(statuses(harness).values()) == {"live"}
        with harness.crash_at("epoch.before_publish"):
            harness.apply([Insert("t", BAD)])
        harness.restart()  # finishes the open epoch
        yield harness


@pytest.mark.parametrize("case", QUERIES)
def test_query_that_fails_fails_its_view_and_those_above(failed: ViewHarness, case: str) -> None:
    number = list(QUERIES).index(case)
    with pytest.raises(ViewFailed, match=QUERIES[case][1].replace("risky", f"q{number}")) as error:
        failed.rows(f"q{number}")
    assert "secret" not in error.value.message
    assert len(error.value.message) < 400
    with pytest.raises(ViewFailed, match=f'reads view "q{number}", which has failed'):
        failed.rows(f"above{number}")


def test_views_beside_those_that_fail_are_right(failed: ViewHarness) -> None:
    assert_equal(failed.rows("safe"), [(1, 1), (2, 0)])
    assert_equal(failed.rows("above"), [(2,)])
    assert_equal(failed.rows("t"), [tuple(GOOD.values()), tuple(BAD.values())])


def test_result_beyond_the_driver_s_limit_of_spark_fails_its_view(h: ViewHarness, spark: SparkSession) -> None:
    declare(h, "SELECT id, repeat(s, if(v = 0, 10000, 1)) AS text FROM t")
    settings = spark._jsc.sc().conf()
    before = settings.get("spark.driver.maxResultSize", "1g")
    settings.set("spark.driver.maxResultSize", "20k")
    try:
        h.apply([Insert("t", BAD)])
    finally:
        settings.set("spark.driver.maxResultSize", before)
    with pytest.raises(ViewFailed, match=r"the result is larger than spark\.driver\.maxResultSize \(20\.0 KiB\)"):
        h.rows("risky")
    assert_equal(h.rows("safe"), [(1, 1), (2, 0)])


def test_query_that_fails_prints_nothing(h: ViewHarness, capfd: pytest.CaptureFixture[str]) -> None:
    declare(h, QUERIES["cast"][0])
    h.apply([Insert("t", BAD)])
    assert statuses(h)["risky"] == "failed"
    assert capfd.readouterr() == ("", "")


def test_view_that_failed_fails_again_after_a_restart_and_comes_back(h: ViewHarness) -> None:
    declare(h, QUERIES["two rows of a scalar subquery"][0])
    with h.crash_at("epoch.before_publish"):
        h.apply([Insert("t", BAD)])
    h.restart()  # finishes the open epoch
    assert statuses(h) == {"safe": "live", "risky": "failed", "above": "failed", "_cv_risky_1": "live"}
    h.restart()
    assert statuses(h)["risky"] == "failed"
    h.apply([Delete("t", {"id": 2})])
    assert_equal(h.rows("risky"), [(1,)])
    assert_equal(h.rows("above"), [(1,)])
    h.verify()


# ---- errors of the steps behind the query


@contextmanager
def strategy(monkeypatch: pytest.MonkeyPatch, replaced: Callable[[Recompute], Changes | None]) -> Iterator[None]:
    """The strategy of the view "risky" replaced by another one."""
    full = STRATEGIES["FULL"]

    def chosen(work: Recompute) -> Changes | None:
        return replaced(work) if work.view.definition.name == "risky" else full(work)

    with monkeypatch.context() as patched:
        recompute_in_full(patched)
        patched.setitem(STRATEGIES, "FULL", chosen)
        yield


def _duckdb(work: Recompute) -> None:
    duckdb.sql("SELECT cast('secret' AS int)").fetchall()


def _arrow(work: Recompute) -> None:
    pa.array(["secret"]).cast(pa.int64())


def _recursion(work: Recompute) -> None:
    _recursion(work)


def _assertion(work: Recompute) -> None:
    raise AssertionError("secret")


def _memory(work: Recompute) -> None:
    raise MemoryError


def _unfit(work: Recompute) -> Changes:
    return Changes(None, pa.table({"id": ["secret"], "v": [None]}))


STEPS = {
    _duckdb: r"duckdb\.ConversionException",
    _arrow: r"pyarrow\.ArrowInvalid",
    _recursion: r"RecursionError",
    _assertion: r"AssertionError",
    _memory: r"MemoryError",
    _unfit: r"pyarrow\.ArrowInvalid in store/commits/table_commits\.py, line \d+",
}


@pytest.mark.parametrize("step", STEPS)
def test_step_that_fails_fails_its_view_alone(
    h: ViewHarness, step: Callable[[Recompute], Changes | None], monkeypatch: pytest.MonkeyPatch
) -> None:
    declare(h, "SELECT id, v FROM t")
    with strategy(monkeypatch, step):
        h.apply([Insert("t", BAD)])
    assert statuses(h) == {"safe": "live", "risky": "failed", "above": "failed"}
    with pytest.raises(ViewFailed, match=STEPS[step]) as failed:
        h.rows("risky")
    assert "secret" not in failed.value.message
    h.apply([Update("t", {"id": 1}, {"v": 2})])
    assert_equal(h.rows("risky"), [(1, 2), (2, 0)])
    h.verify()


@pytest.mark.parametrize("error", [Fenced("another writer"), DriverLost("the JVM ended"), DiskFull("no space left")])
def test_error_that_is_not_the_view_s_stops_the_epoch(
    h: ViewHarness, error: CdcViewsError, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fatal(work: Recompute) -> None:
        raise error

    declare(h, "SELECT id, v FROM t")
    with strategy(monkeypatch, fatal), pytest.raises(type(error)):
        h.apply([Insert("t", BAD)])
    h.restart()
    assert_equal(h.rows("risky"), [(1, 1), (2, 0)])


def test_temporary_file_of_the_comparison_without_space_is_a_full_disk(
    h: ViewHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(work: Recompute) -> None:
        raise duckdb.IOException('Could not write file "/tmp/duckdb": No space left on device')

    declare(h, "SELECT id, v FROM t")
    with strategy(monkeypatch, full), pytest.raises(DiskFull):
        h.apply([Insert("t", BAD)])


def test_error_behind_the_commit_of_a_view_is_recovered(h: ViewHarness, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is in the table's log cannot be taken for a failure: the next version is no longer free."""
    full = STRATEGIES["FULL"]

    def committed(work: Recompute) -> Changes | None:
        changes = full(work)
        assert changes is not None
        spec, intent = work.spec, h.records[-1]
        stamp = Stamp(intent.epoch, intent.attempt, str(intent.position))
        h._tables.warehouse.commit(spec, h._tables.version(spec.name), changes, stamp)
        raise RuntimeError("behind the commit")

    declare(h, "SELECT id, v FROM t")
    with strategy(monkeypatch, committed), pytest.raises(RuntimeError, match="behind the commit"):
        h.apply([Insert("t", BAD)])
    h.restart()
    assert_equal(h.rows("risky"), [(1, 1), (2, 0)])
    h.verify()


# ---- what the driver holds of a result


PAIRS = "SELECT a.id, b.id AS other, a.s FROM t a CROSS JOIN t b WHERE a.v >= 0"


def test_result_larger_than_the_driver_takes_is_left_to_spark(h: ViewHarness) -> None:
    h._tables.warehouse._settings = StoreSettings(driver_rows=20)
    h.create_view(f"CREATE MATERIALIZED VIEW risky AS {PAIRS}")
    assert len(h.rows("risky")) == 1
    h.apply([Insert("t", {"id": key, "v": 1, "s": "x"}) for key in range(2, 8)])  # beside a stored row
    assert len(h.rows("risky")) == 7 * 7
    h.verify()
    h.apply([Update("t", {"id": 1}, {"s": "y"})])
    assert len(h.changes("risky").inserted) == 7
    h.apply([Update("t", {"id": key}, {"s": "z"}) for key in range(1, 8)])  # more differs than the driver takes
    assert h.records[-1].detail["ways"]["commit"]["risky"] == "spark"
    assert len(h.changes("risky").inserted) == 7 * 7
    h.verify()


@pytest.mark.parametrize(
    ("sql", "most", "fits"),
    [
        ("SELECT id FROM range(0, 100, 1, 1)", Bound(100, 1 << 20), True),
        ("SELECT id FROM range(0, 101, 1, 1)", Bound(100, 1 << 20), False),
        ("SELECT repeat('x', 1000) AS s FROM range(0, 1000, 1, 1)", Bound(10**6, 2_000_000), True),
        ("SELECT repeat('x', 1000) AS s FROM range(0, 10000, 1, 1)", Bound(10**6, 2_000_000), False),
        ("SELECT array(repeat('x', 1000), NULL) AS s FROM range(0, 10000, 1, 1)", Bound(10**6, 2_000_000), False),
        ("SELECT repeat('x', 3000000) AS s, NULL AS t, named_struct('a', 1) AS u", Bound(10**6, 2_000_000), False),
    ],
)
def test_bounded_result_ends_the_query_beyond_its_size(spark: SparkSession, sql: str, most: Bound, fits: bool) -> None:
    rows = spark.sql(sql)
    if fits:
        assert bounded(rows, most).toArrow() == rows.toArrow()
    else:
        with pytest.raises(PySparkException, match=TOO_LARGE):
            bounded(rows, most).toArrow()


# ---- derived keys


def of_key(monkeypatch: pytest.MonkeyPatch, key: tuple[str, ...]) -> None:
    """Let a wrong key be derived for each view of the columns v and s that is declared from now on."""
    monkeypatch.setattr(compiled, "derive_key", lambda *_: RelationFacts(("v", "s"), {}, key, "wrong"))


@pytest.mark.parametrize(("key", "named"), [(("v",), '("v") is not unique'), ((), "more than one row")])
def test_key_that_is_not_unique_fails_its_view_and_stores_nothing(
    h: ViewHarness, monkeypatch: pytest.MonkeyPatch, key: tuple[str, ...], named: str
) -> None:
    h.create_view(SAFE)
    of_key(monkeypatch, key)
    h.create_view("CREATE MATERIALIZED VIEW risky AS SELECT v, s FROM t")
    h.apply([Update("t", {"id": 1}, {"s": "2"})])
    h.apply([Insert("t", GOOD | {"id": 3, "s": "2"})])  # a whole copy of the stored row
    with pytest.raises(ViewFailed, match=re.escape(named)):
        h.rows("risky")
    assert_equal(h.rows("safe"), [(1, 1), (3, 1)])
    h.apply([Delete("t", {"id": 1})])
    assert_equal(h.rows("risky"), [(1, "2")])


def test_key_that_is_not_unique_fails_a_view_of_spark_s(h: ViewHarness, monkeypatch: pytest.MonkeyPatch) -> None:
    h._tables.warehouse._settings = StoreSettings(driver_rows=1)
    of_key(monkeypatch, ("v",))
    h.create_view("CREATE MATERIALIZED VIEW risky AS SELECT v, s FROM t")
    h.apply([Insert("t", GOOD | {"id": 3}), Insert("t", BAD)])
    h.create_view("CREATE MATERIALIZED VIEW built AS SELECT v, s FROM t")
    for name in ("risky", "built"):  # compared with stored rows, and built
        with pytest.raises(ViewFailed, match=re.escape('("v") is not unique')):
            h.rows(name)
    assert h.records[-1].tables["built"].version == 0


@pytest.mark.parametrize(
    ("key", "is_good"),
    [
        (("a",), False),
        (("a", "b"), True),
        (("b",), False),  # NULL twice
        (("c",), False),
        ((), False),
    ],
)
def test_rows_with_the_same_key_are_found(key: tuple[str, ...], is_good: bool) -> None:
    rows = pa.table({"a": [1, 1, 2], "b": [None, 2, None], "c": [[1, None], [1, None], []]})
    assert is_unique(rows, key) is is_good
    assert is_unique(rows.slice(0, 1), key)
    assert is_unique(rows.slice(0, 0), key)


def test_result_with_other_columns_than_declared_fails_its_view(h: ViewHarness) -> None:
    declare(h, "SELECT id, v FROM t")
    spec = h._tables.specs["risky"]
    narrow = pa.schema([spec.schema.field("id"), pa.field("v", pa.int32())])
    h._tables.specs["risky"] = dataclasses.replace(spec, schema=narrow)
    h.apply([Insert("t", BAD)])
    with pytest.raises(ViewFailed, match='column "v" of the result is int64, wanted "v" int32'):
        h.rows("risky")
    h._tables.specs["risky"] = spec
    h.apply([Update("t", {"id": 1}, {"v": 5})])
    assert_equal(h.rows("risky"), [(1, 5), (2, 0)])


# ---- a start at which a view's SELECT is no longer understood


def start_with(h: ViewHarness, spark: SparkSession, sql: str, running: Mapping[str, TableVersion]) -> None:
    """Declare the views as a start does, the view "risky" with another SELECT than it had."""
    views = [view.compiled for view in h._views.values()]
    broken = [
        dataclasses.replace(view, definition=dataclasses.replace(view.definition, sql=sql), replacements=())
        if view.definition.name == "risky" else view
        for view in views
    ]  # fmt: skip
    failures = declare_views(spark, h._tables, broken, running)
    h._writer.views = ViewRunner(spark, [[view] for view in broken], failures)


def test_view_that_is_not_understood_at_a_start_has_failed(h: ViewHarness, spark: SparkSession) -> None:
    declare(h, "SELECT id, v FROM t")
    h.create_view("CREATE MATERIALIZED VIEW bag AS SELECT v, s FROM t")
    published = dict(h.records[-1].tables)
    start_with(h, spark, "SELECT nope FROM t", published)
    h.apply([Insert("t", BAD)])
    assert statuses(h) == {"safe": "live", "bag": "live", "risky": "failed", "above": "failed"}
    assert h.records[-1].tables["risky"] == dataclasses.replace(published["risky"], status="failed")
    with pytest.raises(ViewFailed, match=r"risky\.sql:1:\d+: \[TABLE_OR_VIEW_NOT_FOUND\]"):
        h.rows("risky")
    with pytest.raises(ViewFailed, match='reads view "risky", which has failed'):
        h.rows("above")
    assert_equal(h.rows("safe"), [(1, 1), (2, 0)])
    h.restart()  # with the views as they were
    assert_equal(h.rows("risky"), [(1, 1), (2, 0)])
    assert_equal(h.rows("above"), [(2,)])


@pytest.mark.parametrize("running", [(), ("above",)], ids=["new file", "file below"])
def test_new_view_that_is_not_understood_at_a_start_is_refused(
    h: ViewHarness, spark: SparkSession, running: tuple[str, ...]
) -> None:
    declare(h, "SELECT id, v FROM t")
    published = h.records[-1].tables
    with pytest.raises(BadView, match=r"risky\.sql:1:\d+"):
        start_with(h, spark, "SELECT nope FROM t", {name: published[name] for name in running})


def test_view_of_another_spark_is_rebuilt(h: ViewHarness, monkeypatch: pytest.MonkeyPatch) -> None:
    sql = "CREATE MATERIALIZED VIEW risky AS SELECT id, v FROM t"
    h.create_view(sql)
    h.apply([Insert("t", BAD)])
    before = h.records[-1].tables["risky"].path
    h.drop_view("risky")
    monkeypatch.setattr(compiled, "engine_version", lambda: "5.0.0")
    h.create_view(sql)
    assert_equal(h.rows("risky"), [(1, 1), (2, 0)])
    assert h.records[-1].tables["risky"].path != before
