"""What Spark's expression classes do with their arguments, by the short names of the classes (Spark 4.2).

A class that is in none of these sets, and has no rule of its own in expressions.py, is refused if an argument is
tagged.
"""

from __future__ import annotations

import re
from typing import Final

from cdc_views.plan.text_types import TextType

# Return their first argument.
SAME: Final = frozenset({"Alias", "KnownNotNull", "KnownNullable", "CommonExpressionDef", "TempResolvedColumn"})
FIRST_OF: Final = frozenset({"First", "Last", "AnyValue", "NthValue", "FirstValue", "LastValue", "WindowExpression"})
# Return one of their arguments.
ONE_OF: Final = frozenset({"Coalesce", "Lag", "Lead", "Greatest", "Least"})

EQUALITIES: Final = frozenset({"EqualTo", "EqualNullSafe", "In", "ArrayContains", "InSubquery"})
COMPARISONS: Final = frozenset({"LessThan", "LessThanOrEqual", "GreaterThan", "GreaterThanOrEqual"})
ORDERINGS: Final = COMPARISONS | {"Greatest", "Least", "SortArray", "Max", "Min"}
RANKS: Final = frozenset({"Rank", "DenseRank", "PercentRank"})

# Return something that holds no part of their arguments.
NO_VALUE: Final = frozenset(
    {"IsNull", "IsNotNull", "Count", "Size", "ArraySize", "Exists", "And", "Or", "Not", "AtLeastNNonNulls", "CountIf"}
)
LAMBDAS: Final = frozenset({"ArrayTransform", "ArrayFilter", "ArrayExists", "ArrayForAll", "ArraySort"})

_OF_TEXT: Final = frozenset(
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
OF_JSON: Final = frozenset(
    {"GetJsonObject", "JsonToStructs", "JsonTuple", "LengthOfJsonArray", "JsonObjectKeys", "ParseJson", "IsVariantNull"}
)
_OF_XML: Final = frozenset(
    {"XmlToStructs", "XPathBoolean", "XPathDouble", "XPathFloat", "XPathInt", "XPathList", "XPathLong", "XPathShort",
     "XPathString"}
)  # fmt: skip
# Postgres has no functions of these names, so nobody expects Postgres's answer.
_OF_STRUCTS: Final = frozenset({"StructsToJson", "StructsToXml", "StructsToCsv"})
# Read the characters of the text.
READERS: Final = _OF_TEXT | OF_JSON | _OF_XML | _OF_STRUCTS

# Cast functions, as a view may write them: double(x).
CAST_FUNCTION: Final = re.compile(
    r"(boolean|tinyint|smallint|int|bigint|float|double|decimal|date|timestamp|binary|string)\s*\(", re.IGNORECASE
)


def may_read(function: str, type_: TextType) -> bool:
    """Whether one of the READERS answers as Postgres does on a value of this type."""
    if function in _OF_STRUCTS:
        return True
    if function in OF_JSON:
        return "json" in type_.name
    if function in _OF_XML:
        return type_.name == "xml"
    return type_.functions is None or function in type_.functions
