"""Postgres types that a mirror holds as text: which operations on the text answer as Postgres does on the value.

One table decides. A type that is not in it may only be selected, tested for NULL and cast. So a type that nobody has
compared is refused, never silently wrong. tests/stack/test_text_types.py asks Postgres about every line.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from cdc_views.source.catalog import SourceColumn

TEXT_FUNCTIONS_OF_CITEXT: Final = frozenset(
    {"Lower", "Upper", "Length", "OctetLength", "BitLength", "Concat", "ConcatWs", "InitCap"}
)


@dataclass(frozen=True)
class TextType:
    """What the text of a type stands for.

    `equal`: two values are equal exactly if their texts are; `unequal` says why not. `ordered`: texts sort like values;
    `unordered` says why not. `literal` is the form of a literal that Postgres prints unchanged: a literal of another
    form may equal a value whose text differs. Without it no literal can be compared; an empty pattern allows any.
    `functions`: text functions that answer as Postgres does (None: all). `unsafe_casts`: types of Spark to which the
    text must not be cast, with the reason. `write` says how to write what is meant, with `{column}` in it; `setting` is
    a setting that mirrors the column as another type, with `{place}` in it.
    """

    name: str
    write: str
    equal: bool = False
    unequal: str = ""
    ordered: bool = False
    unordered: str = ""
    literal: str | None = None
    functions: frozenset[str] | None = None
    unsafe_casts: Mapping[str, str] = field(default_factory=dict)
    setting: str = ""

    def is_canonical(self, literal: str) -> bool:
        """Whether Postgres prints a literal of this type as it is written."""
        return self.literal is not None and (not self.literal or re.fullmatch(self.literal, literal) is not None)


_AS_TEXT: Final = "write CAST({column} AS STRING) where its text is meant"
_NO_ORDER: Final = "its texts have another order than its values"
_NOT_COMPARED: Final = "equal values may have different texts"

_SECONDS: Final = r"([01]\d|2[0-3]):[0-5]\d:[0-5]\d(\.\d{0,5}[1-9])?"
_DAY: Final = r"\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])"
_OCTET: Final = r"(25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)"
_IPV4: Final = rf"{_OCTET}(\.{_OCTET}){{3}}"
_WHOLE: Final = r"(0|-?[1-9]\d*)"
_HEX: Final = "[0-9a-f]"
_CLOCK: Final = "Spark adds the date of the day on which the query runs"
_BITS: Final = "Spark reads the bits as a decimal number; write conv({column}, 2, 10)"
_FAR_TIMES: Final = "as texts, infinity, years before Christ and years of five digits have other places"
_TIME_CASTS: Final = dict.fromkeys(("timestamp", "timestamp_ntz"), _CLOCK)


def _range(bound: str) -> str:
    """The literals of a discrete range: `[a,b)`, an open side in parentheses."""
    return rf"empty|(\[{bound}|\(),({bound})?\)"


_TYPES: Final = {
    type_.name: type_
    for type_ in (
        TextType(
            "numeric",
            "write CAST({column} AS DECIMAL(38, 10)), with the digits that the values need",
            setting='list "{place}" in source.decimal_columns',
            unequal="1.0 and 1.00 are one number and two texts",
            unordered="as texts, 100 comes before 99",
        ),
        TextType(
            "numeric(p,s)",
            "write CAST({column} AS DECIMAL(38, 10)), with the digits that the values need",
            equal=True,
            unordered="as texts, 100 comes before 99",
        ),
        TextType(
            "money",
            "write CAST({column} AS DECIMAL(19, 2))",
            equal=True,
            unordered="as texts, 100.00 comes before 99.00",
            literal=r"-?(0|[1-9]\d*)\.\d\d",
            functions=frozenset(),
        ),
        TextType(
            "interval",
            "add a generated column with extract(epoch FROM {column}) to the table, or " + _AS_TEXT,
            unequal="'1 mon' and '30 days' are equal and two texts",
            unordered="as texts, '10 days' comes before '9 days'",
        ),
        TextType(
            "time",
            "write the time as Postgres prints it, as '09:00:00', or CAST({column} AS STRING) where its text is meant",
            equal=True,
            ordered=True,
            literal=rf"{_SECONDS}|24:00:00",
            unsafe_casts=_TIME_CASTS,
        ),
        TextType(
            "timetz",
            _AS_TEXT,
            unequal="the mirror holds the time at UTC without its zone, and Postgres compares the zone too",
            unordered="the mirror holds the time at UTC without its zone, and Postgres compares the zone too",
            functions=frozenset(),
            unsafe_casts=_TIME_CASTS,
        ),
        TextType(
            "uuid",
            "write the uuid in lower case with hyphens, or CAST({column} AS STRING) where its text is meant",
            equal=True,
            ordered=True,
            literal=f"{_HEX}{{8}}-{_HEX}{{4}}-{_HEX}{{4}}-{_HEX}{{4}}-{_HEX}{{12}}",
        ),
        TextType(
            "enum",
            "write CASE {column} WHEN 'first label' THEN 1 WHEN 'second label' THEN 2 ... END, or "
            "CAST({column} AS STRING) where the label's text is meant",
            equal=True,
            unordered="Postgres orders the labels as they were declared",
            literal="",
        ),
        TextType(
            "citext",
            "write lower({column})",
            unequal="'a' and 'A' are equal and two texts",
            unordered="Postgres ignores case",
            functions=TEXT_FUNCTIONS_OF_CITEXT,
        ),
        TextType("bit", "write the bits without a prefix", equal=True, ordered=True, literal="[01]+",
                 unsafe_casts=dict.fromkeys(("byte", "short", "integer", "long", "float", "double", "decimal"), _BITS)),
        TextType("inet", "write the address as Postgres prints it, or CAST({column} AS STRING) where its text is meant",
                 equal=True, unordered="as texts, 10.0.0.10 comes before 10.0.0.9",
                 literal=rf"{_IPV4}(/([12]?\d|3[01]))?", functions=frozenset()),
        TextType("cidr", "write the network as Postgres prints it, or CAST({column} AS STRING) where its text is meant",
                 equal=True, unordered="as texts, 10.0.0.0/8 comes before 9.0.0.0/8",
                 literal=rf"{_IPV4}/([12]?\d|3[012])"),
        TextType("macaddr", "write the address in lower case with colons", equal=True, ordered=True,
                 literal=f"{_HEX}{{2}}(:{_HEX}{{2}}){{5}}"),
        TextType("macaddr8", "write the address in lower case with colons", equal=True, ordered=True,
                 literal=f"{_HEX}{{2}}(:{_HEX}{{2}}){{7}}"),
        *(TextType(name, "write the range as Postgres prints it, as '[1,5)', or the text by CAST({column} AS STRING)",
                   equal=True, unordered=_NO_ORDER, literal=_range(_WHOLE)) for name in ("int4range", "int8range")),
        TextType("daterange", "write the range as Postgres prints it, as '[2024-01-01,2024-02-01)', or the text by "
                 "CAST({column} AS STRING)", equal=True, unordered=_NO_ORDER, literal=_range(_DAY)),
        TextType("numrange", _AS_TEXT, unequal="[1.0,2) and [1.00,2) are one range and two texts",
                 unordered=_NO_ORDER),
        *(TextType(name, _AS_TEXT, equal=True, unordered=_NO_ORDER)
          for name in ("tsrange", "tstzrange", "int4multirange", "int8multirange", "datemultirange", "tsmultirange",
                       "tstzmultirange")),
        *(TextType(name, "write get_json_object({column}, '$.field') for a field, or CAST({column} AS STRING) where "
                   "the text is meant", unequal=why, unordered=_NO_ORDER) for name, why in (
            ("json", "Postgres has no equality of json"),
            ("jsonb", "1.0 and 1.00 are equal in jsonb and two texts"))),
        TextType("ltree", _AS_TEXT, equal=True, unordered="Postgres compares the labels one by one"),
        TextType('"char"', _AS_TEXT, equal=True, unordered="Postgres compares the byte", literal=r"[\x20-\x7e]"),
        *(TextType(name, "write CAST({column} AS DECIMAL(20, 0))", equal=True,
                   unordered="as texts, 100 comes before 99", literal=r"0|[1-9]\d*") for name in ("xid", "xid8")),
        TextType("pg_lsn", _AS_TEXT, equal=True, unordered="as texts, 10/0 comes before 9/0"),
        TextType("tid", _AS_TEXT, equal=True, unordered="as texts, (10,1) comes before (9,1)"),
        # Columns of source.text_columns.
        *(TextType(f"{name} as text", "write CAST({column} AS DOUBLE)", unequal="-0 and 0 are equal and two texts",
                   unordered="as texts, 100 comes before 99") for name in ("float4", "float8")),
        TextType("date as text", "write CAST({column} AS DATE), which fails for dates beyond the year 9999", equal=True,
                 unordered=_FAR_TIMES, literal=_DAY),
        *(TextType(f"{name} as text", "write CAST({column} AS TIMESTAMP), which fails for times beyond the year 9999",
                   equal=True, unordered=_FAR_TIMES, literal=rf"{_DAY} {_SECONDS}{zone}")
          for name, zone in (("timestamp", ""), ("timestamptz", r"\+00"))),
    )
}  # fmt: skip

_TRUE_TEXTS: Final = frozenset({"text", "varchar", "bpchar", "name"})


def text_type(column: SourceColumn) -> TextType | None:
    """Return what the text of a column stands for, for an array that of its elements; None for text in Postgres.

    The column must be one that the mirror holds as text.
    """
    name = column.type_name if column.element is None else column.element
    if name in _TRUE_TEXTS:
        return None
    if name == "numeric":
        return _TYPES["numeric"] if column.typmod < 4 else _numeric(column.typmod)
    if column.as_text:
        return _TYPES[f"{name} as text"]
    if name == "char":
        return _TYPES['"char"']
    return _TYPES.get(name) or TextType(name, _AS_TEXT, unequal=_NOT_COMPARED, unordered=_NO_ORDER)


def _numeric(typmod: int) -> TextType:
    """numeric(precision, scale): every value has the digits of the scale, so there is a canonical literal."""
    scale = max(0, (((typmod - 4) & 0x7FF) ^ 0x400) - 0x400)
    digits = r"(0|[1-9]\d*)" + (rf"\.\d{{{scale}}}" if scale else "")
    return replace(_TYPES["numeric(p,s)"], literal=rf"(?!-0(\.0*)?$)-?{digits}")
