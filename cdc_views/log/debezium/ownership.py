"""Whose a connector is. Names are only settings, and those of two projects may be the same."""

from __future__ import annotations

from typing import Final

from cdc_views.config import Settings
from cdc_views.log.debezium.connect import ConnectClient
from cdc_views.log.debezium.connector import connector_config
from cdc_views.log.debezium.placeholder import new_placeholder

_WHAT_IT_READS: Final = ("topic.prefix", "slot.name", "database.dbname")
_WHERE: Final = ("database.hostname", "database.port")
OTHER_NAMES: Final = "give this project a log.connector, a log.topic_prefix and a source.slot of its own"


def other_owner(settings: Settings, *, may_have_moved: bool) -> str | None:
    """How the connector of our name differs from ours; None if it does not, or if there is none.

    The server of a capture that was read before is known by its contents, so it `may_have_moved` to another address.
    Raises NotRunning, ConnectorFailed.
    """
    found = ConnectClient(settings.log.connect_url).config(settings.log.connector)
    if found is None:
        return None
    wanted = connector_config(settings, new_placeholder())
    names = _WHAT_IT_READS if may_have_moved else (*_WHAT_IT_READS, *_WHERE)
    others = [
        f'{name} is "{found.get(name)}", wanted "{wanted[name]}"' for name in names if found.get(name) != wanted[name]
    ]
    return "; ".join(others) or None
