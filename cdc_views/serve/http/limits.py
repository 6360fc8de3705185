"""How much may happen at the same time. What is over a limit is refused at once, never queued without bound."""

from __future__ import annotations

from cdc_views.errors import ServerBusy


class Slots:
    """At most a given number of things at a time."""

    def __init__(self, count: int, name: str) -> None:
        self._free = count
        self._count = count
        self._name = name

    @property
    def taken(self) -> int:
        """How many there are now."""
        return self._count - self._free

    def take(self) -> Slot:
        """Take one. Raises ServerBusy if none is left."""
        if self._free == 0:
            raise ServerBusy(f"the server has {self._count} {self._name}, which is the limit", hint="try again later")
        self._free -= 1
        return Slot(self)

    def _give_back(self) -> None:
        self._free += 1


class Slot:
    """One of the slots, until it is released."""

    def __init__(self, slots: Slots) -> None:
        self._slots: Slots | None = slots

    def release(self) -> None:
        """Give the slot back; a second call does nothing."""
        if self._slots is not None:
            self._slots._give_back()
            self._slots = None


class Unsent:
    """The bytes of all answers that clients have not read yet."""

    def __init__(self, most_bytes: int) -> None:
        self._most = most_bytes
        self.bytes = 0

    def take(self, size: int) -> None:
        """Count an answer. Raises ServerBusy if there are too many bytes then; the only answer may be of any size."""
        if self.bytes and self.bytes + size > self._most:
            raise ServerBusy(
                f"clients have not read {self.bytes >> 20} MiB of their answers; the limit is {self._most >> 20} MiB",
                hint="try again later, or ask for less",
            )
        self.bytes += size

    def give_back(self, size: int) -> None:
        """Count an answer that is sent, or whose client is gone."""
        self.bytes -= size
