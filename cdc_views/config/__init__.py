"""Settings: typed and validated. One file for each section, `settings.py` has all of them, `load.py` reads them."""

from cdc_views.config.engine import INTERPRETED, SHORT_LIVED, EngineSettings
from cdc_views.config.http import HttpSettings, is_loopback
from cdc_views.config.load import FILE_NAME, STACK_FILE, load_http, load_settings, load_warehouse
from cdc_views.config.log import LogSettings
from cdc_views.config.settings import Settings
from cdc_views.config.source import SourceSettings
from cdc_views.config.store import StoreSettings, UpkeepSettings

__all__ = [
    "FILE_NAME",
    "INTERPRETED",
    "SHORT_LIVED",
    "STACK_FILE",
    "EngineSettings",
    "HttpSettings",
    "LogSettings",
    "Settings",
    "SourceSettings",
    "StoreSettings",
    "UpkeepSettings",
    "is_loopback",
    "load_http",
    "load_settings",
    "load_warehouse",
]
