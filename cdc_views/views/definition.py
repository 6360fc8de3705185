"""A view file: `CREATE MATERIALIZED VIEW name [(columns)] [WITH (option [= value], ...)] AS SELECT ...`.

A file has one statement and is named for its view. The SELECT is kept as written: Spark runs that text, so its meaning
is Spark's. The view's kind may add text before and after it.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Final, Literal, NoReturn

from sqlglot import Token, TokenType

from cdc_views.base.names import HIDDEN
from cdc_views.errors import BadView
from cdc_views.views.kinds import COMMON_OPTIONS, DEFAULT_KIND, FLAGS, KINDS, Options
from cdc_views.views.selected import selected_names
from cdc_views.views.text import place, tokens_of

FORM: Final = "CREATE MATERIALIZED VIEW name [(columns)] [WITH (option [= value], ...)] AS SELECT ..."

_NAME: Final = re.compile(r"[a-z_][a-z0-9_]*")
_WORD: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True)
class ViewDefinition:
    """What a view file declares.

    `sql` is what is maintained: the SELECT as written, without the closing semicolon, and what its kind adds around
    it. `before` and `after` are the lengths of the added text. The SELECT begins at `first_line` and `first_column` of
    the file; the view's name is at `name_line` and `name_column`. All are counted from 1. `columns` are names for the
    columns of `sql`. `option_places` has `file:line:column` of each option.
    """

    name: str
    columns: tuple[str, ...] | None
    kind: str
    options: Mapping[str, str]
    sql: str
    file: Path
    first_line: int
    first_column: int
    name_line: int = 1
    name_column: int = 1
    before: int = 0
    after: int = 0
    option_places: Mapping[str, str] = field(default_factory=dict)

    @property
    def written(self) -> tuple[int, int]:
        """The offsets in `sql` at which the SELECT as written begins and ends."""
        return self.before, len(self.sql) - self.after

    def place(self, offset: int | None = None) -> str:
        """Return `file:line:column` of an offset in `sql`, by default of the SELECT.

        For text that the kind adds it is the place of the view's name.
        """
        start, end = self.written
        offset = start if offset is None else offset
        if (self.before or self.after) and not start <= offset < max(end, start + 1):
            return self.name_place
        return place(self.file, self.sql[start:end], offset - start, self.first_line, self.first_column)

    @property
    def kind_options(self) -> Options:
        """The values of the options that belong to the view's kind."""
        known = KINDS[self.kind].options
        values = {
            name: option.parse(self.options[name]) if name in self.options else option.default
            for name, option in known.items()
        }
        return Options(values, self.option_places, self.name_place)

    def derived(self) -> Iterator[ViewDefinition]:
        """Yield the further tables that the view's kind keeps for it, as views."""
        layout = {name: value for name, value in self.options.items() if name == "layout"}
        for name, sql in KINDS[self.kind].derived(self.name, self.kind_options).items():
            yield ViewDefinition(
                name, None, DEFAULT_KIND, layout, sql, self.file, self.name_line, self.name_column,
                self.name_line, self.name_column, before=len(sql),
            )  # fmt: skip

    @property
    def layout(self) -> Literal["vectors", "plain"]:
        """How deleted rows are removed from the view's table: by deletion `vectors`, or `plain` rewriting of files."""
        return "plain" if self.options.get("layout", COMMON_OPTIONS["layout"][0]) == "plain" else "vectors"

    @property
    def is_strict(self) -> bool:
        """Whether the view is refused if no strategy but FULL can maintain it."""
        return self.options.get("strict", COMMON_OPTIONS["strict"][0]) == "true"

    @property
    def text_hash(self) -> str:
        """A hash of everything that the file says except the name of the view."""
        facts = (self.columns, self.kind, sorted(self.options.items()), self.sql)
        return hashlib.sha256(repr(facts).encode()).hexdigest()[:16]

    @property
    def name_place(self) -> str:
        """`file:line:column` of the view's name."""
        return f"{self.file}:{self.name_line}:{self.name_column}"


def read_views(folder: Path) -> list[ViewDefinition]:
    """Read every `*.sql` file of a folder, by name, with the further tables of each view.

    A folder that does not exist has none. Raises BadView, also for what cannot be read.
    """
    views = []
    for file in _view_files(folder):
        try:
            view = parse_view(file.read_text(encoding="utf-8"), file)
        except UnicodeDecodeError:
            raise BadView(f"{file}:1:1: the file is not UTF-8") from None
        except OSError as error:
            raise BadView(f"{file}:1:1: the file cannot be read: {error.strerror}") from None
        views += [view, *view.derived()]
    return views


def _view_files(folder: Path) -> list[Path]:
    # Hidden files are those of editors and of other systems, such as the lock ".#name.sql" of Emacs.
    try:
        return sorted(file for file in folder.iterdir() if file.suffix == ".sql" and not file.name.startswith("."))
    except FileNotFoundError:
        return []
    except OSError as error:
        raise BadView(f'folder "{folder}" of views cannot be read: {error.strerror}') from None


def parse_view(text: str, file: Path) -> ViewDefinition:
    """Parse the text of a view file. Raises BadView whose message begins with file, line and column."""
    return _HeaderParser(text, file).definition()


class _HeaderParser:
    """Reads the words up to AS; the SELECT follows."""

    def __init__(self, text: str, file: Path) -> None:
        self._text = text
        self._file = file
        self._tokens = tokens_of(text, file)
        self._next = 0
        self._places: dict[str, str] = {}

    def definition(self) -> ViewDefinition:
        for word in ("CREATE", "MATERIALIZED", "VIEW"):
            self._expect(word)
        name_token = self._peek()
        name = self._view_name()
        columns = self._columns() if self._at("(") else None
        options = self._options() if self._at("WITH") else {}
        self._expect("AS")
        start, end = self._query()
        line, column = self._line_and_column(start)
        name_line, name_column = self._line_and_column(name_token.start if name_token else 0)
        kind = options.pop("kind", DEFAULT_KIND)
        view = ViewDefinition(
            name, columns, kind, options, self._text[start:end], self._file, line, column, name_line, name_column,
            option_places=self._places,
        )  # fmt: skip
        return _of_kind(view)

    def _view_name(self) -> str:
        token = self._take("a view name")
        name = token.text
        if token.token_type is TokenType.IDENTIFIER or not _NAME.fullmatch(name):
            self._fail(token, f'view name "{name}", wanted lower-case letters, digits and _, unquoted')
        if self._at("."):
            self._fail(token, f'view name "{name}" has a schema, wanted a name alone')
        if name.startswith(HIDDEN):
            self._fail(token, f'view name "{name}" begins with "{HIDDEN}", which is reserved')
        if self._file.stem != name:
            self._fail(token, f'view "{name}" in file "{self._file.name}"', hint=f'call the file "{name}.sql"')
        return name

    def _columns(self) -> tuple[str, ...]:
        names: list[str] = []
        self._expect("(")
        while True:
            token = self._take("a column name")
            if token.token_type is not TokenType.IDENTIFIER and not _WORD.fullmatch(token.text):
                self._fail(token, f'found "{token.text}", wanted a column name')
            if token.text.lower() in (name.lower() for name in names):
                self._fail(token, f'column "{token.text}" appears twice')
            if token.text.lower().startswith(HIDDEN):
                self._fail(token, f'column "{token.text}" begins with "{HIDDEN}", which is reserved for hidden columns')
            names.append(token.text)
            if not self._at(","):
                self._expect(")")
                return tuple(names)
            self._next += 1

    def _options(self) -> dict[str, str]:
        self._expect("WITH")
        self._expect("(")
        found: dict[str, tuple[Token, Token | None]] = {}
        while True:
            name = self._take("an option")
            if name.text.lower() in found:
                self._fail(name, f'option "{name.text}" appears twice')
            found[name.text.lower()] = (name, self._option_value(name))
            if not self._at(","):
                self._expect(")")
                break
            self._next += 1
        return self._checked(found)

    def _option_value(self, name: Token) -> Token | None:
        """The value of an option; None for a flag that stands alone."""
        if name.text.lower() in FLAGS and not self._at("="):
            return None
        self._expect("=")
        value = self._take("a value")
        if value.token_type not in (TokenType.STRING, TokenType.NUMBER) and not _WORD.fullmatch(value.text):
            self._fail(value, f'option "{name.text}" has value "{value.text}", wanted a text, a number or a word')
        return value

    def _checked(self, found: Mapping[str, tuple[Token, Token | None]]) -> dict[str, str]:
        texts = {name: "true" if value is None else value.text for name, (_, value) in found.items()}
        kind = texts.get("kind", DEFAULT_KIND)
        if kind not in KINDS:
            self._fail(
                found["kind"][1] or found["kind"][0], f'unknown kind "{kind}"', hint=_choices(kind, KINDS, "kinds")
            )
        for name, (token, value) in found.items():
            self._places[name] = place(self._file, self._text, (value or token).start)
            values, text = COMMON_OPTIONS.get(name), texts[name]
            if values is not None and text not in values:
                hint = _choices(text, list(values), f"values of {name}")
                self._fail(value or token, f'unknown {name} "{text}"', hint=hint)
            if values is None and name != "kind" and name not in KINDS[kind].options:
                allowed = [*sorted(KINDS[kind].options), *COMMON_OPTIONS, "kind"]
                self._fail(
                    token, f'unknown option "{token.text}" of kind "{kind}"', hint=_choices(name, allowed, "options")
                )
        self._check_own(kind, texts, found)
        return texts

    def _check_own(self, kind: str, texts: Mapping[str, str], found: Mapping[str, tuple[Token, Token | None]]) -> None:
        """Check the options that belong to a kind."""
        for name, option in KINDS[kind].options.items():
            if name not in found:
                if option.is_required:
                    hint = f"options of kind {kind}: {', '.join(KINDS[kind].options)}"
                    self._fail(found["kind"][0], f'kind "{kind}" without the option "{name}"', hint=hint)
                continue
            try:
                option.parse(texts[name])
            except BadView as error:
                token, value = found[name]
                self._fail(value or token, f'option "{name}": {error.message}', hint=error.hint)

    def _query(self) -> tuple[int, int]:
        """The offsets at which the SELECT begins and ends in the text."""
        first = self._take("a SELECT")
        rest = self._tokens[self._next - 1 :]
        semicolon = next((i for i, token in enumerate(rest) if token.token_type is TokenType.SEMICOLON), len(rest))
        if semicolon == 0:
            self._fail(first, "found the end of the statement, wanted a SELECT")
        if after := rest[semicolon + 1 :]:
            self._fail(after[0], "a second statement", hint="a file holds one view")
        return first.start, rest[semicolon - 1].end + 1

    def _peek(self) -> Token | None:
        return self._tokens[self._next] if self._next < len(self._tokens) else None

    def _at(self, word: str) -> bool:
        token = self._peek()
        return token is not None and token.token_type is not TokenType.IDENTIFIER and token.text.upper() == word

    def _take(self, wanted: str) -> Token:
        token = self._peek()
        if token is None:
            where = place(self._file, self._text, len(self._text.rstrip()))
            raise BadView(f"{where}: found the end of the file, wanted {wanted}", hint=f"the form is {FORM}")
        self._next += 1
        return token

    def _expect(self, word: str) -> Token:
        matches = self._at(word)
        token = self._take(word)
        if not matches:
            self._fail(token, f'found "{token.text}", wanted {word}', hint=f"the form is {FORM}")
        return token

    def _fail(self, token: Token, problem: str, *, hint: str | None = None) -> NoReturn:
        raise BadView(f"{place(self._file, self._text, token.start)}: {problem}", hint=hint)

    def _line_and_column(self, offset: int) -> tuple[int, int]:
        before = self._text[:offset].split("\n")
        return len(before), len(before[-1]) + 1


def _of_kind(view: ViewDefinition) -> ViewDefinition:
    """The view with the text that its kind adds around the SELECT."""
    try:
        KINDS[view.kind].check_select(view.kind_options, view.sql)
    except BadView as error:
        raise BadView(f"{view.place()}: {error.message}", hint=error.hint) from None
    columns = view.columns or selected_names(view.sql)
    around = KINDS[view.kind].around(view.kind_options, columns)
    if around is None:
        return view
    before, after = around
    # The line break ends a comment with which the text may end.
    sql = f"{before}{view.sql}\n{after}"
    return replace(view, columns=None, sql=sql, before=len(before), after=len(after) + 1)


def _choices(found: str, known: Mapping[str, object] | list[str], what: str) -> str:
    close = get_close_matches(found, list(known), n=1)
    names = ", ".join(f'"{name}"' for name in known)
    return f'did you mean "{close[0]}"' if close else f"known {what}: {names}"
