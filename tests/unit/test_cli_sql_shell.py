"""The shell of `cdc-views sql`: when a statement is whole, and what ends it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from cdc_views.cli.sql_shell import is_whole, shell
from cdc_views.errors import BadQuery
from cdc_views.host.signals import signal_name


@pytest.mark.parametrize(
    "text",
    [
        "SELECT 1;", "SELECT 1; -- done", "SELECT 1; /* done */\n", "SELECT ';'; ", "SELECT 'it''s';",
        r"SELECT E'\';';", 'SELECT ";" FROM t;', "DO $$ BEGIN NULL; END $$;", "DO $a$ SELECT $$;$$; $a$;",
        "SELECT a$b, $1;", "-- it's\nSELECT 1;", ";",
    ],
)  # fmt: skip
def test_text_with_its_last_semicolon_is_whole(text: str) -> None:
    assert is_whole(text)


@pytest.mark.parametrize(
    "text",
    [
        "", "SELECT 1", "SELECT ';", "SELECT 'a''; ", r"SELECT E'\'; ", 'SELECT ";', "DO $$ BEGIN NULL;",
        "DO $a$ SELECT $$;$$;", "SELECT 1 -- ;", "SELECT /* ;", "SELECT 1; SELECT 2", "SELECT 1; /* ",
    ],
)  # fmt: skip
def test_text_without_it_is_not(text: str) -> None:
    assert not is_whole(text)


class Typed:
    """Lines that are typed, one after the other, and what is executed. An error is raised in place of a line."""

    def __init__(self, *lines: str | BaseException) -> None:
        self._lines: Iterator[str | BaseException] = iter(lines)
        self.prompts: list[str] = []
        self.executed: list[str] = []

    def read(self, prompt: str) -> str:
        self.prompts.append(prompt)
        line = next(self._lines, EOFError())
        if isinstance(line, BaseException):
            raise line
        return line

    def execute(self, statements: str) -> None:
        self.executed.append(statements)
        if "nosuch" in statements:
            raise BadQuery('relation "nosuch" does not exist')

    def run(self) -> None:
        shell(lambda is_begun: "->" if is_begun else "=>", self.execute, self.read)


def test_statement_of_several_lines_runs_once_it_is_whole() -> None:
    typed = Typed("", "SELECT 'a;", "b'", ";", "SELECT 2;")
    typed.run()
    assert typed.executed == ["SELECT 'a;\nb'\n;\n", "SELECT 2;\n"]
    assert typed.prompts == ["=>", "=>", "->", "->", "=>", "=>"]


def test_error_of_a_statement_does_not_end_the_shell(capsys: pytest.CaptureFixture[str]) -> None:
    typed = Typed("SELECT nosuch;", "SELECT 1;")
    typed.run()
    assert typed.executed == ["SELECT nosuch;\n", "SELECT 1;\n"]
    assert capsys.readouterr().err == 'BadQuery: relation "nosuch" does not exist\n\n'


def test_interrupt_drops_what_was_typed() -> None:
    typed = Typed("SELECT", KeyboardInterrupt("SIGINT"), "SELECT 1;")
    typed.run()
    assert typed.executed == ["SELECT 1;\n"]
    with pytest.raises(KeyboardInterrupt) as caught:
        Typed("SELECT", KeyboardInterrupt("SIGTERM")).run()
    assert signal_name(caught.value) == "SIGTERM"


@pytest.mark.parametrize("line", [r"\q", "quit", " exit "])
def test_line_that_quits_ends_the_shell(line: str) -> None:
    typed = Typed(line, "SELECT 1;")
    typed.run()
    assert typed.executed == []
    begun = Typed("SELECT", line, ";")
    begun.run()
    assert begun.executed == [f"SELECT\n{line}\n;\n"]
