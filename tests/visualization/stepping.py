"""What the tests of all steps share: reading the numbers back from steps and pages, and the formulas in loops."""

import math
from pathlib import Path
from xml.etree import ElementTree

import reference
import torch

ROOT = Path(__file__).parents[2]


def close(actual, expected):
    torch.testing.assert_close(actual.double(), expected.double(), atol=1e-5, rtol=1e-5)


def numbers(steps):
    """All quantities by name."""
    named = [(quantity.name, quantity.values) for step in steps for quantity in step.quantities]
    assert len(dict(named)) == len(named)
    return dict(named)


def softmax(logits):
    """In a loop of float64 numbers."""
    powers = [math.exp(logit - max(logits.tolist())) for logit in logits.double().tolist()]
    return torch.tensor([power / sum(powers) for power in powers], dtype=torch.float64)


def follows_the_formulas(shown, keys, values):
    """Softmax and weighted sum in explicit loops over the numbers that are shown."""
    scores = shown.get("masked scores", shown["scores"])
    close(shown["weights"], softmax(scores))
    context = [0.0] * values.shape[1]
    for weight, value in zip(shown["weights"].tolist(), values.tolist(), strict=True):
        for index, number in enumerate(value):
            context[index] += weight * number
    close(shown["context"][0], torch.tensor(context))
    close(shown["weight × value"].sum(dim=0), torch.tensor(context))
    assert len(keys) == len(scores)


def shows_the_likeliest(quantity, logits, written):
    """The five largest probabilities of these logits, (vocab_size,), and the one of the piece that is written."""
    probabilities = softmax(logits)
    close(quantity.values[:5], probabilities.sort(descending=True).values[:5])
    marked = [
        float(value)
        for label, value in zip(quantity.rows, quantity.values, strict=True)
        if label.endswith(" ← written")
    ]
    expected = [] if written is None else [float(probabilities[written])]
    close(torch.tensor(marked), torch.tensor(expected))
    assert len(quantity.rows) == 5 or (len(quantity.rows) == 6 and quantity.rows[5].endswith(" ← written"))


def linear(vector, weight, bias):
    """W vector + b, of one vector."""
    return weight @ vector if bias is None else weight @ vector + bias


class Caught:
    """What goes into and comes out of the projections of one attention while a model runs.

    Args:
        attention: a `MultiHeadAttention`.
        run: runs the model.
    """

    def __init__(self, attention, run):
        self.attention, seen = attention, {}
        names = ("query_projection", "key_projection", "value_projection", "output_projection")
        hooks = [
            getattr(attention, name).register_forward_hook(
                lambda module, inputs, output, name=name: seen.setdefault(name, []).append((inputs[0][0], output[0]))
            )
            for name in names
        ]
        try:
            self.outputs = run()
        finally:
            for hook in hooks:
                hook.remove()
        self.calls = {name: seen[name] for name in names}

    def of(self, call):
        """(what asked, data, joined contexts, output) of one of the calls, in the order of the layers that share it."""
        calls = {name: found[call] for name, found in self.calls.items()}
        return (
            calls["query_projection"][0],
            calls["key_projection"][0],
            calls["output_projection"][0],
            calls["output_projection"][1],
        )


def shows_the_head(shown, caught, position, head, call=0, allowed=None, bias=None, base=None):
    """Everything up to the output of the attention: against loops in float64 over single vectors.

    `allowed(query, key)` says what may be seen, `bias(head, query, key)` is added to scores, `base` is that of rotary
    positions.
    """
    attention = caught.attention
    asks, data, joined, output = (part.double() for part in caught.of(call))
    heads, width, group = attention.num_heads, attention.head_dim, attention.group_size

    def project(name, vector, part):
        projection = getattr(attention, f"{name}_projection")
        rows = slice(part * width, (part + 1) * width)
        bias = None if projection.bias is None else projection.bias.detach().double()[rows]
        return linear(vector, projection.weight.detach().double()[rows], bias)

    def turn(vector, place):
        return vector if base is None else reference.rotate(vector, place, base)

    rows, contexts = [], []
    for number in range(heads):
        query = turn(project("query", asks[position], number), position)
        keys = [turn(project("key", vector, number // group), place) for place, vector in enumerate(data)]
        values = torch.stack([project("value", vector, number // group) for vector in data])
        products = torch.stack([query @ key for key in keys])
        added = torch.tensor([0.0 if bias is None else bias(number, position, key) for key in range(len(keys))])
        scores = products * attention.score.scale + added
        seen = [allowed is None or allowed(position, key) for key in range(len(keys))]
        context, row = reference.attend_one(scores, values, seen)
        rows.append(row)
        contexts.append(context)
        if number == head:
            for name, expected in (
                ("query", query[None]), ("keys", torch.stack(keys)), ("query · key", products), ("scores", scores),
                ("weights", row), ("values", values), ("context", context[None]),
            ):  # fmt: skip
                close(shown[name], expected)
            close(shown["weight × value"], row[:, None] * values)
            if bias is not None:
                close(shown["position bias"], added)
            assert ("position bias" in shown) == (bias is not None)
            assert torch.equal(shown["masked scores"].isinf(), ~torch.tensor(seen))
            close(shown["masked scores"][torch.tensor(seen)], scores[torch.tensor(seen)])
            assert not shown["weights"][~torch.tensor(seen)].any()
    close(shown["weights of every head"], torch.stack(rows, dim=1))
    close(shown["joined contexts"], torch.stack(contexts))
    close(shown["joined contexts"].flatten(), joined[position])
    final = attention.output_projection
    bias = None if final.bias is None else final.bias.detach().double()
    mixed = linear(torch.cat(contexts), final.weight.detach().double(), bias)
    close(shown["output of the attention"][0], mixed)
    close(shown["output of the attention"][0], output[position])
    close(shown["state + output"], shown["state"] + shown["output of the attention"])
    close(shown.get("normalised state", shown["state"])[0], asks[position])


def alibi(heads):
    """The bias of ALiBi."""
    slopes = reference.alibi_slopes(heads)
    return lambda head, query, key: -slopes[head] * abs(query - key)


def relative(module, bidirectional):
    """The bias of T5, from its table."""
    (table,) = [parameter.detach() for parameter in module.parameters()]

    def bias(head, query, key):
        bucket = reference.relative_bucket(key - query, bidirectional, len(table), module.max_distance)
        return float(table[bucket, head])

    return bias


def shows_the_source(steps):
    """Every line of code stands in the package, at the number that is given."""
    for step in steps:
        for code in step.code:
            file, number = code.where.split(":")
            source = (ROOT / file).read_text(encoding="utf-8").splitlines()
            shown = code.text.splitlines()
            there = source[int(number) - 1 : int(number) - 1 + len(shown)]
            assert [line.strip() for line in shown] == [line.strip() for line in there]
            assert '"""' not in code.text and "def " not in code.text


def cards(page):
    """The list of steps as elements; it is well-formed, so that nothing in a sentence was markup."""
    document = page.document.replace("<details open>", "<details>")
    return ElementTree.fromstring(document[document.index("<ol>") : document.index("</ol>") + 5]).findall("li")


def shows_the_steps(page, steps):
    """A page has the titles, sentences, numbers, labels and lines of these steps; the number of those that count."""
    shown = cards(page)
    assert len(shown) == len(steps)
    for card, step in zip(shown, steps, strict=True):
        text = "".join(card.itertext())
        assert step.title in text and step.meaning in text
        for figure, quantity in zip(card.iter("figure"), step.quantities, strict=True):
            assert figure.get("data-name") == quantity.name
            assert quantity.shape in "".join(figure.find("figcaption").itertext())
            cells = [cell.text for cell in figure.iter("td") if cell.text and "more" not in cell.text]
            printed = torch.tensor([float(cell.replace("−", "-").replace("∞", "inf")) for cell in cells])
            if quantity.values.dim() == 1 or quantity.columns:
                torch.testing.assert_close(printed, quantity.values.flatten(), atol=0.00051, rtol=0)
            else:
                torch.testing.assert_close(printed, quantity.values[:, :6].flatten(), atol=0.0051, rtol=0)
            labels = [header.text for header in figure.iter("th") if header.get("scope") == "row"]
            assert labels == (quantity.rows if quantity.values.dim() == 1 or len(quantity.rows) > 1 else [])
        assert [pre.find("span").tail.strip() for pre in card.iter("pre")] == [code.text for code in step.code]
    numbered = [span.text for card in shown for span in card.iter("span") if span.get("class") == "number"]
    assert numbered == [str(number + 1) for number in range(len(numbered))]
    return len(numbered)


def leaves_nothing(model, compute):
    """No attribute of any module is added, removed or replaced."""

    def state():
        return {
            (name, attribute): (dict(value) if isinstance(value, dict) else value, id(value))
            for name, module in model.named_modules()
            for attribute, value in vars(module).items()
        }

    before = state()
    compute()
    after = state()
    assert before.keys() == after.keys()
    for place, (value, identity) in before.items():
        assert after[place][1] == identity, place
        if isinstance(value, dict):
            assert list(map(id, value.values())) == list(map(id, after[place][0].values())), place
