"""Labels are drawn by fonts that have their characters, or the reader is told what to install."""

import warnings

import pytest

pytest.importorskip("matplotlib")
from fontTools.fontBuilder import FontBuilder
from fontTools.pens.ttGlyphPen import TTGlyphPen
from matplotlib import font_manager, rcParams
from matplotlib.figure import Figure

from hf_attn.visualization.fonts import drawable

MATPLOTLIBS_OWN = ("DejaVu", "STIX", "cm", "Last Resort")


@pytest.fixture
def no_system_fonts(monkeypatch):
    """A machine with no fonts but those that matplotlib brings along."""
    own = [font for font in font_manager.fontManager.ttflist if font.name.startswith(MATPLOTLIBS_OWN)]
    monkeypatch.setattr(font_manager.fontManager, "ttflist", own)
    monkeypatch.setattr(font_manager, "findSystemFonts", lambda: [])
    return monkeypatch


def build_font(path, family, characters):
    """Write a font in which every given character is a bar."""
    pen = TTGlyphPen(None)
    for corner in ((100, 0), (100, 700), (300, 700), (300, 0)):
        (pen.lineTo if corner != (100, 0) else pen.moveTo)(corner)
    pen.closePath()
    bar = pen.glyph()
    names = [".notdef", *(f"uni{ord(character):04X}" for character in characters)]
    builder = FontBuilder(1000, isTTF=True)
    builder.setupGlyphOrder(names)
    builder.setupCharacterMap(dict(zip(map(ord, characters), names[1:], strict=True)))
    builder.setupGlyf(dict.fromkeys(names, bar))
    builder.setupHorizontalMetrics(dict.fromkeys(names, (400, 100)))
    builder.setupHorizontalHeader(ascent=800, descent=-200)
    builder.setupNameTable({"familyName": family, "styleName": "Regular"})
    builder.setupOS2(usWeightClass=400)
    builder.setupPost()
    builder.save(path)
    return str(path)


def draw(labels, families):
    """Draw labels for real; matplotlib warns of every character that no font of the families has."""
    figure = Figure()
    for label in labels:
        figure.text(0.1, 0.5, label, fontfamily=families, parse_math=False)
    figure.draw_without_rendering()


@pytest.mark.filterwarnings("error", "ignore::ResourceWarning")  # of what other tests left
def test_ordinary_labels_stay_as_they_are(no_system_fonts):
    labels = ["perché", "l'été", "</s>", "$x$", "“…”", "▁the", "дом"]
    assert drawable(labels) == (labels, list(rcParams["font.family"]))
    draw(*drawable(labels))


def test_korean_without_a_font_says_what_to_install(no_system_fonts):
    with pytest.warns(UserWarning) as caught:
        labels, families = drawable(["학생이", "a 책"])
    assert labels == ["□□□", "a □"]
    (warning,) = caught
    assert "Korean" in str(warning.message) and "apt-get install fonts-nanum`" in str(warning.message)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        draw(labels, families)


@pytest.mark.parametrize(
    ("text", "package"),
    [
        ("本を", "fonts-noto-cjk"),
        ("🙂", "fonts-symbola"),
        ("नमस्ते", "fonts-noto-core"),
        ("한🙂", "fonts-nanum fonts-symbola"),
    ],
)
def test_each_script_names_its_package(no_system_fonts, text, package):
    with pytest.warns(UserWarning, match=f"apt-get install {package}`"):
        drawable([text])


@pytest.mark.filterwarnings("error", "ignore::ResourceWarning")
def test_a_font_installed_after_matplotlib_looked_is_found(no_system_fonts, tmp_path):
    path = build_font(tmp_path / "new.ttf", "Brand New Gothic", "학생이")
    broken = tmp_path / "broken.ttf"
    broken.write_bytes(b"not a font")
    no_system_fonts.setattr(font_manager, "findSystemFonts", lambda: [str(broken), path])
    labels, families = drawable(["학생이", "the"])
    assert labels == ["학생이", "the"]
    assert families == [*rcParams["font.family"], "Brand New Gothic"]
    draw(labels, families)


@pytest.mark.filterwarnings("error", "ignore::ResourceWarning")
def test_a_font_made_for_korean_is_preferred(no_system_fonts, tmp_path):
    for family in ("A Font", "NanumGothic"):
        font_manager.fontManager.addfont(build_font(tmp_path / f"{family}.ttf", family, "한국"))
    assert drawable(["한국"])[1] == [*rcParams["font.family"], "NanumGothic"]


@pytest.mark.filterwarnings("error", "ignore::ResourceWarning")
def test_a_placeholder_font_counts_as_none(no_system_fonts, tmp_path):
    font_manager.fontManager.addfont(build_font(tmp_path / "font.ttf", "Last Resort Everything", "한국"))
    with pytest.warns(UserWarning, match="fonts-nanum"):
        assert drawable(["한국"])[0] == ["□□"]


@pytest.mark.filterwarnings("error", "ignore::ResourceWarning")
def test_invisible_and_broken_characters(no_system_fonts):
    labels, families = drawable(["a\nb\tc", "a\u2028b\u3000c", "e\u200d\ufe0ff\u202e", "\ud800", "\x85\ue000"])
    assert labels == ["a↵b c", "a b c", "ef", "\ufffd", "\ufffd\ufffd"]
    draw(labels, families)
