"""The colours of all charts and drawings, on light and on dark pages."""

from __future__ import annotations

from collections.abc import Mapping
from colorsys import hls_to_rgb, rgb_to_hls
from types import MappingProxyType

GREY = "#475569"
"""Colour of axes, titles and what is not in question."""

INK = "#0f172a"
"""Colour of what everything else is compared with."""

PALE = "#94a3b8"
"""Colour of ties, and of what stands behind."""

LIGHT = "#e2e8f0"
"""Colour of grid lines."""

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#a3527f", "#a50026", "#2a8cc4", "#b87800", "#475569")
"""Colours that also colour-blind people can tell apart, with a contrast of at least 3:1 on white.

Source:
    Okabe and Ito (2008), Color Universal Design; some darkened.
"""

DARK_COLOURS = ("#56b4e9", "#f5913e", "#2fc08f", "#e39ac4", "#ff8a94", "#a6dcff", "#f0b429", "#cbd5e1")
"""The same colours in order for dark pages."""

DARK_OF: Mapping[str, str] = MappingProxyType(dict(zip(COLOURS, DARK_COLOURS, strict=True)))
"""Colour on a light page → its colour on a dark one."""

DARKEST = 0.6
"""Minimum lightness of any other colour on a dark page, from 0, black, to 1, white."""


def dark_of(colour: str) -> str:
    """Return a colour of a light page as it is on a dark one: black and dark colours turn light.

    Args:
        colour: The colour, as `#rrggbb`.
    """
    from matplotlib.colors import to_hex, to_rgb  # Matplotlib takes a second to import

    hue, lightness, saturation = rgb_to_hls(*to_rgb(colour))
    if colour in DARK_OF or lightness >= DARKEST:
        return DARK_OF.get(colour, colour)
    return to_hex(hls_to_rgb(hue, max(1 - lightness, DARKEST + 0.1), saturation))


def shade_of(value: float) -> str:
    """Return the colour of a cell of a heat map: white at zero, blue above it, red below.

    Args:
        value: From -1 to 1; what lies beyond has the colour of the end.
    """
    from matplotlib.colors import to_hex, to_rgb  # as above

    strength = 0.75 * min(1.0, abs(value))
    red, green, blue = (1 - strength * (1 - part) for part in to_rgb(COLOURS[0] if value > 0 else COLOURS[4]))
    return to_hex((red, green, blue))
