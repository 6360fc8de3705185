"""Words for the texts of the demo."""

from __future__ import annotations

from typing import Final

# The most common first: draws that prefer the beginning look like real text.
_WORDS: Final = """
the and with new for coffee today garden bread light river green morning price small winter table good paper
house blue summer music kitchen old train walk shop rain book city letter north wood market friend colour
lamp chair water road story bicycle window bridge copper engine orange silver pocket camera island forest
button carpet mirror ticket travel wool lemon pepper honey cotton linen basket candle kettle ladder hammer
pencil saddle anchor barrel blanket bottle bucket cabinet compass cushion curtain drawer feather fiddle
funnel goblet hammock helmet jacket jigsaw kayak lantern magnet mitten needle notebook oven paddle pillow
planter puzzle quilt racket ribbon rocket sandal satchel scarf shovel sieve skillet slipper spanner sponge
stool suitcase teapot thimble toaster torch towel tripod trowel tunnel umbrella vase vest violin waffle
wallet wheel whistle yarn zipper almond apricot barley cinnamon clover fennel ginger juniper maple mustard
nutmeg olive parsley quince rosemary saffron sesame thyme vanilla walnut amber basalt bronze cedar ceramic
cobalt coral ebony enamel felt flint granite indigo ivory jade leather marble nickel oak opal pearl pewter
quartz ruby slate steel suede teak velvet zinc
"""

WORDS: Final = tuple(_WORDS.split())

# Text that breaks naive code: quotes, backslashes, control characters, separators, letters beyond ASCII and the BMP.
ODDITIES: Final = (
    'a "quoted" word',
    "back\\slash and / slash",
    "tab\tand\nnew line",
    "Crème Brûlée, señor",
    "東京 ラーメン",
    "party 🎉 time 👩‍🚀",
    "semi; colon, 'single' -- dash",
    "{braces} [and] %percent% $1 ${money}",
    "50% off NOW",
    "null NULL Null",
)

# The first saved searches. The phrase of the last one is left open, so it is malformed.
SEARCHES: Final = (
    "honey -lemon",
    "+coffee +garden",
    '"winter light"',
    "+river -city -wood",
    "lantern kayak",
    "sad*",
    '+bread "summer morning"',
    "+orange +lemon",
    "thyme saffron rosemary",
    "+engine -train",
    "author:velvet",
    '"green river',
)

LONG_TEXT_BYTES: Final = 8192
