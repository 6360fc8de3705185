"""Every type of Postgres that Debezium's table has, and some that it has not, with values at the edges.

test_types.py sends each value through a real connector, from the snapshot and from the stream;
docs/types.md is made of these cases (tests/unit/test_types_page.py).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

SETUP: Final = (
    *(f"CREATE EXTENSION {name}" for name in ("citext", "hstore", "ltree", "isn", "cube")),
    "CREATE TYPE mood AS ENUM ('sad', 'so so', 'it''s \"ok\"')",
    "CREATE TYPE pair AS (a int, b text)",
    # Of all that a setting can print in another way.
    "CREATE TYPE every AS (i interval, t timestamptz, d date, b bytea, m money, f float8, p point, r daterange)",
    "CREATE TYPE floatrange AS RANGE (subtype = float8)",
    "CREATE DOMAIN price AS numeric(10,2)",
    "CREATE DOMAIN net AS price CHECK (VALUE > -1000)",
    "CREATE DOMAIN words AS text[]",
    "CREATE DOMAIN code AS char(5)",
)

PRINTED: Final = "as Postgres prints it"


@dataclass(frozen=True)
class Case:
    """A type: what Delta has of it, and literals of it.

    `printed` is the SQL expression of the text that the mirror's value must print as; `form` says so in
    words. `as_text` cases are columns of source.text_columns, those with a `decimal` of source.decimal_columns.
    """

    type: str
    delta: str
    values: tuple[str, ...]
    form: str = ""
    printed: str = "{}"
    as_text: bool = False
    decimal: str = ""


@dataclass(frozen=True)
class Stop:
    """A value that stops the epoch by name; `flows` says that source.text_columns lets it through.

    Those with a `decimal` are columns of source.decimal_columns.
    """

    type: str
    value: str
    problem: str
    flows: bool
    decimal: str = ""


def _text(type_: str, *values: str, form: str = PRINTED, printed: str = "{}") -> Case:
    return Case(type_, "string", values, form, printed)


def _array(type_: str, delta: str, *values: str, form: str = "") -> Case:
    return Case(f"{type_}[]", f"array<{delta}>", ("{}", *values), form)


_TIMES = ("2024-02-29 12:00:00.1", "0001-01-01", "9999-12-31 23:59:59.999999", "1969-12-31 23:59:59.999999",
          "1582-10-10 01:02:03", "1500-02-28 01:00:00.000001")  # fmt: skip
_ZONED_TIMES = tuple(f"{time} +00" for time in _TIMES)
_FAR_TIMES = ("0044-03-15 12:34:56.789 BC", "4713-11-24 BC", "10000-01-01", "294246-12-31 23:59:59.999999",
              "infinity", "-infinity")  # fmt: skip
_UUID = "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"
_TZ_FORM = "Postgres' text at UTC: Debezium drops the zone"

CASES: Final = (
    Case("boolean", "boolean", ("t", "f")),
    Case("smallint", "short", ("-32768", "0", "32767")),
    Case("integer", "integer", ("-2147483648", "2147483647")),
    Case("bigint", "long", ("-9223372036854775808", "9223372036854775807")),
    Case("oid", "long", ("0", "3000000000", "4294967295")),
    Case("real", "float", ("0", "-0", "1.5", "0.1", "1e30", "1e-45", "16777217", "3.4028235e38")),
    Case("double precision", "double", ("0", "-0", "0.1", "1e300", "5e-324", "1e15", "123456789.125", "0.00001",
                                          "0.30000000000000004")),
    Case("numeric(5,2)", "decimal(5,2)", ("0", "-0.01", "999.99", "1")),
    Case("numeric(38,10)", "decimal(38,10)", ("1234567890123456789012345678.0123456789", "1e-10")),
    Case("numeric(3,-2)", "decimal(5,0)", ("99900", "100", "0")),
    Case("numeric(2,4)", "decimal(4,4)", ("0.0099", "0")),
    _text("numeric(39,2)", "0.00", "1234567890123456789012345678901234567.89"),
    _text("numeric(40,-2)", "1e40", "100"),
    _text("numeric", "0", "-0.00", "1.500", "1e-20", "1e40", "0.0000001", "1e-300", "NaN", "Infinity", "-Infinity"),
    _text("money", "0", "-1234.56", "92233720368547758.07", form="a plain number", printed="{}::numeric"),
    _text("text", "", "a\nb", "ünï☃😀", "__debezium_unavailable_value", "\\N", '"q"'),
    _text("varchar(5)", "", "abc", "a  "),
    _text("char(5)", "", "a", "abcde", "\ta", form="without trailing blanks, as char(5)::text", printed="{}::text"),
    _text("code", "", "a", form="as its base type: a domain over char(5)", printed="{}::text"),
    _text("bpchar", "", "a  ", "b", form="without trailing blanks, as bpchar::text", printed="{}::text"),
    _text('"char"', "", "a", "\\001"),
    _text("name", "", "abc"),
    _text("citext", "", "AbC"),
    Case("bytea", "binary", ("", "\\x00ff", "\\x5f5f")),
    _text("bit", "0", "1"),
    _text("bit(8)", "00000000", "10000001", "01110000"),
    _text("bit(70)", "1" + "0" * 69, "0" * 69 + "1"),
    Case("date", "date", ("1970-01-01", "0001-01-01", "9999-12-31", "1582-10-04", "1582-10-15", "1500-02-28")),
    Case("timestamp", "timestamp", _TIMES, "read as UTC", "{} AT TIME ZONE 'UTC'"),
    Case("timestamp(3)", "timestamp", ("2024-01-01 00:00:00.123",), "read as UTC", "{} AT TIME ZONE 'UTC'"),
    Case("timestamptz", "timestamp", (*_ZONED_TIMES, "2024-01-01 00:00:00+05:30")),
    Case("timestamptz(0)", "timestamp", ("2024-01-01 00:00:00+00",)),
    _text("time", "00:00:00", "24:00:00", "23:59:59.999999", "12:34:56.5"),
    _text("time(0)", "24:00:00", "12:00:00"),
    _text("timetz", "00:00:00+00", "24:00:00+00", "24:00:00-08", "12:34:56.5+05:30", "23:59:59.999999+14",
          form=_TZ_FORM, printed="CASE WHEN extract(timezone FROM {}) = 0 THEN {} ELSE {} AT TIME ZONE 'UTC' END"),
    _text("interval", "0", "1 year 2 mons 3 days 04:05:06.789", "-1 year -2 mons +3 days -04:05:06", "1 day -00:00:01",
          "-00:00:00.000001", "99999:00:00", "13 months", "00:59:59.999999", "178000000 years", "-2147483648 days",
          "1 mon -1 day", "1000000000:00:00.000001", "-0.5 seconds", "-1 day -00:00:00.5", "-1 day +00:00:00.1",
          form="as Postgres prints it, IntervalStyle postgres"),
    _text("json", '{"a" :  1, "a": 2}', "null", '"x"', '{"u":"\\u0041"}', "1.50", form="as it was written"),
    _text("jsonb", '{"a" :  1.50, "b": [1, 2]}', "null", '"x"', "1e3"),
    _text("xml", "", "<a>b</a>", '<?xml version="1.0"?><a/>'),
    _text("uuid", _UUID),
    _text("mood", "sad", 'it\'s "ok"', form="the label of the enum"),
    _text("inet", "10.0.0.1", "10.0.0.1/8", "::1", "2001:db8::/32"),
    _text("cidr", "10.0.0.0/8", "::/0"),
    _text("macaddr", "08:00:2b:01:02:03"),
    _text("macaddr8", "08:00:2b:01:02:03:04:05"),
    _text("int4range", "empty", "[1,5)", "(,)"),
    _text("int8range", "[1,5]", "empty"),
    _text("numrange", "[1.50,2.0]", "(,1]", "[0.1,Infinity)", "[1e-20,2)"),
    _text("daterange", "[2024-01-01,2024-02-01)", "(,)", "[0044-03-15 BC,infinity)"),
    _text("tsrange", '["2024-01-01 00:00:00","2024-01-01 00:00:00.5"]', "empty", "[0044-03-15 BC,infinity]"),
    _text("tstzrange", '["2024-01-01 00:00:00+02","2024-07-01 00:00:00.5+02"]', "empty", "(,infinity]",
          form="as Postgres prints it at UTC"),
    _text("point", "(1,2)", "(0.1,-0)", "(0.30000000000000004,5e-324)", "(NaN,Infinity)"),
    _text("line", "{1,-1,0}", "{0.1,2,3}"),
    _text("lseg", "[(0,0),(1,1.5)]"),
    _text("box", "(1,1),(0,0)", "(0.1,5),(-3,-4)"),
    _text("path", "[(0,0),(1,1)]", "((0,0),(1,1),(2,0))", "[(1,1)]"),
    _text("polygon", "((0,0),(1,1),(2,0))", "((0,0))",
          form="as Postgres prints it, without a last point that repeats the first"),
    _text("circle", "<(0,0),1>", "<(0.1,-2),3.5>"),
    _text("tsvector", "", "'a':1A 'b':2,3", "'it''s'"),
    _text("hstore", "", "a=>1, b=>NULL", '"a\\"b"=>"x y", "ü"=>"☃"', "b=>2, aa=>1", '"a"=>"NULL", x=>""',
          form="a JSON object, as hstore_to_json prints it", printed="hstore_to_json({})"),
    _text("ltree", "", "a.b.c"),
    _text("isbn", "978-0-393-04002-9"),
    Case("net", "decimal(10,2)", ("1.50", "-0.01"), "as its base type: a domain over a domain over numeric(10,2)"),
    Case("words", "array<string>", ("{}", '{a,NULL,"b c"}'), "as its base type: a domain over text[]"),
    # Types that Debezium does not know.
    _text("pair", "(1,x)", "(,)", '(1,"a ☃")', form="as Postgres prints it: a composite type"),
    _text("every", '("1 year 2 days -03:04:05","2024-02-03 04:05:06+00",2024-02-03,"\\\\x00ff",$12.50,'
          '0.30000000000000004,"(0.1,0.30000000000000004)","[2024-02-03,2024-03-04)")', "(,,,,,,,)",
          form="as Postgres prints it, with the settings of docs/printing.md"),
    _text("int4multirange", "{}", "{[1,5),[7,9)}"),
    _text("nummultirange", "{[1.50,2.0]}"),
    _text("tstzmultirange", '{["2024-01-01 00:00:00+02","2024-07-01 00:00:00+02")}', "{}",
          form="as Postgres prints it at UTC"),
    _text("floatrange", "[0.1,2)", form="as Postgres prints it: a range type of your own"),
    _text("tsquery", "", "'a' & !'b'"),
    _text("jsonpath", "$.a"),
    _text("pg_lsn", "0/0", "16/B374D848"),
    _text("pg_snapshot", "10:20:10,14"),
    _text("txid_snapshot", "10:20:10,14"),
    _text("xid", "4294967295"),
    _text("xid8", "18446744073709551615"),
    _text("tid", "(1,2)"),
    _text("lquery", "a.*"),
    _text("ean13", "978-0-393-04002-9"),
    _text("cube", "(1, 2)"),
    # Arrays.
    _array("smallint", "short", "{1,NULL}"),
    _array("integer", "integer", "{1,NULL,-3}"),
    _array("bigint", "long", "{9223372036854775807,NULL}"),
    _array("oid", "long", "{4294967295,NULL}"),
    _array("boolean", "boolean", "{t,f,NULL}"),
    _array("real", "float", "{0.1,NULL,-0}"),
    _array("double precision", "double", "{0.1,NULL,-0,0.30000000000000004}"),
    _array("numeric", "string", "{1.50,NULL,1e-20,1e40}"),
    _array("numeric(5,2)", "decimal(5,2)", "{1.50,NULL,1}"),
    _array("text", "string", '{a,NULL,"","NULL","a b","q\\"q","ü","x,y","{","\\\\"}', "{NULL}", "{NULL,NULL}"),
    _array("varchar(5)", "string", '{abc,NULL,""}', "{NULL}", "{NULL,NULL}"),
    Case("char(5)[]", "array<string>", ("{}", '{a,NULL,"","a b"}', "{NULL}", "{NULL,NULL}"),
         "elements without trailing blanks", "{}::text[]"),
    _array('"char"', "string", "{a,NULL}"),
    _array("citext", "string", "{AbC,NULL}"),
    _array("bytea", "binary", '{"\\\\x00ff",NULL,"\\\\x"}'),
    _array("date", "date", "{2024-01-01,NULL,9999-12-31,1582-10-15}"),
    Case("timestamp[]", "array<timestamp>", (
        "{}", '{"2024-01-01 00:00:00.123456",NULL,1582-10-15,"9999-12-31 23:59:59.999999"}',
    ), "elements read as UTC", "{}::timestamptz[]"),
    _array("timestamptz", "timestamp", '{"2024-01-01 00:00:00.123456+00",NULL,"1900-01-01 00:00:00+05:30"}'),
    Case("timetz[]", "array<string>", ("{}", "{12:34:56.5+00,NULL,24:00:00+00}"), f"elements: {_TZ_FORM}"),
    _array("json", "string", '{"{\\"a\\":  1}",NULL}', "{NULL}", "{NULL,NULL}"),
    _array("jsonb", "string", '{"{\\"a\\": 1}",NULL,"null"}', "{NULL}", "{NULL,NULL}"),
    _array("uuid", "string", f"{{{_UUID},NULL}}", "{NULL}", "{NULL,NULL}"),
    _array("mood", "string", "{sad,so so}", form="no element may be NULL: the connector fails"),
    _array("inet", "string", "{10.0.0.1,NULL,::1/64}", "{NULL}", "{NULL,NULL}"),
    _array("cidr", "string", "{10.0.0.0/8,NULL}"),
    _array("macaddr", "string", "{08:00:2b:01:02:03,NULL}"),
    _array("macaddr8", "string", "{08:00:2b:01:02:03:04:05,NULL}"),
    _array("int4range", "string", '{"[1,5)",NULL,empty}'),
    _array("int8range", "string", '{"[1,5)",NULL}'),
    _array("numrange", "string", '{"[1.50,2)",NULL}'),
    _array("daterange", "string", '{"[2024-01-01,2024-02-01)",NULL}'),
    _array("tsrange", "string", '{"[\\"2024-01-01 00:00:00\\",)",NULL}'),
    _array("tstzrange", "string", '{"[\\"2024-01-01 00:00:00+02\\",)",NULL}', form="elements at UTC"),
    _array("ltree", "string", "{a.b,c}", form="no element may be NULL: the connector fails"),
    _array("isbn", "string", "{978-0-393-04002-9}", form="no element may be NULL: the connector fails"),
    Case("hstore[]", "array<string>", ("{}", '{"b=>2, aa=>1",NULL}'), "elements as hstore_to_json prints them",
         "CASE WHEN cardinality({}) = 0 THEN ARRAY[]::text[] ELSE (SELECT array_agg(hstore_to_json(e)::text ORDER BY n)"
         " FROM unnest({}) WITH ORDINALITY AS u (e, n)) END"),
    # Columns of source.text_columns.
    *(Case(type_, "string", values, PRINTED, as_text=True) for type_, values in (
        ("numeric(5,2)", ("1", "-0.01", "NaN")),
        ("real", ("0", "-0", "0.1", "1e-45", "999999", "1e6", "16777217", "0.0001", "0.00001", "NaN", "-Infinity")),
        ("double precision", ("0", "-0", "0.1", "1e14", "1e15", "5e-324", "0.00001", "-123.456", "NaN", "Infinity")),
        ("date", ("2024-02-29", "0001-01-01", "10000-01-01", "5874897-12-31", "infinity", "-infinity")),
        ("timestamp", (*_TIMES, *_FAR_TIMES)),
        ("timestamptz", (*_ZONED_TIMES, "0044-03-15 12:34:56.789+00 BC", "10000-01-01 00:00:00+00",
                         "294276-12-31 23:59:59.999999+00", "0001-01-01 00:00:00+05", "infinity", "-infinity")),
    )),
    # Columns of source.decimal_columns.
    *(Case(type_, delta, values, printed=f"{{}}::{form}", decimal=decimal) for type_, delta, values, form, decimal in (
        ("numeric", "decimal(20,6)", ("0", "1.5000000", "-0.000001", "99999999999999.999999", "1e3", "-0.00"),
         "numeric(20,6)", "decimal(20,6)"),
        ("numeric", "decimal(38,0)", ("1e37", "-7"), "numeric(38,0)", "decimal(38)"),
        ("numeric(39,2)", "decimal(38,2)", ("1" * 36 + ".78",), "numeric(38,2)", "decimal(38,2)"),
        ("numeric[]", "array<decimal(20,6)>", ("{}", "{1.50,NULL,0.000001}"), "numeric(20,6)[]", "decimal(20,6)"),
    )),
)  # fmt: skip

_NOT_FINITE = "not a number or an infinity"
_NO_DAY = "a date outside of the years 1 to 9999, or an infinity"
_NO_TIME = "a time outside of the years 1 to 9999, or an infinity"
_DIMENSIONS = "an array of more than one dimension, or one of NULLs alone, which look the same"

STOPS: Final = (
    *(Stop(type_, value, _NOT_FINITE, True) for type_, value in (
        ("numeric(5,2)", "NaN"), ("real", "NaN"), ("real", "Infinity"), ("double precision", "NaN"),
        ("double precision", "-Infinity"))),
    *(Stop("date", value, _NO_DAY, True) for value in ("10000-01-01", "infinity", "-infinity")),
    *(Stop(type_, value, _NO_TIME, True) for type_ in ("timestamp", "timestamptz")
      for value in ("0044-03-15 BC", "10000-01-01", "infinity", "-infinity")),
    Stop("real[]", "{NaN}", _NOT_FINITE, False),
    *(Stop(f"{type_}[]", "{{" + value + "}}", _DIMENSIONS, False) for type_, value in (
        ("integer", "1,2"), ("boolean", "t"), ("numeric", "1"), ("bytea", "a"), ("date", "2024-01-01"),
        ("timestamptz", "2024-01-01"))),
    *(Stop(f"{type_}[]", "{{" + value + "}}", "an array of more than one dimension", False) for type_, value in (
        ("text", "a"), ("varchar(5)", "a"), ("char(5)", "a"), ("json", "1"), ("jsonb", "1"), ("uuid", _UUID),
        ("inet", "10.0.0.1"), ("mood", "sad"))),
    Stop("integer[]", "{NULL,NULL}", _DIMENSIONS, False),
    *(Stop("numeric", value, "a value that does not fit decimal(5,2)", False, "decimal(5,2)")
      for value in ("1000", "0.001", "1e-40", "1e50", "NaN", "-Infinity")),
    Stop("numeric[]", "{1,1000}", "a value that does not fit decimal(5,2)", False, "decimal(5,2)"),
)  # fmt: skip

# Refused in preflight: a type, and what is said of it.
REFUSALS: Final = (
    ("varbit(8)", 'has type "varbit", whose leading zeros Debezium drops'),
    ('"bit"', 'has type "bit", without a fixed length, whose leading zeros Debezium drops'),
    ("int2vector", 'has type "int2vector", for which Debezium writes an empty array'),
    ("oidvector", 'has type "oidvector", for which Debezium writes an empty array'),
    ("refcursor", 'has type "refcursor", which Debezium\'s snapshot treats as an open cursor'),
    *((name, f'has type "{name}", whose values print the name of an object, which can be renamed')
      for name in ("regclass", "regtype", "regrole", "regconfig", "aclitem")),
    ("time[]", 'is an array of "time", which Debezium truncates to milliseconds, with 24:00 as 00:00'),
    *((f"{sql}[]", f'is an array of "{name}", whose values Debezium loses') for sql, name in (
        ("name", "name"), ("money", "money"), ("interval", "interval"), ("xml", "xml"), ("bit(3)", "bit"),
        ("varbit", "varbit"), ("point", "point"), ("box", "box"), ("circle", "circle"), ("tsvector", "tsvector"),
        ("pair", "pair"), ("price", "price"), ("pg_lsn", "pg_lsn"), ("int4multirange", "int4multirange"))),
)  # fmt: skip

REFUSED_KEYS: Final = (
    ("real", "is a float: 0 and -0 are one key in Postgres and two in Kafka"),
    ("double precision", "is a float: 0 and -0 are one key in Postgres and two in Kafka"),
    ("timetz", "is a time with time zone, whose zone Debezium drops"),
    ("integer[]", "is an array"),
    ("bpchar", "is a bpchar without a length: 'a' and 'a ' are one key in Postgres and two in Kafka"),
)

# Keys: a type, its first value, and others that rows are moved to, one after the other.
KEYS: Final = (
    ("text", "", "__debezium", "a b", "ü"),
    ("varchar(10)", "a", "A"),
    ("char(5)", "a", "b"),
    ("citext", "a", "A", "b"),
    ("numeric", "1.0", "1.00", "1.0", "1e-20"),
    ("numeric(5,2)", "1", "2"),
    ("uuid", _UUID, "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a12"),
    ("timestamptz", "2024-01-01", "2024-01-01 00:00:00.000001"),
    ("timestamp", "2024-01-01", "1500-01-01"),
    ("date", "2024-01-01", "0001-01-01"),
    ("time", "12:00", "24:00"),
    ("bytea", "\\x", "\\x00ff"),
    ("boolean", "f", "t"),
    ("bit(3)", "101", "001"),
    ("interval", "1 mon", "30 days"),
    ("money", "1", "2"),
    ("mood", "sad", "so so"),
    ("inet", "10.0.0.1", "10.0.0.1/8"),
    ("jsonb", '{"a": 1}', '{"a": 1.0}'),
    ("numrange", "[1.0,2)", "[1.00,2)"),
    ("name", "a", "b"),
    ("oid", "1", "4294967295"),
    ("hstore", "a=>1", "a=>2"),
    ("pair", "(1,a)", "(1,b)"),
    ("pg_lsn", "0/1", "0/2"),
)

_BIG = "repeat('abcdefgh', 2000)"


def _many(type_: str, element: str) -> str:
    return f"(SELECT array_agg(({element})::{type_}) FROM generate_series(1, 9000) g)"


# Values that are stored out of line: a type, and an expression for one.
LARGE: Final = (
    *((name, _BIG) for name in ("text", "varchar", "char(9000)", "citext", "bytea", "xml")),
    ("json", f"to_json({_BIG})"),
    ("jsonb", f"to_jsonb({_BIG})"),
    ("hstore", f"hstore('a', {_BIG})"),
    ("numeric", "repeat('123456789', 2000)"),
    ("tsvector", "(SELECT string_agg('w' || g, ' ') FROM generate_series(1, 2000) g)"),
    ("ltree", "(SELECT string_agg('w' || g, '.') FROM generate_series(1, 2000) g)"),
    ("numrange", "numrange(0, repeat('123456789', 2000)::numeric)"),
    ("words", _many("text", "g")),
    ("path", "'[' || (SELECT string_agg('(1,2)', ',') FROM generate_series(1, 2000)) || ']'"),
    ("pair", f"row(1, {_BIG})"),
    ("bit(40000)", "repeat('1', 40000)"),
    *((f"{name}[]", _many(name, element)) for name, element in (
        ("smallint", "g"), ("integer", "g"), ("bigint", "g"), ("oid", "g"), ("boolean", "g % 2 = 0"), ("real", "g"),
        ("double precision", "g"), ("numeric", "g"), ("text", "g::text"), ("varchar", "g::text"),
        ("char(5)", "g::text"),
        ('"char"', "'a'"), ("citext", "g::text"), ("bytea", "'a'"), ("date", "'2024-01-01'::date + g"),
        ("timestamp", "'2024-01-01'::timestamp"), ("timestamptz", "'2024-01-01'::timestamptz"),
        ("timetz", "'12:00+00'"),
        ("json", "to_json(g)"), ("jsonb", "to_jsonb(g)"), ("uuid", "gen_random_uuid()"), ("mood", "'sad'"),
        ("inet", "'10.0.0.1'"), ("macaddr", "'08:00:2b:01:02:03'"), ("int4range", "int4range(g, g + 1)"),
        ("tstzrange", "tstzrange('2024-01-01', '2024-01-02')"))),
)  # fmt: skip

# Those for whose unchanged values Debezium writes a mark.
MARKED: Final = frozenset(
    {
        *("text", "varchar", "char(9000)", "citext", "bytea", "xml", "json", "jsonb", "hstore", "numeric", "tsvector"),
        *("ltree", "numrange", "integer[]", "bigint[]", "date[]", "text[]", "varchar[]", "char(5)[]", "json[]"),
        *("jsonb[]", "uuid[]"),
    }
)
