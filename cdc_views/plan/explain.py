"""What `explain` shows of a view: how it is maintained, why, and the SQL that runs."""

from __future__ import annotations

from dataclasses import dataclass

from cdc_views.plan.compiled import CompiledView
from cdc_views.plan.dialect import Note


@dataclass(frozen=True)
class Explanation:
    """How a view is maintained.

    `key` is None if rows are told apart by their content; `sql` names the inputs as the manifest does.
    """

    view: str
    strategy: str
    reason: str
    key: tuple[str, ...] | None
    key_reason: str
    inputs: tuple[str, ...]
    sql: str
    notes: tuple[Note, ...] = ()

    def lines(self) -> list[str]:
        """Return the explanation as lines of text: one fact a line, then the SQL, then the differences from
        Postgres.
        """
        key = "none" if self.key is None else f"({', '.join(self.key)})"
        return [
            f"view: {self.view}",
            f"strategy: {self.strategy}: {self.reason}",
            f"key: {key}: {self.key_reason}",
            f"inputs: {', '.join(self.inputs) or 'none'}",
            "sql:",
            *(f"  {line}".rstrip() for line in self.sql.splitlines()),
            *(["differences from Postgres:"] if self.notes else []),
            *(line for note in self.notes for line in (f"  {note.problem()}", f"    {note.difference.write}")),
        ]


def explain(compiled: CompiledView, notes: tuple[Note, ...] = ()) -> Explanation:
    """Explain a compiled view; `notes` are the places where Postgres would give another answer."""
    return Explanation(
        view=compiled.definition.name,
        strategy=compiled.strategy,
        reason=compiled.reason,
        key=compiled.key,
        key_reason=compiled.key_reason,
        inputs=compiled.inputs,
        sql=compiled.query({source: source for source in compiled.inputs}),
        notes=notes,
    )
