"""The connector's settings: the file, its explanation, and what we make of it."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from pydantic import SecretStr

from cdc_views.base.names import ColumnName, TableName
from cdc_views.config import LogSettings, Settings, SourceSettings
from cdc_views.errors import BadConfig, SourceUnreachable
from cdc_views.log.debezium.connector import connector_config, template_file, version_of
from cdc_views.log.debezium.placeholder import new_placeholder

SECRET = "__cdc_views_unavailable_0"


def settings(dsn: str = "postgresql://app:secret@db.test:6432/shop", *tables: str) -> Settings:
    """Settings with this DSN and these tables."""
    return Settings(
        source=SourceSettings(dsn=SecretStr(dsn), tables=tuple(map(TableName.parse, tables or ("public.orders",)))),
        log=LogSettings(bootstrap_servers="kafka.test:9092", connect_url="http://connect.test:8083"),
    )


def test_readme_explains_every_setting_once() -> None:
    readme = Path(__file__).parents[2] / "connectors" / "README.md"
    explained = re.findall(r"^\| `([^`]+)` \|", readme.read_text(), re.MULTILINE)
    assert explained == list(json.loads(template_file().read_text()))


def test_config_of_a_dsn_has_its_parts() -> None:
    config = connector_config(settings(), SECRET)
    names = ("hostname", "port", "user", "password", "dbname", "sslmode")
    parts = [config[f"database.{name}"] for name in names]
    assert parts == ["db.test", "6432", "app", "secret", "shop", "prefer"]


def test_config_has_no_placeholder_left() -> None:
    assert not [value for value in connector_config(settings(), SECRET).values() if "${" in value]


def test_config_has_the_placeholder_of_the_log() -> None:
    assert connector_config(settings(), SECRET)["unavailable.value.placeholder"] == SECRET


def test_placeholders_are_not_repeated_and_have_128_random_bits() -> None:
    found = {new_placeholder() for _ in range(100)}
    assert len(found) == 100
    assert all(re.fullmatch(r"__cdc_views_unavailable_[0-9a-f]{32}", each) for each in found)


def test_table_patterns_match_the_names_and_nothing_else() -> None:
    patterns = connector_config(settings("dbname=x", 'public."a.b"', "public.odd (name)"), SECRET)["table.include.list"]
    assert patterns.split(",")[:2] == [r"(?-i)public\.a\x{2e}b", r"(?-i)public\.odd\x{20}\x{28}name\x{29}"]


def test_excluded_columns_are_patterns_without_commas() -> None:
    column = ColumnName(TableName("public", "a,b"), " x,é")
    config = connector_config(settings(), SECRET, excluded=[column])
    assert config["column.exclude.list"] == r"(?-i)public\.a\x{2c}b\.\x{20}x\x{2c}\x{e9}"
    assert connector_config(settings(), SECRET)["column.exclude.list"] == ""


def test_config_with_an_unknown_placeholder_is_refused(tmp_path: Path) -> None:
    template = tmp_path / "postgres.json"
    template.write_text('{"slot.name": "${slit}"}')
    with pytest.raises(BadConfig, match="slit"):
        connector_config(settings(), SECRET, template)


@pytest.mark.parametrize("dsn", ["host=/var/run/postgresql", "host=a.test,b.test"])
def test_config_of_a_dsn_that_debezium_cannot_use_is_refused(dsn: str) -> None:
    with pytest.raises(BadConfig, match="one host name"):
        connector_config(settings(dsn), SECRET)


def test_config_of_a_broken_dsn_does_not_show_it() -> None:
    with pytest.raises(SourceUnreachable) as error:
        connector_config(settings("password=sec ret"), SECRET)
    assert "ret" not in str(error.value).replace("libpq", "").split("hint")[0].split("string")[-1]


@pytest.mark.parametrize(
    ("text", "good"), [("3.7.0.Final", True), ("3.7.0", True), ("4.0.1.Final", True), ("3.7.0.Alpha2", False),
                       ("3.6.3.Final", False)]
)  # fmt: skip
def test_version_is_compared_by_release(text: str, good: bool) -> None:
    assert ((version_of(text) or (0,)) >= (3, 7, 0)) is good
