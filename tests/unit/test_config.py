"""Settings: where they come from, what is refused, and that no secret is shown."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from pydantic import BaseModel

from cdc_views.base.names import TableName
from cdc_views.config import FILE_NAME, INTERPRETED, SHORT_LIVED, STACK_FILE, Settings, load_settings, load_warehouse
from cdc_views.errors import BadConfig, NotRunning

LOG = {"bootstrap_servers": "broker:9092", "connect_url": "http://connect:8083"}
MINIMAL = """
source: {dsn: "${env:SHOP_DSN}", tables: [public.orders, users]}
log: {bootstrap_servers: "broker:9092", connect_url: "http://connect:8083"}
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / FILE_NAME).write_text(MINIMAL)
    monkeypatch.setenv("SHOP_DSN", "postgresql://me:hunter2@db/shop")
    return tmp_path


def test_load_minimal_file_fills_defaults_and_paths(project: Path) -> None:
    settings = load_settings(project)
    assert settings.source.tables == (TableName("public", "orders"), TableName("public", "users"))
    assert settings.warehouse == project / "warehouse"
    assert settings.log.poll_interval_ms == 20


def test_flag_wins_over_environment_and_environment_over_file(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CDC_VIEWS_SOURCE__SLOT", "from_environment")
    assert load_settings(project).source.slot == "from_environment"
    assert load_settings(project, {"source.slot": "from_flag"}).source.slot == "from_flag"


def test_unknown_setting_is_refused_by_name(project: Path) -> None:
    with pytest.raises(BadConfig, match=r"log\.brokers"):
        load_settings(project, {"log.brokers": "x"})


def test_secret_that_is_not_there_is_named(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SHOP_DSN")
    with pytest.raises(BadConfig, match='environment variable "SHOP_DSN"'):
        load_settings(project)


def test_secret_is_never_printed(project: Path) -> None:
    settings = load_settings(project)
    assert "hunter2" not in repr(settings) + str(settings.model_dump())
    with pytest.raises(BadConfig) as error:
        load_settings(project, {"source.tables": ""})
    assert "hunter2" not in str(error.value)


def test_login_in_the_address_of_connect_is_refused_without_being_printed(project: Path) -> None:
    with pytest.raises(BadConfig, match=r"log\.connect_url.*user or password") as error:
        load_settings(project, {"log.connect_url": "http://me:hunter2@connect:8083"})
    assert "hunter2" not in str(error.value)


@pytest.mark.parametrize(
    "line",
    ["dsn: host=db password: hunter2 user=x", "dsn: *hunter2", "dsn: !hunter2 x", "dsn: 'hunter2", 'dsn: "\\hunter2'],
)
def test_text_that_is_not_yaml_is_not_printed(project: Path, line: str) -> None:
    (project / FILE_NAME).write_text(f"source:\n  {line}\n")
    with pytest.raises(BadConfig, match=r"is not YAML: line \d+, column \d+: \w+") as error:
        load_settings(project)
    assert "unter2" not in str(error.value)


@pytest.mark.parametrize(
    ("url", "problem"),
    [
        ("admin:hunter2@connect", "user or password"),
        ("connect:8083", "is no address"),
        ("//connect:8083", "is no address"),
        ("http://:8083", "is no address"),
        ("http://connect:80830", "Port"),
    ],
)
def test_address_of_connect_without_scheme_host_or_port_is_refused(project: Path, url: str, problem: str) -> None:
    with pytest.raises(BadConfig, match=rf"log\.connect_url.*{problem}") as error:
        load_settings(project, {"log.connect_url": url})
    assert "hunter2" not in str(error.value)


def test_secret_from_a_file_is_relative_to_the_project(project: Path) -> None:
    (project / "dsn").write_text("host=db\n")
    assert load_settings(project, {"source.dsn": "${file:dsn}"}).source.dsn.get_secret_value() == "host=db"


def test_project_without_settings_says_how_to_make_one(tmp_path: Path) -> None:
    with pytest.raises(BadConfig) as error:
        load_settings(tmp_path)
    assert "cdc-views init" in str(error.value.hint)
    assert error.value.exit_status == 2


def test_native_stack_that_is_down_is_not_running(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (project / FILE_NAME).write_text("stack: native\nsource: {tables: [orders]}\n")
    monkeypatch.setenv("CDC_VIEWS_STATE", str(project / "state"))
    with pytest.raises(NotRunning) as error:
        load_settings(project)
    assert error.value.exit_status == 3


def test_warehouse_is_known_without_secrets_and_stack(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SHOP_DSN")
    assert load_warehouse(project) == project / "warehouse"


def test_lists_of_names_are_split_outside_of_quotes(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CDC_VIEWS_SOURCE__TABLES", 'orders, "a.b"."c, d" ,"say ""x,y"".", Order Items')
    assert load_settings(project).source.tables == (
        TableName("public", "orders"),
        TableName("a.b", "c, d"),
        TableName("public", 'say "x,y".'),
        TableName("public", "Order Items"),
    )


@pytest.mark.parametrize("uri", ["s3://bucket/lake", "file:///lake", "s3a:/bucket/lake", "s3://key:hunter2@minio/lake"])
@pytest.mark.parametrize("setting", ["warehouse", "views"])
def test_folder_with_a_scheme_is_refused_wherever_it_comes_from(
    project: Path, monkeypatch: pytest.MonkeyPatch, setting: str, uri: str
) -> None:
    monkeypatch.setenv("PLACE", uri)
    loads = [load_settings, load_warehouse] if setting == "warehouse" else [load_settings]
    for load in loads:
        for value in (uri, "${env:PLACE}"):
            with pytest.raises(BadConfig, match=f"{setting}: wanted a local folder, found a URI") as error:
                load(project, {setting: value})
            assert "hunter2" not in str(error.value)
            (project / FILE_NAME).write_text(f"{MINIMAL}\n{setting}: {value}\n")
            with pytest.raises(BadConfig, match=f"{setting}: wanted a local folder"):
                load(project)
            (project / FILE_NAME).write_text(MINIMAL)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("8080: x", "8080"),
        ("null: x", "None"),
        ("http: {8080: x}", r"http\.8080"),
        ("store: {direct_rows: 2024-02-30}", "is no date or number"),
        ("a: " + "[" * 5000, "nests too deeply"),
    ],
)
@pytest.mark.parametrize("load", [load_settings, load_warehouse])
def test_text_that_makes_no_settings_is_refused(
    project: Path, text: str, problem: str, load: Callable[[Path], object]
) -> None:
    (project / FILE_NAME).write_text(f"{MINIMAL}\n{text}\n")
    with pytest.raises(BadConfig, match=problem):
        load(project)


def test_setting_that_contains_itself_is_refused(project: Path) -> None:
    (project / FILE_NAME).write_text(f"{MINIMAL}\nhttp: &a {{tokens: *a}}\n")
    with pytest.raises(BadConfig, match="contains itself"):
        load_settings(project)


def test_section_is_no_setting(project: Path) -> None:
    for load in (load_settings, load_warehouse):
        with pytest.raises(BadConfig, match='"source" is a section'):
            load(project, {"source": "x"})


def test_table_that_is_listed_twice_is_refused(project: Path) -> None:
    with pytest.raises(BadConfig, match=r'table "public\.orders" is listed twice'):
        load_settings(project, {"source.tables": "orders, public.orders"})


def test_dsn_of_a_service_is_refused_without_being_printed(project: Path) -> None:
    with pytest.raises(BadConfig, match=r"source\.dsn: it names a service") as error:
        load_settings(project, {"source.dsn": "service=shop password=hunter2"})
    assert "hunter2" not in str(error.value)


def test_secret_that_is_not_utf_8_is_refused(project: Path) -> None:
    (project / "dsn").write_bytes(b"host=\xff")
    with pytest.raises(BadConfig, match='the file "dsn", which is not UTF-8'):
        load_settings(project, {"source.dsn": "${file:dsn}"})


@pytest.mark.parametrize("text", ["{", "{}", "[]", "\xff", None])
def test_addresses_of_the_stack_that_cannot_be_read_are_bad_config(
    project: Path, monkeypatch: pytest.MonkeyPatch, text: str | None
) -> None:
    (project / FILE_NAME).write_text("stack: native\nsource: {tables: [orders]}\n")
    monkeypatch.setenv("CDC_VIEWS_STATE", str(project))
    if text is None:
        (project / STACK_FILE).mkdir()
    else:
        (project / STACK_FILE).write_text(text, encoding="latin-1")
    with pytest.raises(BadConfig, match=r'stack\.json" (cannot be read|does not hold the addresses)'):
        load_settings(project)


@pytest.mark.parametrize(
    "name",
    [
        "upkeep.keep_hours",
        "upkeep.keep_tables_hours",
        "upkeep.target_mb",
        "engine.retry_s",
        "http.wait_s",
        "log.marker_timeout_s",
    ],
)
@pytest.mark.parametrize("value", ["inf", "nan", "1e9"])
def test_number_without_a_bound_is_refused(project: Path, name: str, value: str) -> None:
    with pytest.raises(BadConfig, match=name):
        load_settings(project, {name: value})


def test_environment_has_settings_without_a_section(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CDC_VIEWS_WAREHOUSE", "/data/lake")
    monkeypatch.setenv("CDC_VIEWS_VIEWS", "sql")
    monkeypatch.setenv("CDC_VIEWS_CACHE", "/elsewhere")
    assert load_warehouse(project) == Path("/data/lake")
    assert load_settings(project).views == project / "sql"


def test_folder_may_begin_with_a_home(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/ada")
    assert load_warehouse(project, {"warehouse": "~/lake"}) == Path("/home/ada/lake")
    assert load_warehouse(project, {"warehouse": "."}) == project
    for value, problem in (("~no-such-user/lake", "the folder of no user"), ("", "found an empty text")):
        with pytest.raises(BadConfig, match=f"warehouse: .*{problem}"):
            load_warehouse(project, {"warehouse": value})


def test_folder_with_a_colon_in_its_name_is_no_uri(project: Path) -> None:
    assert load_warehouse(project, {"warehouse": "a:b"}) == project / "a:b"
    assert load_settings(project, {"warehouse": "./a:/b"}).warehouse == project / "a:" / "b"


def test_text_columns_are_read_with_their_tables(project: Path) -> None:
    settings = load_settings(project, {"source.text_columns": "orders.at, sales.orders.total"})
    assert [str(column) for column in settings.source.text_columns] == ["public.orders.at", "sales.orders.total"]
    with pytest.raises(BadConfig, match=r"a column is schema\.table\.column"):
        load_settings(project, {"source.text_columns": "total"})


@pytest.mark.parametrize(
    "given",
    [
        {"orders.total": "decimal(20,4)", "sales.orders.fee": "NUMERIC( 9 )"},
        "orders.total: decimal(20,4), sales.orders.fee: NUMERIC( 9 )",
    ],
    ids=["mapping", "text"],
)
def test_decimal_columns_are_read_with_their_digits(project: Path, given: object) -> None:
    values = {"dsn": "host=db", "tables": ["orders"], "decimal_columns": given}
    (project / FILE_NAME).write_text(yaml.safe_dump({"source": values, "log": LOG}))
    found = load_settings(project).source.decimal_columns
    assert [(str(each.column), each.precision, each.scale) for each in found] == [
        ("public.orders.total", 20, 4),
        ("sales.orders.fee", 9, 0),
    ]


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ("orders.total", "a column is|wanted decimal"),
        ("orders.total: text", "wanted decimal"),
        ("orders.total: decimal(39,2)", "at most 38 digits"),
        ("orders.total: decimal(2,3)", "a scale of at most the precision"),
        ("orders.total: decimal(0)", "wanted decimal"),
        ("total: decimal(5,2)", r"a column is schema\.table\.column"),
        ("orders.at: decimal(5,2)", r'column "public\.orders\.at" is in source\.decimal_columns and in source\.text'),
        ("orders.a: decimal(5), orders.a: decimal(6)", "twice"),
    ],
)
def test_decimal_columns_that_make_no_sense_are_refused(project: Path, given: str, problem: str) -> None:
    with pytest.raises(BadConfig, match=problem):
        load_settings(project, {"source.decimal_columns": given, "source.text_columns": "orders.at"})


def with_spark_conf(project: Path, given: dict[str, str]) -> Settings:
    (project / FILE_NAME).write_text(f"{MINIMAL}\nengine: {{spark_conf: {json.dumps(given)}}}\n")
    return load_settings(project)


@pytest.mark.parametrize("name", ["session.timeZone", "ansi.enabled", "legacy.sizeOfNull", "files.ignoreCorruptFiles"])
def test_setting_of_spark_that_may_change_a_result_is_refused(project: Path, name: str) -> None:
    with pytest.raises(BadConfig, match=f'"spark.sql.{name}" may change the result of a view'):
        with_spark_conf(project, {f"spark.sql.{name}": "x"})


def test_settings_of_spark_that_only_say_how_a_query_is_run_are_taken(project: Path) -> None:
    tuning = {"spark.sql.shuffle.partitions": "8", "spark.sql.files.maxPartitionBytes": "64m", **INTERPRETED}
    given = {**tuning, **SHORT_LIVED, "spark.executor.memory": "4g"}
    assert with_spark_conf(project, given).engine.spark_conf == given


def test_docs_describe_every_setting() -> None:
    page = (Path(__file__).parents[2] / "docs" / "settings.md").read_text()

    def check(model: type[BaseModel], prefix: str) -> None:
        for name, field in model.model_fields.items():
            if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
                check(field.annotation, f"{prefix}{name}.")
            else:
                assert f"| `{prefix}{name}` |" in page
                assert str(field.description) in page

    check(Settings, "")
