"""Which control log a reader reads: that of a warehouse which was created again at the same place is another one."""

from __future__ import annotations

from pathlib import Path

from deltalake import DeltaTable

from cdc_views.store.control.control_log import FOLDER
from cdc_views.store.delta_log.entries import entry_identity, newest_version
from cdc_views.store.storage.disk import touching


class KnownLog:
    """The control log of a warehouse, as it was when a reader last looked. `id` identifies it."""

    def __init__(self, root: Path) -> None:
        """Raises WarehouseUnusable."""
        self._folder = root / FOLDER
        self._newest = self._look()
        self.id = self._read_id()

    def is_another(self) -> bool:
        """Whether the warehouse was created again since; then `id` is the new one. Raises WarehouseUnusable."""
        version, identity = self._newest
        self._newest = self._look()  # first: if the log is replaced meanwhile, the old entry is not found
        if identity is not None and entry_identity(self._folder, version) == identity:
            return False
        before, self.id = self.id, self._read_id()  # it takes a tenth of a second
        return self.id != before

    def _look(self) -> tuple[int, tuple[int, int] | None]:
        version = newest_version(self._folder)
        return version, entry_identity(self._folder, version)

    def _read_id(self) -> str:
        with touching(self._folder):
            return str(DeltaTable(str(self._folder)).metadata().id)
