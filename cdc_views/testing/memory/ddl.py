"""Reads Postgres's CREATE TABLE into what the source's catalog would contain for the table.

Reads names, types, NOT NULL, defaults, serial and identity columns, and the primary key; enums and domains; and the
separate statements ALTER TABLE ... ADD PRIMARY KEY and REPLICA IDENTITY FULL. Accepts UNIQUE, CHECK and REFERENCES
without enforcing them. sqlglot is only the tokenizer: its trees omit what no other database has.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal, NoReturn

from sqlglot import TokenType
from sqlglot.dialects.postgres import Postgres
from sqlglot.errors import TokenError

from cdc_views.base.names import TableName
from cdc_views.capture.types import arrow_schema
from cdc_views.errors import BadTable
from cdc_views.source.catalog import SourceColumn, SourceTable
from cdc_views.source.toast import ServerFormat
from cdc_views.testing.memory.values import TYPES, numeric_typmod

PLACEHOLDER: Final = "__cdc_views_unavailable_00000000000000000000000000000000"
"""What the events of these tables have for unchanged values."""


@dataclass(frozen=True)
class Default:
    """Where a column omitted by an Insert gets its value; `value` is the value of a literal."""

    kind: Literal["literal", "sequence", "now", "uuid"]
    value: Any = None


@dataclass(frozen=True)
class DeclaredColumn:
    """A column, and what its catalog entry does not contain; `labels` are the labels of its enum."""

    column: SourceColumn
    default: Default | None = None
    labels: tuple[str, ...] | None = None


@dataclass(frozen=True)
class DeclaredTable:
    """A table as its CREATE TABLE declares it."""

    source: SourceTable
    columns: dict[str, DeclaredColumn]

    @property
    def name(self) -> str:
        """`schema.table`."""
        return str(self.source.name)


def read_tables(statements: str | Iterable[str]) -> list[DeclaredTable]:
    """Read CREATE TABLE statements. Raises BadTable, UnsupportedType for a type without a form in a mirror."""
    reader = _StatementReader()
    for text in [statements] if isinstance(statements, str) else statements:
        for words in _statements(text):
            reader.read(words)
    for table in reader.tables.values():
        if not table.source.key:
            raise BadTable(
                f'table "{table.name}" has no primary key',
                hint="a mirror needs one, so that its rows can be told apart",
            )
        arrow_schema(table.source)
    return list(reader.tables.values())


@dataclass(frozen=True)
class _Word:
    """A token: a word in lower case, a quoted name as written, a string, a number, or a symbol."""

    kind: Literal["word", "name", "text", "number", "symbol"]
    text: str


_TEXTS: Final = (TokenType.STRING, TokenType.BYTE_STRING, TokenType.HEREDOC_STRING, TokenType.RAW_STRING)


def _statements(sql: str) -> list[list[_Word]]:
    try:
        tokens = Postgres().tokenize(sql)
    except TokenError:
        raise BadTable("a statement with a text, name or comment that does not end", hint="close it") from None
    found: list[list[_Word]] = [[]]
    for token in tokens:
        if token.token_type is TokenType.SEMICOLON:
            found.append([])
        elif token.token_type in _TEXTS:
            found[-1].append(_Word("text", token.text))
        elif token.token_type is TokenType.IDENTIFIER:
            found[-1].append(_Word("name", token.text))
        elif token.token_type is TokenType.NUMBER:
            found[-1].append(_Word("number", token.text))
        elif token.text[:1].isalpha() or token.text[:1] == "_":
            # sqlglot returns PRIMARY KEY and DOUBLE PRECISION as one token.
            found[-1] += [_Word("word", part.lower()) for part in token.text.split()]
        else:
            found[-1].append(_Word("symbol", token.text))
    return [words for words in found if words]


# Common type names, and their names in pg_type.
_ALIASES: Final = {
    "smallint": "int2", "int": "int4", "integer": "int4", "bigint": "int8", "boolean": "bool", "real": "float4",
    "double precision": "float8", "decimal": "numeric", "dec": "numeric", "character varying": "varchar",
    "char varying": "varchar", "national character varying": "varchar", "character": "bpchar", "char": "bpchar",
    "national character": "bpchar", "nchar": "bpchar", "timestamp without time zone": "timestamp",
    "timestamp with time zone": "timestamptz", "time without time zone": "time", "time with time zone": "timetz",
}  # fmt: skip
_SERIALS: Final = {
    "smallserial": "int2", "serial2": "int2", "serial": "int4", "serial4": "int4", "bigserial": "int8",
    "serial8": "int8",
}  # fmt: skip
_SECOND_WORDS: Final = {"double": ("precision",), "character": ("varying",), "char": ("varying",),
                        "national": ("character", "char", "varying")}  # fmt: skip
_INTERVAL_WORDS: Final = ("year", "month", "day", "hour", "minute", "second", "to")
# Types that Postgres can store out of line; an update that does not change such a value then omits it.
_TOASTABLE: Final = frozenset(
    ("text", "varchar", "bpchar", "citext", "json", "jsonb", "xml", "bytea", "hstore", "numeric", "ltree", "tsvector")
)
_UTF8: Final = ServerFormat(character_bytes=4, alignment=8)
_CONSTRAINTS: Final = ("constraint", "primary", "unique", "check", "foreign", "exclude")
_IGNORED: Final = (("create", "schema"), ("create", "extension"), ("create", "index"), ("create", "unique", "index"),
                   ("create", "sequence"), ("comment", "on"))  # fmt: skip


@dataclass(frozen=True)
class _Type:
    name: str
    typmod: int = -1
    element: str | None = None
    labels: tuple[str, ...] | None = None
    is_serial: bool = False


class _StatementReader:
    """Reads the statements in order. A statement can use the types and tables of earlier ones."""

    def __init__(self) -> None:
        self.tables: dict[str, DeclaredTable] = {}
        self._types: dict[str, _Type] = {}
        self._words: Sequence[_Word] = ()
        self._next = 0
        self._place = ""

    def read(self, words: Sequence[_Word]) -> None:
        self._words, self._next, self._place = words, 0, "a statement"
        if any(self._starts_with(*ignored) for ignored in _IGNORED):
            return
        if self._takes("create", "type"):
            self._create_enum()
        elif self._takes("create", "domain"):
            self._create_domain()
        elif self._takes("alter", "table"):
            self._alter_table()
        elif self._takes("create", "table") or self._takes("create", "unlogged", "table"):
            self._create_table()
        else:
            found = " ".join(word.text for word in words[:2]).upper()
            self._fail(f'found "{found}", wanted CREATE TABLE', hint="also CREATE TYPE ... AS ENUM and CREATE DOMAIN")

    def _create_enum(self) -> None:
        name = self._type_name()
        self._place = f'type "{name}"'
        self._expect("as")
        self._expect("enum")
        self._expect("(")
        labels = []
        while not self._takes(")"):
            labels.append(self._take("a label").text)
            self._takes(",")
        self._types[name] = _Type("enum", labels=tuple(labels))

    def _create_domain(self) -> None:
        name = self._type_name()
        self._place = f'domain "{name}"'
        self._takes("as")
        self._types[name] = self._type()  # its constraints are not enforced

    def _alter_table(self) -> None:
        self._takes("if", "exists")
        self._takes("only")
        name = self._table_name()
        self._place = f'table "{name}"'
        if str(name) not in self.tables:
            self._fail("is altered and does not exist")
        table = self.tables[str(name)]
        if self._takes("replica", "identity", "full"):
            self.tables[str(name)] = replace(table, source=replace(table.source, replica_identity="full"))
            return
        self._expect("add")
        key = self._table_constraint()
        if key:
            self.tables[str(name)] = _with_key(table, self._known(key, table.columns))

    def _create_table(self) -> None:
        self._takes("if", "not", "exists")
        name = self._table_name()
        self._place = f'table "{name}"'
        if str(name) in self.tables:
            self._fail("is there already")
        columns: dict[str, DeclaredColumn] = {}
        key: tuple[str, ...] = ()
        self._expect("(")
        while not self._takes(")"):
            if self._at().kind == "word" and self._at().text in _CONSTRAINTS:
                key = self._table_constraint() or key
            else:
                column, is_key = self._column(len(columns) + 1)
                if column.column.name in columns:
                    self._fail(f'column "{column.column.name}" appears twice')
                columns[column.column.name] = column
                key = (column.column.name,) if is_key else key
            if not self._starts_with(")"):
                self._expect(",")
        source = SourceTable(name, len(self.tables) + 1, (), (), False, "default", placeholder=PLACEHOLDER)
        table = DeclaredTable(source, columns)
        self.tables[str(name)] = _with_key(table, self._known(key, columns))

    def _known(self, key: Sequence[str], columns: Iterable[str]) -> tuple[str, ...]:
        unknown = [name for name in key if name not in columns]
        if unknown:
            self._fail(f'the primary key names column "{unknown[0]}", which does not exist')
        return tuple(key)

    def _table_constraint(self) -> tuple[str, ...]:
        """The columns of a PRIMARY KEY; none for another constraint."""
        if self._takes("constraint"):
            self._take("a name")
        if not self._takes("primary", "key"):
            self._skip()
            return ()
        self._expect("(")
        names = []
        while not self._takes(")"):
            names.append(self._take("a column").text)
            self._takes(",")
        self._skip()
        return tuple(names)

    def _column(self, number: int) -> tuple[DeclaredColumn, bool]:
        name = self._take("a column name").text
        self._place = f'{self._place.split(": ")[0]}: column "{name}"'
        kind = self._type()
        default = Default("sequence") if kind.is_serial else None
        not_null, is_key = kind.is_serial, False
        while not self._starts_with(",") and not self._starts_with(")"):
            if self._takes("not", "null"):
                not_null = True
            elif self._takes("primary", "key"):
                is_key = True
            elif self._takes("default"):
                default = self._default()
            elif self._takes("generated"):
                default = self._identity()
                not_null = True
            elif self._takes("collate"):
                self._dotted()
            else:
                self._skip_one()
        toastable = kind.element is not None or (kind.name in _TOASTABLE and _UTF8.may_move(kind.name, kind.typmod))
        column = SourceColumn(name, number, kind.name, kind.typmod, kind.element, not_null, toastable)
        self._place = self._place.split(": ")[0]
        return DeclaredColumn(column, default, kind.labels), is_key

    def _identity(self) -> Default:
        if not self._takes("always"):
            self._expect("by")
            self._expect("default")
        self._expect("as")
        if not self._takes("identity"):
            self._fail("is generated from other columns", hint="declare a plain column, and give its value")
        if self._starts_with("("):
            self._skip_one()
        return Default("sequence")

    def _default(self) -> Default:
        found = self._default_value()
        while self._takes("::"):
            self._type()
        return found

    def _default_value(self) -> Default:
        if self._takes("("):
            found = self._default()
            self._expect(")")
            return found
        sign = "-" if self._takes("-") else ""
        word = self._take("a default")
        if word.kind in ("number", "text"):
            return Default("literal", sign + word.text)
        if word.text in ("null", "true", "false"):
            return Default("literal", None if word.text == "null" else word.text)
        if word.text in ("array", "{") or not self._default_function(word.text):
            self._fail(f'has a default that is computed ("{word.text}")', hint="wanted a literal, now() or a sequence")
        return Default(self._default_function(word.text) or "now")

    def _default_function(self, name: str) -> Literal["sequence", "now", "uuid"] | None:
        if self._starts_with("("):
            self._skip_one()
        if name in ("now", "current_timestamp", "current_date", "localtimestamp", "transaction_timestamp",
                    "clock_timestamp", "statement_timestamp"):  # fmt: skip
            return "now"
        if name in ("gen_random_uuid", "uuid_generate_v4", "uuidv4"):
            return "uuid"
        return "sequence" if name == "nextval" else None

    def _type(self) -> _Type:
        first = self._at()
        name = self._type_name()
        if first.kind == "word":
            while name.split()[-1] in _SECOND_WORDS and self._at().text in _SECOND_WORDS[name.split()[-1]]:
                name += " " + self._take("a type").text
        sizes = self._sizes()
        if name in ("timestamp", "time") and (self._takes("with") or self._takes("without")):
            has_zone = self._words[self._next - 1].text == "with"
            self._expect("time")
            self._expect("zone")
            name += "tz" if has_zone else ""
        while name == "interval" and self._at().text in _INTERVAL_WORDS:
            self._next += 1
        sizes = sizes or self._sizes()
        is_array = self._takes("array")
        while self._takes("["):
            is_array = True
            if self._at().kind == "number":
                self._next += 1
            self._expect("]")
        return self._resolved(name, first.kind == "name", sizes, is_array)

    def _resolved(self, name: str, is_quoted: bool, sizes: Sequence[int], is_array: bool) -> _Type:
        if not is_quoted and name in _SERIALS:
            return _Type(_SERIALS[name], is_serial=True)
        found = self._types.get(name)
        if found is None:
            base = name if is_quoted else _ALIASES.get(name, name)
            if base not in TYPES:
                self._fail(f'has the unknown type "{name}"', hint="enums and domains are declared before their tables")
            is_char = base == "bpchar" and name in _ALIASES and not sizes
            found = _Type(base, _typmod(base, (1,) if is_char else sizes))
        if not is_array:
            return found
        return _Type(f"_{found.name}", found.typmod, found.name, found.labels)

    def _sizes(self) -> tuple[int, ...]:
        if not self._takes("("):
            return ()
        sizes = []
        while not self._takes(")"):
            sign = -1 if self._takes("-") else 1
            sizes.append(sign * int(self._take("a number").text))
            self._takes(",")
        return tuple(sizes)

    def _type_name(self) -> str:
        name = self._dotted()
        return name.rpartition(".")[2]

    def _table_name(self) -> TableName:
        parts = self._parts()
        if len(parts) > 2:
            self._fail(f"a table is named by {len(parts)} parts, wanted schema.table")
        return TableName("public" if len(parts) == 1 else parts[0], parts[-1])

    def _dotted(self) -> str:
        return ".".join(self._parts())

    def _parts(self) -> list[str]:
        parts = [self._take("a name").text]
        while self._takes("."):
            parts.append(self._take("a name").text)
        return parts

    def _at(self) -> _Word:
        return self._words[self._next] if self._next < len(self._words) else _Word("symbol", "")

    def _take(self, wanted: str) -> _Word:
        word = self._at()
        if word.kind == "symbol":
            self._fail(f'found "{word.text or "the end"}", wanted {wanted}')
        self._next += 1
        return word

    def _starts_with(self, *texts: str) -> bool:
        found = self._words[self._next : self._next + len(texts)]
        return [word.text for word in found if word.kind in ("word", "symbol")] == list(texts)

    def _takes(self, *texts: str) -> bool:
        found = self._starts_with(*texts)
        self._next += len(texts) if found else 0
        return found

    def _expect(self, text: str) -> None:
        if not self._takes(text):
            self._fail(f'found "{self._at().text or "the end"}", wanted "{text}"')

    def _skip_one(self) -> None:
        """Skip a word, or everything in parentheses."""
        if not self._at().text:
            self._fail("found the end of the statement, wanted )")
        depth = 0
        while True:
            depth += {"(": 1, ")": -1}.get(self._at().text, 0) if self._at().kind == "symbol" else 0
            self._next += 1
            if depth <= 0 or self._next >= len(self._words):
                return

    def _skip(self) -> None:
        while self._next < len(self._words) and not self._starts_with(",") and not self._starts_with(")"):
            self._skip_one()

    def _fail(self, problem: str, *, hint: str | None = None) -> NoReturn:
        raise BadTable(f"{self._place}: {problem}", hint=hint)


def _typmod(base: str, sizes: Sequence[int]) -> int:
    if not sizes:
        return -1
    if base == "numeric":
        return numeric_typmod(sizes[0], sizes[1] if len(sizes) > 1 else 0)
    return sizes[0] + 4 if base in ("varchar", "bpchar") else sizes[0]


def _with_key(table: DeclaredTable, key: tuple[str, ...]) -> DeclaredTable:
    columns = {
        name: replace(declared, column=replace(declared.column, not_null=declared.column.not_null or name in key))
        for name, declared in table.columns.items()
    }
    catalog = tuple(declared.column for declared in columns.values())
    return DeclaredTable(replace(table.source, columns=catalog, key=key), columns)
