# Copyright 2026 The hf_attn authors. Licensed under the Apache License, Version 2.0.
"""The Space for everybody: axe-core finds nothing on any tab, and whoever has no mouse can do everything."""

import pytest
from axe import violations
from space.driving import Visits, choose, fits, framed, open_tab, redrawn, results, slide, translate, unfold

pytestmark = pytest.mark.browser

HEBREW = "הילדה קוראת מכתב ארוך בגינה הגדולה."


def pick(page, group, option):
    """Choose one of a group of choices of the tab that is shown."""
    page.get_by_role("group", name=group, exact=True).and_(page.locator(":visible")).get_by_label(
        option, exact=True
    ).check()


def show(view):
    """A view of the tab Translate."""

    def drive(page):
        with redrawn(page, "#results"):
            pick(page, "Show", view)

    return drive


def warned(page):
    """A text that was cut, with what looks wrong about its translation, beside a model without attention."""
    page.get_by_label("No attention (2014)").check()
    translate(page, "The girl reads 7318. " * 40, 2)
    page.locator("#translate-notices").wait_for()


def opened(name, area):
    """A tab as it opens."""

    def drive(page):
        open_tab(page, name)
        framed(page, area)

    return drive


def apart(model, kind=""):
    """A kind of attention of a model, step by step."""

    def drive(page):
        opened("Step by step", "#steps")(page)
        with redrawn(page, "#steps"):
            choose(page, "Model", model)
        if kind:
            with redrawn(page, "#steps"):
                pick(page, "Attention", kind)

    return drive


def lengthened(page):
    opened("History", "#history")(page)
    slide(page, "Clauses", 1)
    framed(page, "#history", "As the sentence grows")


def heads(page):
    opened("What if", "#what-if")(page)
    pick(page, "Change", "Remove heads")
    page.get_by_label("Heads taken away").get_by_label("1").check()
    framed(page, "#what-if", "without attention to the source")


def forced(page):
    opened("What if", "#what-if")(page)
    pick(page, "Change", "Write another piece")
    page.locator("#replaced input").first.check()
    page.locator("#instead input").first.check()
    framed(page, "#what-if", "for “")


def perplexity(page):
    opened("Metrics lab", "#metrics")(page)
    with redrawn(page, "#metrics"):
        choose(page, "Perplexity under", "EN → KO, Bahdanau (2015)")


def inside(name, area):
    """A tab within that of other inputs."""

    def drive(page):
        open_tab(page, "Other inputs")
        opened(name, area)(page)

    return drive


def blank_apart(page):
    inside("Fill in a blank", "#filled")(page)
    unfold(page, "One piece, step by step")
    page.locator("#filled-piece input").first.check()
    framed(page, "#filled-steps", "How the model read")


def meanings(page):
    inside("Fill in a blank", "#filled")(page)
    unfold(page, "One word, two meanings")
    page.locator("#sense-word input, #sense-word textarea").fill("girl")
    for number, sentence in enumerate(("The girl reads.", "Where is the girl?", ""), start=1):
        page.locator(f"#sentence-{number} textarea, #sentence-{number} input").fill(sentence)
    page.get_by_role("button", name="Compare").click()
    framed(page, "#senses", "Word alone")


STATES = {
    "Translate": lambda page: results(page, 2),
    "Translate, pieces": show("pieces"),
    "Translate, next pieces": show("next pieces"),
    "Translate, beams": show("beams"),
    "Translate, with warnings": warned,
    "Steps": opened("Step by step", "#steps"),
    "Steps without attention": apart("EN → FR, No attention (2014)"),
    "Steps of a convolution": apart("EN → FR, ConvS2S (2017)"),
    "Steps of a decoder": apart("EN → FR, Transformer (2017)", "to what it has read"),
    "Steps of an encoder": apart("EN → FR, Transformer (2017)", "of the source to itself"),
    "History": lengthened,
    "What if: words": opened("What if", "#what-if"),
    "What if: heads": heads,
    "What if: pieces": forced,
    "Metrics": opened("Metrics lab", "#metrics"),
    "Metrics of a model": perplexity,
    "Fill in": inside("Fill in a blank", "#filled"),
    "Fill in, step by step": blank_apart,
    "Fill in, meanings": meanings,
    "What comes next": inside("What comes next", "#continued"),
    "A digit": inside("A digit", "#digit"),
    "A caption": inside("A caption", "#caption"),
}
TABS = [
    "Translate",
    "Steps",
    "History",
    "What if: words",
    "Metrics",
    "Fill in",
    "Fill in, step by step",
    "Fill in, meanings",
    "What comes next",
    "A digit",
    "A caption",
]


@pytest.fixture(scope="module")
def visits(browser):
    """All visits of one browser window, which loads what the page consists of once."""
    visits = Visits(browser)
    yield visits
    assert visits.end() == []


@pytest.fixture(scope="module")
def window(visits, server):
    """The window."""
    page = visits(server)
    results(page, 2)
    return page


@pytest.fixture
def page(visits, window, server):
    """The page as it opens: wide, light and in English."""
    visits.reload(window, server)
    results(window, 2)
    look(window, 1280, False)
    return window


def look(page, width, dark):
    """Change the window and the theme, and wait until the frames have followed and nothing is being computed."""
    page.set_viewport_size({"width": width, "height": 900})
    page.emulate_media(color_scheme="dark" if dark else "light", reduced_motion="reduce")  # themes change at once
    page.wait_for_function(
        """dark => document.body.classList.contains("dark") === dark
          && !document.querySelector(".pending") && !document.getAnimations().some(each => each.playState === "running")
          && [...document.querySelectorAll("iframe")].filter(frame => frame.checkVisibility()).every(frame =>
            frame.contentDocument.documentElement.style.colorScheme === (dark ? "dark" : "light"))""",
        arg=dark,
    )


def titles(page):
    """The titles of the frames that are shown."""
    return page.locator("iframe:visible").evaluate_all("frames => frames.map(frame => frame.title)")


def explained(page):
    """The languages in which the tab that is shown is explained."""
    return set(page.locator(".explained:visible").evaluate_all("texts => texts.map(text => text.lang)"))


@pytest.mark.parametrize("state", STATES)
def test_axe_finds_nothing_serious_and_nothing_is_wider_than_the_window(page, state):
    STATES[state](page)
    look(page, 1280, False)
    shown = titles(page)
    assert shown and all(shown) and len(set(shown)) == len(shown)
    assert explained(page) == {"en"}
    found = violations(page)
    look(page, 640, True)  # as a window of 1280 at 200 %
    found += violations(page, contrasts=True)
    assert fits(page, 640)
    pick(page, "Explanations", "한국어 설명")
    page.wait_for_function("document.documentElement.dataset.explained === 'ko'")
    look(page, 320, True)
    assert explained(page) == {"ko"}
    found += violations(page, contrasts=True, frames=False)
    look(page, 320, False)
    found += violations(page, contrasts=False)
    assert fits(page, 320)
    pick(page, "Explanations", "Explained in English")
    assert found == []


def test_without_models_too(visit, app, tmp_path):
    demo = app.build(tmp_path)
    _, url, _ = demo.launch(prevent_thread_lock=True, quiet=True, **app.LAUNCH)
    try:
        page = visit(url)
        page.get_by_role("alert").wait_for()
        assert violations(page) == []
    finally:
        demo.close()


@pytest.mark.parametrize("dark", [False, True])
def test_an_error_is_announced_and_can_be_read(page, dark):
    look(page, 1280, dark)
    page.add_style_tag(content="[class*=toast] { opacity: 1 !important; }")  # it fades in, and out again
    page.locator("#text textarea").fill(" ")
    page.get_by_role("button", name="Translate").and_(page.locator(":visible")).click()
    said = page.get_by_role("status").filter(has_text="The text is empty")
    said.wait_for()
    found = violations(page, frames=False)
    page.get_by_role("button", name="Close", exact=True).press("Enter")
    said.wait_for(state="hidden")
    translate(page, "Where is the girl?", 2)
    # Gradio's own: the head of its message is a button and holds the button that closes it; both are reached
    assert [each for each in found if not ("nested-interactive" in each and "toast-header" in each)] == []


def test_a_sentence_from_right_to_left_is_read_so(page):
    frame = translate(page, HEBREW, 2)[0]
    left = frame.locator("#source .word").evaluate_all("all => all.slice(0, 3).map(each => each.offsetLeft)")
    assert left == sorted(left, reverse=True)
    assert page.locator("#text textarea").evaluate("box => getComputedStyle(box).unicodeBidi") == "plaintext"
    look(page, 320, False)
    assert fits(page, 320)


REACHED = """() => {  // what the tab key should reach, here and in frames
  const documents = [document, ...[...document.querySelectorAll("iframe")].filter(frame => frame.checkVisibility())
    .map(frame => frame.contentDocument)];
  window.expected = documents.flatMap(each =>
    [...each.querySelectorAll("a[href], button, input, select, textarea, summary, [tabindex]")].filter(element =>
      !element.disabled && element.tabIndex >= 0 && element.checkVisibility({visibilityProperty: true})));
  const first = document.createElement("button");
  document.body.prepend(first);
  first.focus();
  first.remove();
  return window.expected.length;
}"""
FOCUS = """async () => {
  let element = document.activeElement;
  while (element?.contentDocument) element = element.contentDocument.activeElement;
  await Promise.all(element.getAnimations().map(each => each.finished));
  const style = getComputedStyle(element), box = element.getBoundingClientRect();
  const around = parseFloat(style.outlineOffset) + parseFloat(style.outlineWidth) - 0.5;
  let cut = "";
  for (let other = element.parentElement; other; other = other.parentElement) {
    const edge = other.getBoundingClientRect(), hides = getComputedStyle(other);
    const within = (low, high, name) => box[low] - around >= edge[low] && box[high] + around <= edge[high] ? "" : name;
    if (["hidden", "clip"].includes(hides.overflowX)) cut ||= within("left", "right", " cut off at a side");
    if (["hidden", "clip"].includes(hides.overflowY)) cut ||= within("top", "bottom", " cut off above or below");
  }
  return [window.expected.indexOf(element),
    style.outlineStyle + " " + style.outlineWidth + " " + style.outlineColor + cut, element.outerHTML.slice(0, 120)];
}"""


SEEN = "solid 3px rgb(26, 86, 219)"


@pytest.mark.parametrize("state", TABS)
def test_the_tab_key_reaches_everything_and_shows_where_it_is(page, state):
    STATES[state](page)
    reached = []
    for _ in range(page.evaluate(REACHED) + 1):
        page.keyboard.press("Tab")
        number, outline, element = page.evaluate(FOCUS)
        if number >= 0 and outline != SEEN:  # what is just being drawn may be seen a moment later
            page.wait_for_timeout(500)
            number, outline, element = page.evaluate(FOCUS)
        assert number < 0 or outline == SEEN, element
        reached.append(number)
    missing = page.evaluate(
        "reached => window.expected.filter((_, i) => !reached.includes(i)).map(each => each.outerHTML.slice(0, 120))",
        reached,
    )
    assert missing == []
    own = page.evaluate("window.expected.filter(each => each.ownerDocument === document).length")
    order = [number for number in reached if 0 <= number < own]
    assert order == sorted(order)
