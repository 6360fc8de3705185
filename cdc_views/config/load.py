"""Read the settings of a project from `cdc-views.yaml`. Flags override the environment, which overrides the file.

A value may be a reference, `${env:NAME}` or `${file:PATH}`. The value that it refers to is read when the settings are
loaded, and is never printed. The environment variable of a setting is `CDC_VIEWS_` and its path in capitals, joined by
two underscores: `CDC_VIEWS_SOURCE__DSN`.

With `stack: native`, addresses of Postgres, Kafka and Connect that the file omits come from the stack that
`cdc-views up` started.

pydantic-settings is not used: it would replace `_from_environment` only, and add sources of its own for references,
for lists with commas, for the file with our errors, and for the addresses of the native stack.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import yaml
from pydantic import TypeAdapter, ValidationError

from cdc_views.config.http import HttpSettings
from cdc_views.config.lists import split
from cdc_views.config.section import Section
from cdc_views.config.settings import Folder, Settings
from cdc_views.errors import BadConfig, NotRunning
from cdc_views.host.locations import state_folder

FILE_NAME: Final = "cdc-views.yaml"
ENVIRONMENT_PREFIX: Final = "CDC_VIEWS_"
STACK_FILE: Final = "stack.json"

_LISTS: Final = ("source.tables", "source.text_columns", "source.exclude_columns", "http.tokens")
_SETTINGS_HINT: Final = "docs/settings.md lists every setting"
_REFERENCE = re.compile(r"^\$\{(env|file):([^}]+)\}$")
# In a message of the YAML parser: an alias or tag, and not a single character.
_QUOTED = re.compile(r""" (['"]).{2,}\1""")
_SECTIONS: Final[Mapping[str, type[Section]]] = {
    name: field.annotation
    for name, field in Settings.model_fields.items()
    if isinstance(field.annotation, type) and issubclass(field.annotation, Section)
}


def load_settings(project: Path, overrides: Mapping[str, str] | None = None) -> Settings:
    """Read the project's settings.

    `overrides` are flags, by dotted path (`source.slot`). Relative paths are relative to `project`.
    Raises BadConfig, and NotRunning if the addresses of a native stack are needed and the stack is down.
    """
    values, file = _read(project, overrides or {})
    if values.get("stack") == "native":
        _fill_addresses(values)
    try:
        settings = Settings.model_validate(_resolved(values, file))
    except ValidationError as error:
        raise BadConfig(_describe(error, file), hint=_SETTINGS_HINT) from None
    return settings.model_copy(
        update={"warehouse": (project / settings.warehouse).absolute(), "views": (project / settings.views).absolute()}
    )


def load_warehouse(project: Path, overrides: Mapping[str, str] | None = None) -> Path:
    """Read only the folder of the Delta tables, which needs no stack and no secrets. Raises BadConfig."""
    default = Settings.model_fields["warehouse"].default
    folder: Path = _load_one("warehouse", Folder, default, project, overrides or {})
    return (project / folder).absolute()


def load_http(project: Path, overrides: Mapping[str, str] | None = None) -> HttpSettings:
    """Read only the section `http`, which needs no stack and no other secrets. Raises BadConfig."""
    settings: HttpSettings = _load_one("http", HttpSettings, {}, project, overrides or {})
    return settings


def _load_one(name: str, kind: Any, default: Any, project: Path, overrides: Mapping[str, str]) -> Any:
    """Read one setting or section, and check the names of all."""
    values, file = _read(project, overrides)
    if unknown := _unknown_names(values):
        raise BadConfig(f'settings in "{file}" are not valid: {", ".join(unknown)} unknown', hint=_SETTINGS_HINT)
    given = _resolved({name: values.get(name, default)}, file)
    try:
        return TypeAdapter(dict[str, kind]).validate_python(given)[name]
    except ValidationError as error:
        raise BadConfig(_describe(error, file), hint=_SETTINGS_HINT) from None


def _read(project: Path, overrides: Mapping[str, str]) -> tuple[dict[str, Any], Path]:
    file = project / FILE_NAME
    if not file.is_file():
        raise BadConfig(
            f'no "{FILE_NAME}" in "{project}"', hint='run "cdc-views init" there, or give the folder with -C'
        )
    try:
        values = yaml.safe_load(file.read_text(encoding="utf-8")) or {}
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise BadConfig(f'"{file}" is not YAML: {_problem(error)}') from None
    except ValueError:  # its message quotes the value
        raise BadConfig(f'"{file}" is not valid: a value without quotes is no date or number') from None
    except RecursionError:
        raise BadConfig(f'"{file}" is not valid: it nests too deeply') from None
    except OSError as error:
        raise BadConfig(f'"{file}" cannot be read: {error.strerror}') from None
    if not isinstance(values, dict):
        raise BadConfig(f'"{file}" holds a {type(values).__name__}, wanted a mapping')
    for section in _SECTIONS.keys() & values.keys():
        # A section with only comments is read as null.
        values[section] = {} if values[section] is None else values[section]
        if not isinstance(values[section], dict):
            raise BadConfig(f'"{section}" in "{file}" is not a mapping', hint=_SETTINGS_HINT)
    for path, value in {**_from_environment(), **overrides}.items():
        _set(values, path, value)
    return values, file


def _problem(error: yaml.YAMLError | UnicodeDecodeError) -> str:
    """Where the text is wrong, and why, without any of the text: the parser's own message quotes the line."""
    if isinstance(error, yaml.MarkedYAMLError) and error.problem_mark is not None:
        mark, problem = error.problem_mark, error.problem or "not valid"
        problem = problem if problem.startswith("expected ") else _QUOTED.sub("", problem)
        return f"line {mark.line + 1}, column {mark.column + 1}: {problem}"
    return "it has characters that are not text" if isinstance(error, yaml.reader.ReaderError) else "it is not UTF-8"


def _unknown_names(values: Mapping[str, Any]) -> list[str]:
    below = [f"{section}.{name}" for section, model in _SECTIONS.items()
             for name in values.get(section, {}) if name not in model.model_fields]  # fmt: skip
    return [*(str(name) for name in values if name not in Settings.model_fields), *below]


def _from_environment() -> dict[str, str]:
    # Other names without a section are no settings: CDC_VIEWS_STATE and CDC_VIEWS_CACHE.
    paths = {
        name: name.removeprefix(ENVIRONMENT_PREFIX).lower().replace("__", ".")
        for name in os.environ
        if name.startswith(ENVIRONMENT_PREFIX)
    }
    alone = Settings.model_fields.keys() - _SECTIONS.keys()
    return {path: os.environ[name] for name, path in paths.items() if "__" in name or path in alone}


def _set(values: dict[str, Any], path: str, value: str) -> None:
    *sections, last = path.split(".")
    for section in sections:
        values = values.setdefault(section, {})
        if not isinstance(values, dict):
            raise BadConfig(f'"{path}" is not a setting: "{section}" has no settings below it', hint=_SETTINGS_HINT)
    if not sections and last in _SECTIONS:
        raise BadConfig(f'"{path}" is a section, wanted a setting such as "{path}.name"', hint=_SETTINGS_HINT)
    values[last] = split(value) if path in _LISTS else value


def _fill_addresses(values: dict[str, Any]) -> None:
    source, log = values.setdefault("source", {}), values.setdefault("log", {})
    missing = [section for section, key in ((source, "dsn"), (log, "bootstrap_servers"), (log, "connect_url"))
               if key not in section]  # fmt: skip
    if not missing:
        return
    addresses = native_addresses()
    source.setdefault("dsn", addresses["dsn"])
    log.setdefault("bootstrap_servers", addresses["bootstrap_servers"])
    log.setdefault("connect_url", addresses["connect_url"])


def native_addresses() -> dict[str, str]:
    """Return the addresses of the native stack, by the names of the settings. Raises NotRunning, BadConfig."""
    file = state_folder() / STACK_FILE
    try:
        found = json.loads(file.read_text())
        return {name: str(found[name]) for name in ("dsn", "bootstrap_servers", "connect_url")}
    except FileNotFoundError:
        raise NotRunning(
            f'the native stack is not running: there is no "{file}"',
            hint='start it with "cdc-views up"; one that runs was started with another CDC_VIEWS_STATE',
        ) from None
    except OSError as error:
        raise BadConfig(
            f'"{file}" cannot be read: {error.strerror}',
            hint='run this as the user that ran "cdc-views up", or give the addresses as settings',
        ) from None
    except (ValueError, LookupError, TypeError):
        raise BadConfig(f'"{file}" does not hold the addresses of a stack', hint='run "cdc-views up"') from None


def _resolved(values: dict[str, Any], file: Path) -> dict[str, Any]:
    try:
        return {name: _resolve(value, file) for name, value in values.items()}
    except RecursionError:
        raise BadConfig(f'a setting in "{file}" contains itself, or nests too deeply') from None


def _resolve(value: Any, file: Path) -> Any:
    if isinstance(value, dict):
        return {key: _resolve(inner, file) for key, inner in value.items()}
    if isinstance(value, list):
        return [_resolve(inner, file) for inner in value]
    if isinstance(value, str) and (reference := _REFERENCE.match(value)):
        return _secret(reference[1], reference[2], file)
    return value


def _secret(kind: str, name: str, file: Path) -> str:
    if kind == "env":
        if name not in os.environ:
            raise BadConfig(f'"{file}" refers to the environment variable "{name}", which is not set')
        return os.environ[name]
    try:
        return (file.parent / name).read_text(encoding="utf-8").strip()
    except OSError as error:
        raise BadConfig(f'"{file}" refers to the file "{name}", which cannot be read: {error.strerror}') from None
    except ValueError:
        raise BadConfig(f'"{file}" refers to the file "{name}", which is not UTF-8') from None


def _describe(error: ValidationError, file: Path) -> str:
    # include_input=False: an input may be a secret.
    problems = [
        f"{'.'.join(str(part) for part in problem['loc'])}: {_one_line(problem['msg']).removeprefix('Value error, ')}"
        for problem in error.errors(include_input=False, include_url=False, include_context=False)
    ]
    return f'settings in "{file}" are not valid: ' + "; ".join(problems)


def _one_line(text: object) -> str:
    return " ".join(str(text).split())
