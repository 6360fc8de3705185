"""What a kind decides about its views. Maintenance is the engine's, and the same for all kinds.

The methods are called in this order: `check_select`, `around` and `derived` when the view file is read, `key` and
`versions` when the query is compiled, `record` when Spark has given the types of the columns. What a reader needs to
know is in `record`, since it has the tables and no view files.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, ClassVar, Final, NoReturn

from cdc_views.errors import BadView
from cdc_views.views.kinds.options import Option, spelled

_NONE: Final[Mapping[str, str]] = MappingProxyType({})
_NESTED: Final = ("list", "large_list", "struct", "map")
_COLLATED: Final = " collate "


@dataclass(frozen=True)
class Options:
    """The checked options of a view, without those that all kinds have.

    `values` are what the options' `parse` returns, with their defaults; `places` has `file:line:column` of each option
    that is written, and `name_place` that of the view's name.
    """

    values: Mapping[str, Any]
    places: Mapping[str, str]
    name_place: str

    def refuse(self, option: str, problem: str, *, hint: str | None = None) -> NoReturn:
        """Raise BadView at the place of an option."""
        raise BadView(f"{self.places.get(option, self.name_place)}: {problem}", hint=hint)

    def spelled(self, option: str, name: str, known: Sequence[str]) -> str:
        """The column of these that an option means, whatever its case. Raises BadView at the place of the option."""
        try:
            return spelled(name, known)
        except BadView as error:
            self.refuse(option, f'option "{option}": {error.message}', hint=error.hint)

    def require_flat(self, option: str, what: str, type_: str) -> None:
        """Raise BadView at the place of an option if its column is a list, a structure or a map, or has a collation.

        `type_` is the Arrow type; of a text with a collation, which readers would compare otherwise, it is Spark's.
        """
        if _COLLATED in type_:
            self.refuse(option, f"{what} is of type {type_}, wanted no collation", hint="select it without COLLATE")
        if type_.startswith(_NESTED):
            self.refuse(option, f"{what} is of type {type_}, wanted one that has no parts")


@dataclass(frozen=True)
class ProvenKey:
    """What is proven about the rows of a view.

    `columns` are those of the SELECT; None if they are not known before Spark has seen it. `key` identifies a row: ()
    if there is at most one, None if no key is proven. `reason` explains it.
    """

    columns: tuple[str, ...] | None
    key: tuple[str, ...] | None
    reason: str


class Kind:
    """A kind of views, here a plain SELECT."""

    name: ClassVar[str]
    options: ClassVar[Mapping[str, Option]] = MappingProxyType({})
    """Its own options, by name in lower case."""

    def check_select(self, options: Options, select: str) -> None:
        """Raise BadView, without a place, if the kind does not take this SELECT, which may have errors of its own."""

    def around(self, options: Options, columns: Sequence[str] | None) -> tuple[str, str] | None:
        """The text before and after the SELECT in what is maintained; None if that is the SELECT alone.

        `columns` are the names of its columns, if they are written: the text after it must give them to the SELECT, as
        `) AS entries (a, b)` does, since the view may declare other names. Write `*` if they are not known. Where they
        are, a change of a column that the view does not have costs nothing. No name may begin with `_cv_`.
        """
        return None

    def derived(self, view: str, options: Options) -> Mapping[str, str]:
        """Further tables of the view by name: a SELECT for each, which may read the view and the others.

        Each is a view like any other: it is maintained and published in the same epoch. Its name should begin with
        that of the view.
        """
        return _NONE

    def versions(self) -> tuple[str, ...]:
        """What decides the rows beside the text: with other versions, the view has another table."""
        return ()

    def key(self, options: Options, proven: ProvenKey) -> tuple[str, ...] | None:
        """The key of the table. It must identify a row, and its first columns order the files. Raises BadView."""
        return proven.key

    def record(self, options: Options, types: Mapping[str, str], key: tuple[str, ...] | None) -> Mapping[str, Any]:
        """What readers need to know, as values of JSON: a setting of the Delta table (`StoredTable.kind`).

        `types` are the Arrow types of the view's columns by name. Raises BadView.
        """
        return {}
