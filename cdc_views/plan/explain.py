"""What `explain` shows of a view: what its query does, how it is maintained, why, and the SQL that runs."""

from __future__ import annotations

from dataclasses import dataclass

from cdc_views.plan.compiled import CompiledView
from cdc_views.plan.dialect import Note
from cdc_views.plan.incremental.maintenance import Maintenance
from cdc_views.plan.lookups import lookup_lines
from cdc_views.plan.steps import step_lines


@dataclass(frozen=True)
class Explanation:
    """How a view is maintained.

    `key` is None if rows are told apart by their content; `sql` names the inputs as the manifest does; `steps` says
    what the query does, the last step first, each above those whose rows it takes; `internal` has the SELECT of each
    internal view by its name; `lookups` says what is looked up when an input changes.
    """

    view: str
    strategy: str
    reason: str
    key: tuple[str, ...] | None
    key_reason: str
    inputs: tuple[str, ...]
    sql: str
    steps: tuple[str, ...] = ()
    internal: tuple[tuple[str, str], ...] = ()
    lookups: tuple[str, ...] = ()
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
            *(["steps of the query, each over those below it:"] if self.steps else []),
            *(f"  {line}" for line in self.steps),
            *(["internal views:"] if self.internal else []),
            *(f"  {name}: {sql}" for name, sql in self.internal),
            *(["lookups:"] if self.lookups else []),
            *(f"  {line}" for line in self.lookups),
            "sql:",
            *(f"  {line}".rstrip() for line in self.sql.splitlines()),
            *(["differences from Postgres:"] if self.notes else []),
            *(line for note in self.notes for line in (f"  {note.problem()}", f"    {note.difference.write}")),
        ]


def explain(compiled: CompiledView, maintained: Maintenance, notes: tuple[Note, ...] = ()) -> Explanation:
    """Explain a compiled view and how it is maintained.

    `notes` are the places where Postgres would give another answer.
    """
    return Explanation(
        view=compiled.definition.name,
        strategy=maintained.strategy,
        reason=maintained.reason,
        key=compiled.key,
        key_reason=compiled.key_reason,
        inputs=compiled.inputs,
        sql=compiled.query({source: source for source in compiled.inputs}),
        internal=tuple((each.name, each.sql) for each in (*maintained.below, *maintained.stored)),
        steps=step_lines(compiled),
        lookups=tuple(lookup_lines(compiled.parsed, maintained)),
        notes=notes,
    )
