"""Types of exact numbers: whole numbers and decimals, as Arrow and Spark have them, and what Spark makes of several.

Their sums do not depend on the order of the rows, and what was added can be subtracted. Neither holds for floats.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal
from typing import Final

from sqlglot import exp

from cdc_views.plan.incremental.scope import Scope

_MOST_DIGITS: Final = 38
_DIGITS: Final = {8: 3, 16: 5, 32: 10, 64: 20}  # of the decimals that Spark makes of whole numbers
_BITS: Final = {exp.DType.TINYINT: 8, exp.DType.SMALLINT: 16, exp.DType.INT: 32, exp.DType.BIGINT: 64}
_WHOLE: Final = re.compile(r"int(8|16|32|64)")
_DECIMAL: Final = re.compile(r"decimal128\((\d+), (\d+)\)")


@dataclass(frozen=True)
class ExactType:
    """Whole numbers of `bits`, or decimals if that is 0: of `digits`, of which `scale` stand after the point."""

    digits: int
    scale: int = 0
    bits: int = 0

    def __str__(self) -> str:
        """The name of the Arrow type."""
        return f"int{self.bits}" if self.bits else f"decimal128({self.digits}, {self.scale})"

    def holds(self, value: Decimal) -> bool:
        """Whether a value, which has no more than `scale` digits after the point, is in the range of the type."""
        if self.bits:
            return -(1 << self.bits - 1) <= value < 1 << self.bits - 1
        return abs(value) < Decimal(f"1e{self.digits - self.scale}")

    def of_sum(self) -> ExactType:
        """The type of the sum of such values in Spark."""
        return whole(64) if self.bits else ExactType(min(self.digits + 10, _MOST_DIGITS), self.scale)


def whole(bits: int) -> ExactType:
    """The type of whole numbers of 8, 16, 32 or 64 bits."""
    return ExactType(_DIGITS[bits], bits=bits)


def of_arrow(name: str) -> ExactType | None:
    """The type with the name of an Arrow type; None if its numbers are not exact."""
    if found := _WHOLE.fullmatch(name):
        return whole(int(found[1]))
    if found := _DECIMAL.fullmatch(name):
        return ExactType(int(found[1]), int(found[2]))
    return None


def of_sql(type_: exp.Expr) -> ExactType | None:
    """The type that a CAST names; None if its numbers are not exact."""
    if not isinstance(type_, exp.DataType):
        return None
    if type_.this in _BITS:
        return whole(_BITS[type_.this])
    if type_.this is not exp.DType.DECIMAL:
        return None
    digits, scale, *_ = [*(int(each.name) for each in type_.expressions), *([10, 0][len(type_.expressions) :])]
    return ExactType(digits, scale)


def of_expression(node: exp.Expr, scope: Scope) -> ExactType | None:
    """The type that Spark gives an expression over a FROM; None if that is not certain here."""
    if isinstance(node, exp.Paren | exp.Neg):
        return of_expression(node.this, scope)
    if isinstance(node, exp.Cast):
        return of_sql(node.to)
    if isinstance(node, exp.Literal):
        is_whole = not node.is_string and node.name.isdigit()
        return whole(32 if int(node.name) < 1 << 31 else 64) if is_whole and int(node.name) < 1 << 63 else None
    if isinstance(node, exp.Column):
        column = scope.resolve(node)
        return _wider([of_arrow(origin.type) for origin in column.origin] if column else [])
    if isinstance(node, exp.Add | exp.Sub | exp.Mul):
        found = [of_expression(each, scope) for each in (node.left, node.right)]
        return _wider(found) if all(each is not None and each.bits for each in found) else None
    return _wider([of_expression(each, scope) for each in _alternatives(node) if not isinstance(each, exp.Null)])


def _alternatives(node: exp.Expr) -> list[exp.Expr]:
    """The expressions of which an expression has one as its value; empty if they are not known."""
    if isinstance(node, exp.Case):
        found = [each.args["true"] for each in node.args["ifs"]] + [node.args.get("default")]
    elif isinstance(node, exp.If):
        found = [node.args["true"], node.args.get("false")]
    elif isinstance(node, exp.Coalesce):
        found = [node.this, *node.expressions]
    else:
        found = []
    return [each for each in found if each is not None]


def _wider(types: list[ExactType | None]) -> ExactType | None:
    """The type that holds values of several types, as Spark widens them; None if that is not certain."""
    known = [each for each in types if each is not None]
    if not known or len(known) < len(types):
        return None
    if all(each.bits for each in known):
        return whole(max(each.bits for each in known))
    scale = max(each.scale for each in known)
    digits = max(each.digits - each.scale for each in known) + scale
    return ExactType(digits, scale) if digits <= _MOST_DIGITS else None
