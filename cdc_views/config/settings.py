"""All settings of a project."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from cdc_views.config.engine import EngineSettings
from cdc_views.config.http import HttpSettings
from cdc_views.config.log import LogSettings
from cdc_views.config.section import Section
from cdc_views.config.source import SourceSettings
from cdc_views.config.store import StoreSettings, UpkeepSettings

_URI = re.compile(r"^[A-Za-z][A-Za-z0-9+.-]*:/|://")


def _folder(value: object) -> object:
    # As a path, "s3://bucket/lake" would be the local folder "s3:/bucket/lake". A URI may contain a password.
    if isinstance(value, str | Path) and _URI.search(str(value)):
        raise ValueError("wanted a local folder, found a URI: object stores are not supported")
    if value == "":
        raise ValueError('wanted a local folder, found an empty text; "." is the folder of the project')
    try:
        return Path(value).expanduser() if isinstance(value, str) else value
    except RuntimeError:
        raise ValueError("its ~ is the folder of no user") from None


Folder = Annotated[Path, BeforeValidator(_folder)]


class Settings(Section):
    """All settings of a project."""

    stack: Literal["native", "none"] = Field(
        "none", description="native: addresses come from `cdc-views up`; none: you give them"
    )
    warehouse: Folder = Field(Path("warehouse"), description="local folder of the Delta tables")
    views: Folder = Field(Path("views"), description="local folder of the view files")
    source: SourceSettings
    log: LogSettings
    engine: EngineSettings = EngineSettings()
    store: StoreSettings = StoreSettings()
    upkeep: UpkeepSettings = UpkeepSettings()
    http: HttpSettings = HttpSettings()
