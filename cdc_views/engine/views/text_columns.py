"""Refuses what a view does with columns that are text in a mirror and not in Postgres, where the answers differ.

Such a column is followed through Spark's analysed plan by the numbers of its attributes: aliases, subqueries,
CTEs, set operations, structs, arrays and functions that give one of their arguments back. What may be done with it
is in plan/text_types.py. An operation that is not known here is refused; a cast in the SQL ends it all: from there
on the view says what it means.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, NoReturn

import pyarrow as pa

from cdc_views.engine.views.plan_tree import AnalysedPlan, Node
from cdc_views.errors import UnsupportedView
from cdc_views.plan.compiled import CompiledView
from cdc_views.plan.text_types import TextType, text_type
from cdc_views.source.catalog import SourceTable


@dataclass(frozen=True)
class Text:
    """A value that is text here: of which column of which table, and what the text stands for."""

    type: TextType
    column: str
    table: str
    is_element: bool = False


@dataclass(frozen=True)
class Elements:
    """An array of such values."""

    of: Tag


@dataclass(frozen=True)
class Fields:
    """A struct that has such values; None for the other fields."""

    tags: tuple[Tag | None, ...]


Tag = Text | Elements | Fields
TextColumns = Mapping[str, Tag]  # by the name of the column


@dataclass(frozen=True)
class _Problem:
    node: Node
    text: Text
    why: str


@dataclass(frozen=True)
class _Value:
    """What is known of an expression: its tag, its text if it is a literal, and what is wrong below it."""

    tag: Tag | None = None
    literal: str | None = None
    is_null: bool = False
    problem: _Problem | None = None


_OTHER: Final = _Value()


def text_columns(table: SourceTable, schema: pa.Schema) -> dict[str, Tag]:
    """The columns of a mirror that are text, or arrays of text, and are not in Postgres."""
    found: dict[str, Tag] = {}
    for column in table.columns:
        arrow = schema.field(column.name).type
        is_array = pa.types.is_list(arrow)
        if not pa.types.is_string(arrow.value_type if is_array else arrow):
            continue
        type_ = text_type(column)
        if type_ is not None:
            text = Text(type_, column.name, str(table.name), is_array)
            found[column.name] = Elements(text) if is_array else text
    return found


def require_text_columns_as_meant(
    view: CompiledView, plan: AnalysedPlan, relations: Mapping[str, str], inputs: Mapping[str, TextColumns]
) -> dict[int, Tag]:
    """The columns of a view, by number, that are such columns of its inputs unchanged.

    `relations` are the names that the plan has for the inputs. Raises UnsupportedView with file, line and column.
    """
    walk = _Walk(plan, {relation: inputs.get(source, {}) for source, relation in relations.items()})
    try:
        outputs = walk.outputs(plan.root)
    except _Found as found:
        _refuse(view, plan, relations, found.problem)
    tags = ((number, walk.values.get(output, _OTHER).tag) for number, output in enumerate(outputs))
    return {number: tag for number, tag in tags if tag is not None}


def _refuse(view: CompiledView, plan: AnalysedPlan, relations: Mapping[str, str], problem: _Problem) -> NoReturn:
    span = plan.span(problem.node)
    place, fragment = view.fragment(relations, span)
    text = problem.text
    subject = f'column "{text.column}" of "{text.table}"'
    hint = text.type.write.format(column=text.column)
    if text.is_element:
        subject = f"each element of {subject}"
        hint = f"in transform({text.column}, x -> ...) {text.type.write.format(column='x')}"
    elif text.type.setting:
        hint = f"{hint}, or {text.type.setting.format(place=f'{text.table}.{text.column}')}"
    raise UnsupportedView(
        f'{place}: {subject} is {text.type.name} in Postgres and text here, and "{fragment}" {problem.why}', hint=hint
    )


class _Found(Exception):
    def __init__(self, problem: _Problem) -> None:
        super().__init__(problem)
        self.problem = problem


_SAME: Final = frozenset({"Alias", "KnownNotNull", "KnownNullable", "CommonExpressionDef", "TempResolvedColumn"})
_FIRST_OF: Final = frozenset({"First", "Last", "AnyValue", "NthValue", "FirstValue", "LastValue", "WindowExpression"})
_ONE_OF: Final = frozenset({"Coalesce", "Lag", "Lead", "Greatest", "Least"})
_EQUALITIES: Final = frozenset({"EqualTo", "EqualNullSafe", "In", "ArrayContains", "InSubquery"})
_ORDERINGS: Final = frozenset(
    {"LessThan", "LessThanOrEqual", "GreaterThan", "GreaterThanOrEqual", "Greatest", "Least", "SortArray", "Max", "Min"}
)
_NO_VALUE: Final = frozenset(
    {"IsNull", "IsNotNull", "Count", "Size", "ArraySize", "Exists", "And", "Or", "Not", "AtLeastNNonNulls", "CountIf"}
)
_TEXT_FUNCTIONS: Final = frozenset(
    {
        *("Concat", "ConcatWs", "Lower", "Upper", "InitCap", "Length", "OctetLength", "BitLength", "Substring"),
        *("SubstringIndex", "Left", "Right", "StringTrim", "StringTrimLeft", "StringTrimRight", "StringTrimBoth"),
        *("StringLPad", "StringRPad", "StringReplace", "StringTranslate", "StringSplit", "SplitPart", "StringRepeat"),
        *("StringInstr", "StringLocate", "Contains", "StartsWith", "EndsWith", "Like", "ILike", "LikeAll", "LikeAny"),
        *("NotLikeAll", "NotLikeAny", "RLike", "RegExpReplace", "RegExpExtract", "RegExpExtractAll", "RegExpCount"),
        *("RegExpSubStr", "RegExpInStr", "Reverse", "FormatString", "Base64", "Md5", "Sha1", "Sha2", "Ascii", "Encode"),
        "ListAgg",
    }
)
_FUNCTIONS_OF_JSON: Final = frozenset(
    {"GetJsonObject", "JsonToStructs", "JsonTuple", "LengthOfJsonArray", "JsonObjectKeys", "ParseJson", "IsVariantNull"}
)
_FUNCTIONS_OF_XML: Final = frozenset(
    {"XmlToStructs", "XPathBoolean", "XPathDouble", "XPathFloat", "XPathInt", "XPathList", "XPathLong", "XPathShort",
     "XPathString"}
)  # fmt: skip
# No function of Postgres has these names, so nobody takes them for one.
_FUNCTIONS_OF_STRUCTS: Final = frozenset({"StructsToJson", "StructsToXml", "StructsToCsv"})
_READERS: Final = _TEXT_FUNCTIONS | _FUNCTIONS_OF_JSON | _FUNCTIONS_OF_XML | _FUNCTIONS_OF_STRUCTS
_CAST_FUNCTION: Final = re.compile(
    r"(boolean|tinyint|smallint|int|bigint|float|double|decimal|date|timestamp|binary|string)\s*\(", re.IGNORECASE
)
_LAMBDAS: Final = frozenset({"ArrayTransform", "ArrayFilter", "ArrayExists", "ArrayForAll", "ArraySort"})
_THROUGH: Final = frozenset(
    {"Filter", "Sort", "GlobalLimit", "LocalLimit", "Offset", "SubqueryAlias", "View", "ResolvedHint", "Window",
     "WithWindowDefinition", "Sample", "CTERelationDef", "Distinct", "Deduplicate"}
)  # fmt: skip
_LEAVES: Final = frozenset({"LocalRelation", "LogicalRDD", "Range", "OneRowRelation", "LogicalRelation"})


@dataclass
class _Walk:
    """One walk over a plan, children first; `values` has what is known of every attribute met so far."""

    plan: AnalysedPlan
    relations: Mapping[str, TextColumns]
    values: dict[int, _Value] = field(default_factory=dict)
    _queries: dict[tuple[str, int], list[int]] = field(default_factory=dict)  # outputs of CTEs and recursions
    _common: dict[str, _Value] = field(default_factory=dict)
    _of: dict[int, _Value] = field(default_factory=dict)  # by id() of the node

    # ---- plans

    def outputs(self, node: Node) -> list[int]:
        """The attributes that a plan gives. Raises _Found."""
        below = []
        for number, child in enumerate(node.children):
            below.append(self.outputs(child))
            if node.name == "UnionLoop" and number == 0:
                self._queries["loop", int(node.fields["id"])] = below[0]
        values = []
        for expression in node.expressions:
            if node.name == "Generate" and expression is node.expressions[0]:
                for argument in expression.children:
                    self._checked(argument)
            else:
                values.append(self._checked(expression))
        return self._outputs(node, below, values)

    def _outputs(self, node: Node, below: Sequence[list[int]], values: Sequence[_Value]) -> list[int]:
        name = node.name
        if name in _LEAVES:
            return node.ids("output") if "output" in node.fields else []
        if name in ("Project", "Aggregate"):
            groups = len(node.fields.get("groupingExpressions") or ())
            for value in values[:groups]:
                self._require_equality(node, [value], "groups by it")
            return [expression.expr_id for expression in node.expressions[groups:]]
        if name == "Join":
            is_semi = any(kind in str(node.fields["joinType"]) for kind in ("LeftSemi", "LeftAnti"))
            return below[0] if is_semi else [*below[0], *below[1]]
        if name in _THROUGH:
            return self._through(node, below[0])
        if name == "Generate":
            return self._generated(node, below[0])
        if name == "Expand":
            return self._expanded(node)
        if name in ("Union", "Intersect", "Except"):
            return self._united(node, below)
        if name in ("UnionLoop", "UnionLoopRef", "WithCTE", "CTERelationRef"):
            return self._of_query(node, below)
        if name == "LateralJoin" and node.expressions[0].plan is not None:
            return [*below[0], *self._subquery_outputs(node.expressions[0])]
        self._require_known(node, below)
        return []

    def _through(self, node: Node, below: list[int]) -> list[int]:
        if node.name == "SubqueryAlias":
            tags = self.relations.get(node.fields["identifier"].get("name"), {})
            for tag, output in zip(self._tags_of(node, tags), below, strict=True) if tags else ():
                self.values[output] = _Value(tag)
        elif node.name == "CTERelationDef":
            self._queries["cte", int(node.fields["id"])] = below
        elif node.name == "Window":
            for partition in (e for e in node.expressions if e.name not in ("Alias", "SortOrder")):
                self._require_equality(partition, [self._of[id(partition)]], "groups by it")
            return [*below, *(expression.expr_id for expression in node.expressions if expression.name == "Alias")]
        elif node.name == "Distinct":
            for output in below:
                self._require_equality(node, [self.values.get(output, _OTHER)], "takes equal values once")
        elif node.name == "Deduplicate":
            for expression in node.expressions:
                self._require_equality(node, [self._of[id(expression)]], "takes equal values once")
        return below

    def _tags_of(self, node: Node, tags: TextColumns) -> list[Tag | None]:
        """The tags of an input's columns, in the order in which its relation has them."""
        relation = node
        while relation.name not in _LEAVES:
            relation = relation.children[0]
        return [tags.get(column[0]["name"]) for column in relation.fields["output"]]

    def _generated(self, node: Node, below: list[int]) -> list[int]:
        generator = node.expressions[0]
        outputs = node.ids("generatorOutput")
        given = [self._of[id(child)].tag for child in generator.children]
        tags: list[Tag | None] = [None] * len(outputs)
        match generator.name, given:
            case "Explode" | "ExplodeOuter", [Elements(of)]:
                tags = [of]
            case "PosExplode", [Elements(of)]:
                tags = [None, of]
            case "Inline", [Elements(Fields(inner))]:
                tags = list(inner)
            case _ if (text := next((_first(tag) for tag in given if tag is not None), None)) is not None:
                if generator.name not in _FUNCTIONS_OF_JSON or "json" not in text.type.name:
                    self._raise(generator, text, _UNKNOWN)
        self.values |= {output: _Value(tag) for output, tag in zip(outputs, tags, strict=True)}
        dropped = set(node.fields["unrequiredChildIndex"])
        return [*(output for number, output in enumerate(below) if number not in dropped), *outputs]

    def _expanded(self, node: Node) -> list[int]:
        outputs, rows = node.ids("output"), len(node.fields["projections"])
        width = len(node.expressions) // max(rows, 1) if rows else 0
        expressions = node.expressions[: rows * width]
        for number, output in enumerate(outputs):
            column = [self._of[id(expressions[row * len(outputs) + number])] for row in range(rows)]
            self.values[output] = self._accepted(self._merged(node, column))
        return outputs

    def _united(self, node: Node, below: Sequence[list[int]]) -> list[int]:
        for column in zip(*below, strict=True):
            values = [self.values.get(output, _OTHER) for output in column]
            if node.name != "Union":
                self._require_equality(node, values, "compares it")
            self.values[column[0]] = self._accepted(self._merged(node, values))
        return below[0]

    def _of_query(self, node: Node, below: Sequence[list[int]]) -> list[int]:
        if node.name == "WithCTE":
            return below[-1]
        if node.name == "UnionLoop":
            self._united(replace(node, name="Union"), below)
            outputs = [int(item["id"]) for item in node.fields["outputAttrIds"]]
            made = below[0]
        else:
            outputs = node.ids("output")
            made = self._queries[
                ("cte", int(node.fields["cteId"]))
                if node.name == "CTERelationRef"
                else ("loop", int(node.fields["loopId"]))
            ]
        self.values |= {output: self.values.get(of, _OTHER) for output, of in zip(outputs, made, strict=True)}
        return outputs

    def _require_known(self, node: Node, below: Iterable[list[int]]) -> None:
        for output in (output for outputs in below for output in outputs):
            tag = self.values.get(output, _OTHER).tag
            if tag is not None:
                self._raise(node, _first(tag), _UNKNOWN)

    def _subquery_outputs(self, expression: Node) -> list[int]:
        assert expression.plan is not None
        key = "subquery", id(expression)
        if key not in self._queries:
            self._queries[key] = self.outputs(expression.plan)
        return self._queries[key]

    # ---- expressions

    def _checked(self, root: Node) -> _Value:
        """The value of an expression of a plan node. Raises _Found. A loop, since a long condition is a deep tree."""
        pending: list[tuple[Node, bool]] = [(root, False)]
        while pending:
            node, is_left = pending.pop()
            if is_left:
                self._leave(node)
                continue
            pending.append((node, True))
            # WITH defines after its body what the body uses.
            below = node.children if node.name == "With" else list(reversed(node.children))
            pending += [(child, False) for child in below]
        return self._accepted(self._of[id(root)])

    def _leave(self, node: Node) -> None:
        given = [self._of[id(child)] for child in node.children]
        value = self._value(node, given)
        self._of[id(node)] = value
        above = node.parent
        if node.name == "Alias":
            self.values[node.expr_id] = value
        elif node.name == "CommonExpressionDef":
            self._common[str(node.fields["id"])] = value
        if above is not None and above.name in _LAMBDAS and node is above.children[0]:
            self._bind(above, value)

    def _bind(self, function: Node, argument: _Value) -> None:
        """Give the variables of a lambda what is known of the array's elements."""
        if isinstance(argument.tag, Elements):
            variables = [node for node in function.children[1].children[1:] if node.name == "NamedLambdaVariable"]
            for variable in variables if function.name == "ArraySort" else variables[:1]:
                self.values[variable.expr_id] = _Value(argument.tag.of)

    def _value(self, node: Node, given: list[_Value]) -> _Value:
        name = node.name
        if name in ("AttributeReference", "NamedLambdaVariable"):
            return self.values.get(node.expr_id, _OTHER)
        if name == "OuterReference":
            return self.values.get(_outer_id(node), _OTHER)
        if name == "Literal":
            value = node.fields["value"]
            return _Value(literal=None if value is None else str(value), is_null=value is None)
        if name == "CommonExpressionRef":
            return self._common.get(str(node.fields["id"]), _OTHER)
        if node.plan is not None:
            return self._of_subquery(node, given)
        tags = [value.tag for value in given if value.tag is not None]
        texts = list(map(_first, tags))
        if name in _READERS:
            return self._of_reader(node, given, texts)
        if problem := next((value.problem for value in given if value.problem), None):
            return _Value(problem=problem)
        if name == "Cast":
            return self._cast(node, given[0])
        if name == "AggregateExpression" and node.fields["isDistinct"]:
            arguments = [self._of[id(child)] for child in node.children[0].children]
            if problem := _first_of(_unequal(node, [argument]) for argument in arguments):
                return _Value(problem=problem)
        if not tags:
            return given[0] if name in _SAME else _OTHER
        return self._of_operation(node, given, texts)

    def _of_operation(self, node: Node, given: list[_Value], texts: Sequence[Text]) -> _Value:
        """Of an operation on at least one tagged value."""
        name = node.name
        problem = None
        if name in _ORDERINGS:
            problem = _unordered(node, given)
        elif name == "InSubquery":
            wanted = [self.values.get(output, _OTHER) for output in self._subquery_outputs(node.children[-1])]
            pairs = zip(given[:-1], wanted, strict=True)
            problem = _first_of(_unequal(node, [value, replace(other, literal=None)]) for value, other in pairs)
        elif name in _EQUALITIES:
            problem = _unequal(node, [_element(given[0]), *given[1:]] if name == "ArrayContains" else given)
        elif name == "SortOrder":
            problem = _unordered(node, given)
        elif name in ("CollectSet", "Mode"):
            problem = _unequal(node, given[:1])
        elif name in ("MaxBy", "MinBy"):
            problem = _unordered(node, given[1:])
        elif name in _RANKS:
            problem = _first_of(_unordered(node, [value]) for value in given)
        elif name == "WindowSpecDefinition":
            parts = (value for value, child in zip(given, node.children, strict=True) if child.name != "SortOrder")
            problem = _first_of(_unequal(node, [value]) for value in parts)
        if problem is not None:
            return _Value(problem=problem)
        if (
            name in _NO_VALUE
            or name in _EQUALITIES
            or name in _COMPARISONS
            or name in _RANKS
            or name == "WindowSpecDefinition"
        ):
            return _OTHER
        return self._passed_on(node, given, texts)

    def _passed_on(self, node: Node, given: list[_Value], texts: Sequence[Text]) -> _Value:
        """Of what gives its arguments back, whole or in parts."""
        name, first = node.name, given[0]
        match name, first.tag:
            case _ if name in _SAME or name in _FIRST_OF or name in ("SortOrder", "MaxBy", "MinBy", "Mode"):
                return replace(first, literal=None) if name != "Alias" else first
            case (
                "AggregateExpression" | "Max" | "Min" | "SortArray" | "LambdaFunction" | "With" | "FilterExpression",
                _,
            ):
                return first
            case _ if name in _ONE_OF or name == "CreateArray":
                merged = self._merged(node, given if name not in ("Lag", "Lead") else [given[0], *given[2:]])
                is_array = name == "CreateArray" and merged.tag is not None
                return _Value(Elements(merged.tag)) if is_array and merged.tag else merged
            case "If", _:
                return self._merged(node, given[1:])
            case "CaseWhen", _:
                results = given[1::2] if len(given) % 2 == 0 else [*given[1::2], given[-1]]
                return self._merged(node, results)
            case (("CollectList" | "CollectSet"), Text() | Elements() | Fields()):
                return _Value(Elements(first.tag))
            case "CreateNamedStruct", _:
                return _Value(Fields(tuple(value.tag for value in given[1::2])))
            case "GetStructField", Fields(tags):
                return _Value(tags[int(node.fields["ordinal"])])
            case (("GetArrayItem" | "ElementAt"), Elements(of)):
                return _Value(of)
            case "GetArrayStructFields", Elements(Fields(tags)):
                tag = tags[int(node.fields["ordinal"])]
                return _OTHER if tag is None else _Value(Elements(tag))
            case (("ArrayFilter" | "ArraySort" | "Slice"), Elements()):
                return first
            case "ArrayTransform", _:
                tag = given[1].tag
                return _OTHER if tag is None else _Value(Elements(tag))
            case (("ArrayExists" | "ArrayForAll"), _):
                return _OTHER
            case _ if "replacement" in node.fields and len(given) == 1:
                return first
        return _Value(problem=_Problem(node, texts[0], _UNKNOWN))

    def _of_subquery(self, node: Node, given: Sequence[_Value]) -> _Value:
        outputs = self._subquery_outputs(node)
        values = [self.values.get(output, _OTHER) for output in outputs]
        if node.name in ("ScalarSubquery", "ListQuery") and values:
            return replace(values[0], literal=None, is_null=False)
        return _OTHER

    def _of_reader(self, node: Node, given: Sequence[_Value], texts: Sequence[Text]) -> _Value:
        """Of a function that reads texts: it may be one that Spark replaces by an inner one, which is not known."""
        if node.name == "Concat" and any(isinstance(value.tag, Elements) for value in given):
            return self._merged(node, given)
        problems = [value.problem for value in given if value.problem is not None]
        is_replaced = "replacement" in node.fields
        if problem := next((each for each in problems if not is_replaced or each.why != _UNKNOWN), None):
            return _Value(problem=problem)
        for text in (*texts, *(problem.text for problem in problems)):
            if not _reads(node.name, text.type):
                return _Value(problem=_Problem(node, text, "reads its text, where Postgres reads something else"))
        return _OTHER

    def _cast(self, node: Node, given: _Value) -> _Value:
        if given.tag is None:
            return replace(given, tag=None)
        text = _first(given.tag)
        to = node.fields["dataType"]
        kind = to if isinstance(to, str) else str(to.get("type"))
        if not self._is_written(node):
            if kind == "string" or (kind == "array" and isinstance(given.tag, Elements)):
                return given
            return _Value(problem=_Problem(node, text, f"makes Spark cast it to {kind}"))
        reason = text.type.unsafe_casts.get(kind.partition("(")[0])
        if reason:
            return _Value(problem=_Problem(node, text, f"casts the text: {reason}"))
        return _OTHER

    def _is_written(self, node: Node) -> bool:
        """Whether the view itself casts: by CAST, ::, or a function like double(x)."""
        return self.plan.is_written_cast(node) or _CAST_FUNCTION.match(self.plan.text(node)) is not None

    def _merged(self, node: Node, values: Sequence[_Value]) -> _Value:
        """Of one of several values: all are NULL or of one type, or literals in its form."""
        if problem := next((value.problem for value in values if value.problem), None):
            return _Value(problem=problem)
        tags = [value.tag for value in values if value.tag is not None]
        if not tags:
            return replace(values[0], literal=None) if len(values) == 1 else _OTHER
        text = _first(tags[0])
        for value in values:
            if value.is_null or (value.tag is not None and _kind(value.tag) == _kind(tags[0])):
                continue
            if value.tag is None and value.literal is not None and text.type.is_canonical(value.literal):
                continue
            return _Value(problem=_Problem(node, text, "mixes it with values of another type"))
        return _Value(tags[0])

    def _accepted(self, value: _Value) -> _Value:
        if value.problem is not None:
            raise _Found(value.problem)
        return value

    def _require_equality(self, node: Node, values: Sequence[_Value], doing: str) -> None:
        for value in values:
            for text in _texts(value.tag):
                if not text.type.equal:
                    self._raise(node, text, f"{doing}: {text.type.unequal}")

    def _raise(self, node: Node, text: Text, why: str) -> NoReturn:
        raise _Found(_Problem(node, text, why))


_UNKNOWN: Final = "does something with it that is not known to answer as Postgres does"
_RANKS: Final = frozenset({"Rank", "DenseRank", "PercentRank"})
_COMPARISONS: Final = frozenset({"LessThan", "LessThanOrEqual", "GreaterThan", "GreaterThanOrEqual"})


def _reads(function: str, type_: TextType) -> bool:
    """Whether a function may read the texts of a type."""
    if function in _FUNCTIONS_OF_STRUCTS:
        return True
    if function in _FUNCTIONS_OF_JSON:
        return "json" in type_.name
    if function in _FUNCTIONS_OF_XML:
        return type_.name == "xml"
    return type_.functions is None or function in type_.functions


def _first_of(problems: Iterable[_Problem | None]) -> _Problem | None:
    return next((problem for problem in problems if problem is not None), None)


def _outer_id(node: Node) -> int:
    inner = node.fields["e"][0]
    return int(inner["exprId"]["id"]) if "exprId" in inner else -1


def _texts(tag: Tag | None) -> Iterator[Text]:
    match tag:
        case Text():
            yield tag
        case Elements(of):
            yield from _texts(of)
        case Fields(tags):
            for inner in tags:
                yield from _texts(inner)


def _first(tag: Tag) -> Text:
    return next(_texts(tag))


def _kind(tag: Tag | None) -> object:
    """What two values must share to be compared: the shape and the type's name."""
    match tag:
        case Text():
            return tag.type.name
        case Elements(of):
            return "array", _kind(of)
        case Fields(tags):
            return tuple(map(_kind, tags))
    return None


def _element(value: _Value) -> _Value:
    return replace(value, tag=value.tag.of) if isinstance(value.tag, Elements) else value


def _unequal(node: Node, values: Sequence[_Value]) -> _Problem | None:
    """Why values cannot be compared for equality by their texts."""
    for value in values:
        for text in _texts(value.tag):
            if not text.type.equal:
                return _Problem(node, text, f"compares it: {text.type.unequal}")
    return _mixed(node, values)


def _unordered(node: Node, values: Sequence[_Value]) -> _Problem | None:
    """Why values cannot be ordered by their texts."""
    for value in values:
        for text in _texts(value.tag):
            if not text.type.ordered:
                return _Problem(node, text, f"orders it: {text.type.unordered}")
    if node.name == "SortArray":
        return None
    return _mixed(node, values)


def _mixed(node: Node, values: Sequence[_Value]) -> _Problem | None:
    tag = next((value.tag for value in values if value.tag is not None), None)
    if tag is None:
        return None
    text = _first(tag)
    for value in values:
        if value.is_null or (value.tag is not None and _kind(value.tag) == _kind(tag)):
            continue
        if value.literal is None or value.tag is not None:
            return _Problem(node, text, "compares it with values of another type")
        if not text.type.is_canonical(value.literal):
            return _Problem(node, text, "compares it with a literal that Postgres prints in another form")
    return None
