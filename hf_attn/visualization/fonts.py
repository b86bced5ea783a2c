"""Find fonts that can draw the labels of a picture, and say plainly what to install where there are none."""

import re
import unicodedata
import warnings
from collections.abc import Iterator
from functools import cache

from matplotlib import font_manager, rcParams

# Tried before all other installed fonts, because they draw Korean well and have Latin letters that suit it.
PREFERRED_FAMILIES = (
    "Noto Sans KR",
    "Noto Sans CJK KR",
    "Noto Sans CJK SC",
    "Noto Sans CJK JP",
    "NanumGothic",
    "NanumBarunGothic",
    "Malgun Gothic",
    "Apple SD Gothic Neo",
    "AppleGothic",
    "UnDotum",
    "Baekmuk Dotum",
    "Baekmuk Gulim",
)
MISSING = "□"  # in matplotlib's own DejaVu Sans
# what, which characters, the Debian package that has them; the first that matches counts
PACKAGES = (
    ("Korean letters", "[\u1100-\u11ff\u3130-\u318f\ua960-\ua97f\uac00-\ud7ff]", "fonts-nanum"),
    ("Chinese or Japanese letters", "[\u2e80-\u312f\u3190-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]", "fonts-noto-cjk"),
    ("symbols", "[\u2000-\u2bff\U0001f000-\U0001faff]", "fonts-symbola"),
    ("letters", "", "fonts-noto-core"),
)


def drawable(labels: list[str]) -> tuple[list[str], list[str]]:
    """Make labels that the installed fonts can draw.

    A line break becomes "↵", every kind of space a plain one, other control characters "�". Characters that no font
    has become "□", with one warning that says what to install; a font installed a moment ago is found.

    Args:
        labels: any text.

    Returns:
        The labels, and the font families that draw them, in the order in which to try them.
    """
    labels = [_visible(label) for label in labels]
    families, missing = _choose_families({character for label in labels for character in label})
    if missing:
        warnings.warn(_advice(missing), stacklevel=3)
        labels = ["".join(MISSING if character in missing else character for character in label) for label in labels]
    return labels, families


def _visible(label: str) -> str:
    """Replace control characters by visible ones, and drop characters that only join or direct their neighbours."""
    characters = []
    for character in label:
        category = unicodedata.category(character)
        if character in "\n\r":
            characters.append("↵")
        elif category in ("Zs", "Zl", "Zp") or character == "\t":
            characters.append(" ")
        elif category in ("Cc", "Cs", "Co", "Cn"):
            characters.append("\ufffd")
        elif category != "Cf" and not "\ufe00" <= character <= "\ufe0f":  # zero-width joiners, variation selectors
            characters.append(character)
    return "".join(characters)


def _choose_families(characters: set[str]) -> tuple[list[str], set[str]]:
    """Choose families until every character has a font; give them and the characters that no installed font has."""
    families = list(rcParams["font.family"])
    missing = characters - _characters_of(font_manager.findfont(font_manager.FontProperties()))
    for family in _candidate_families():
        if not missing:
            break
        path = _regular_font(family)
        if path is not None and missing & _characters_of(path):
            missing = missing - _characters_of(path)
            families.append(family)
    return families, missing


def _candidate_families() -> Iterator[str]:
    """List installed families, preferred ones first; at the end those that matplotlib's cache does not know yet."""
    known = {font.name for font in font_manager.fontManager.ttflist}
    yield from (family for family in PREFERRED_FAMILIES if family in known)
    yield from sorted(known.difference(PREFERRED_FAMILIES))
    known_files = {str(font.fname) for font in font_manager.fontManager.ttflist}
    for path in sorted(set(font_manager.findSystemFonts()) - known_files):
        try:
            font_manager.fontManager.addfont(path)
        except Exception:  # whatever is wrong with somebody's font file, matplotlib skips it likewise
            continue
    added = {font.name for font in font_manager.fontManager.ttflist} - known
    yield from sorted(added, key=lambda family: (family not in PREFERRED_FAMILIES, family))


def _regular_font(family: str) -> str | None:
    """Find the upright, normal face of a family, the one drawn with; None for a font without real letters."""
    if family.startswith(("Last Resort", ".LastResort", "Adobe Blank")):
        return None
    for font in font_manager.fontManager.ttflist:
        if (font.name, font.style) == (family, "normal") and font.weight in (400, "normal", "regular"):
            return font_manager.findfont(font_manager.FontProperties(family=[family]))
    return None


@cache
def _characters_of(path: str) -> frozenset[str]:
    return frozenset(map(chr, font_manager.get_font(path).get_charmap()))


def _advice(missing: set[str]) -> str:
    """Say in one sentence what cannot be drawn and what to install."""
    groups: dict[tuple[str, str], list[str]] = {}
    for character in sorted(missing):
        kind = next((what, package) for what, letters, package in PACKAGES if re.match(letters, character))
        groups.setdefault(kind, []).append(character)
    what = " and ".join(f"{what} ({''.join(characters[:10])})" for (what, _), characters in groups.items())
    packages = " ".join(package for _, package in groups)
    return (
        f"No installed font can draw the {what}, shown as {MISSING}: install one, on Debian or Ubuntu with "
        f"`sudo apt-get install {packages}`, and draw again."
    )
