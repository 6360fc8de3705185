"""What needs no server: fingerprints, printed SQL, and messages without passwords."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from types import SimpleNamespace

import pytest
from psycopg import pq
from psycopg.conninfo import conninfo_to_dict

from cdc_views.base.names import TableName
from cdc_views.cli.setup import check
from cdc_views.config import Settings
from cdc_views.errors import BadConfig, PreflightFailed, SourceUnreachable
from cdc_views.log.debezium.connector import connector_config
from cdc_views.source.catalog import SourceColumn, SourceTable
from cdc_views.source.connection import connect, describe_dsn
from cdc_views.source.publication import publication_sql
from cdc_views.source.service.service_tables import grants_sql, service_schema_sql

ID = SourceColumn("id", 1, "int4", -1, None, not_null=True, toastable=False)
NOTE = SourceColumn("note", 2, "text", -1, None, not_null=False, toastable=True)
TAGS = SourceColumn("note", 2, "_text", -1, "text", not_null=False, toastable=True)
ORDERS = SourceTable(TableName("public", "orders"), 16384, (ID, NOTE), ("id",), False, "default")


@pytest.mark.parametrize(
    "other",
    [
        replace(ORDERS, name=TableName("public", "other")),
        replace(ORDERS, key=("note",)),
        replace(ORDERS, columns=(ID,)),
        replace(ORDERS, columns=(ID, replace(NOTE, attnum=3))),
        replace(ORDERS, columns=(ID, replace(NOTE, type_name="varchar"))),
        replace(ORDERS, columns=(ID, replace(NOTE, typmod=14))),
        replace(ORDERS, columns=(ID, replace(NOTE, name="remark"))),
    ],
)
def test_fingerprint_changes_with_what_decides_decoding(other: SourceTable) -> None:
    assert other.fingerprint() != ORDERS.fingerprint()


@pytest.mark.parametrize(
    "other",
    [
        replace(ORDERS, oid=2),
        replace(ORDERS, replica_identity="full"),
        replace(ORDERS, columns=(ID, replace(NOTE, toastable=False))),
        replace(ORDERS, columns=(ID, replace(NOTE, domain=True))),
    ],
)
def test_fingerprint_stays_where_decoding_does(other: SourceTable) -> None:
    assert other.fingerprint() == ORDERS.fingerprint()


def test_domain_over_an_array_changes_the_decoding_and_not_the_mirror() -> None:
    """A start compares the mirror's fingerprint with the one that it was created with."""
    plain, domain = (replace(ORDERS, columns=(ID, replace(TAGS, domain=each))) for each in (False, True))
    assert plain.fingerprint() != domain.fingerprint()
    assert plain.mirror_fingerprint() == domain.mirror_fingerprint()


def test_printed_sql_quotes_names() -> None:
    table = TableName("My", 'odd"table')
    assert '"My"."odd""table"' in service_schema_sql("pub", [table])
    assert 'GRANT SELECT ON "My"."odd""table" TO "a role"' in grants_sql("a role", [table])


def test_publication_has_the_service_tables_too() -> None:
    created = publication_sql("pub", [ORDERS.name], 140000, exists=False)
    assert created.startswith('CREATE PUBLICATION "pub" FOR TABLE "public"."orders", "cdc_views"."heartbeat"')


@pytest.mark.parametrize(("server_version", "published"), [(170000, False), (180000, True)])
def test_publication_has_generated_columns_where_postgres_can(server_version: int, published: bool) -> None:
    created = publication_sql("pub", [ORDERS.name], server_version, exists=True)
    assert ("publish_generated_columns = stored" in created) is published


def test_mirror_fingerprint_changes_with_the_forms_of_columns() -> None:
    others = [replace(NOTE, as_text=True), replace(NOTE, as_decimal=(5, 2)), replace(NOTE, as_decimal=(5, 3))]
    tables = [ORDERS, *(replace(ORDERS, columns=(ID, note)) for note in others)]
    assert {table.fingerprint() for table in tables} == {ORDERS.mirror_fingerprint()}
    assert len({table.mirror_fingerprint() for table in tables}) == len(tables)


@pytest.mark.parametrize("code", [{"type_name": "bpchar"}, {"type_name": "_bpchar", "element": "bpchar"}])
def test_mirrors_that_hold_the_padding_of_char_are_others(code: dict[str, str]) -> None:
    table = replace(ORDERS, columns=(ID, replace(NOTE, **code)))
    assert table.mirror_fingerprint() != table.fingerprint()


def test_column_that_is_a_text_is_one_for_views_too() -> None:
    assert (ID.mirrored_type, replace(ID, type_name="date", as_text=True).mirrored_type) == ("int4", "text")


def test_description_of_a_dsn_has_no_password() -> None:
    described = describe_dsn("postgresql://app:secret@db.test:6432/shop")
    assert described == 'database "shop" at db.test:6432 as "app"'


def test_description_of_a_dsn_has_what_libpq_adds_to_it(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"PGHOST": "other.test", "PGPORT": "1", "PGDATABASE": "other", "PGUSER": "ada"}.items():
        monkeypatch.setenv(name, value)
    assert describe_dsn("") == 'database "other" at other.test:1 as "ada"'
    assert describe_dsn("hostaddr=10.0.0.1 port=2 dbname=a user=b") == 'database "a" at 10.0.0.1:2 as "b"'


@pytest.mark.parametrize("dsn", ["host=db.test", "host=db.test user=ada", "host=db.test dbname=shop", "dbname=shop"])
def test_connector_connects_as_the_role_and_to_the_database_of_libpq(monkeypatch: pytest.MonkeyPatch, dsn: str) -> None:
    for name in ("PGUSER", "PGDATABASE", "PGHOST", "PGPORT", "PGSERVICE"):
        monkeypatch.delenv(name, raising=False)
    wanted = pq.Conninfo.get_defaults()
    [user] = (option.val for option in wanted if option.keyword == b"user")
    settings = Settings.model_validate(
        {"source": {"dsn": dsn, "tables": ["t"]}, "log": {"bootstrap_servers": "x", "connect_url": "http://x"}}
    )
    config, given = connector_config(settings, "x"), conninfo_to_dict(dsn)
    assert config["database.user"] == given.get("user", (user or b"").decode())
    assert config["database.dbname"] == given.get("dbname", config["database.user"])
    described = f'database "{config["database.dbname"]}" at {config["database.hostname"]}:5432'
    assert describe_dsn(dsn) == f'{described} as "{config["database.user"]}"'


def test_service_in_the_environment_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGSERVICE", "shop")
    with pytest.raises(BadConfig, match='PGSERVICE="shop"'):
        connect("host=db.test")


def test_sql_of_check_is_confirmed_for_the_server_that_is_reached(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    reached = SimpleNamespace(info=SimpleNamespace(dbname="shop", host="10.0.0.1", port=2, user="ada"))
    monkeypatch.setattr(check, "connect", lambda _: nullcontext(reached))
    settings = Settings.model_validate(
        {"source": {"dsn": "host=named", "tables": ["t"]}, "log": {"bootstrap_servers": "x", "connect_url": "http://x"}}
    )
    check._confirm(settings, [], yes=True)
    assert capsys.readouterr().err.startswith('-- SQL to run in database "shop" at 10.0.0.1:2 as "ada"\n')


def test_connect_with_something_that_is_no_dsn_does_not_show_it() -> None:
    with pytest.raises(SourceUnreachable) as error:
        connect("password=sec ret")
    assert "ret" not in error.value.message.split()
    assert PreflightFailed.exit_status == error.value.exit_status == 2
