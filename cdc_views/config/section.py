"""What all sections of the settings have in common."""

from __future__ import annotations

from typing import Final

from pydantic import BaseModel, ConfigDict

TEN_YEARS_S: Final = 10 * 366 * 24 * 3600
"""The bound of times in settings: of much longer ones, Python can compute no date and no timeout."""


class Section(BaseModel):
    """Settings that cannot be changed, and of which every name is known."""

    model_config = ConfigDict(extra="forbid", frozen=True, arbitrary_types_allowed=True, allow_inf_nan=False)
