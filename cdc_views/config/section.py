"""What all sections of the settings have in common."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Section(BaseModel):
    """Settings that cannot be changed, and of which every name is known."""

    model_config = ConfigDict(extra="forbid", frozen=True, arbitrary_types_allowed=True)
