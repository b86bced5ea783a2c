"""The steps show the model's own numbers: what it computes itself, and what each formula makes of those before."""

import dataclasses
import functools
import math
from pathlib import Path
from xml.etree import ElementTree

import pytest
import torch

from hf_attn.data import train_tokenizer
from hf_attn.inference import Translation, Translator
from hf_attn.models.configuration_attn_convs2s import AttnConvS2SConfig
from hf_attn.models.configuration_attn_rnn import AttnRnnConfig
from hf_attn.models.configuration_attn_transformer import AttnTransformerConfig
from hf_attn.models.modeling_attn_convs2s import AttnConvS2SForConditionalGeneration
from hf_attn.models.modeling_attn_rnn import AttnRnnForConditionalGeneration
from hf_attn.models.modeling_attn_transformer import AttnTransformerForConditionalGeneration
from hf_attn.visualization import attention_steps, steps_html

ROOT = Path(__file__).parents[2]
SOURCE, TARGET = "the old cat sleeps.", "il vecchio <gatto> dorme & sogna."
RECURRENT = {
    "bahdanau": {},
    "bahdanau-deep": {"rnn_type": "gru", "encoder_layers": 2, "decoder_layers": 2, "bidirectional": False},
    "bahdanau-general": {"score_function": "general", "rnn_type": "rnn"},
    "luong": {"attention_type": "luong"},
    "luong-fed": {"attention_type": "luong", "input_feeding": True, "score_function": "concat", "decoder_layers": 2},
    "luong-dot": {"attention_type": "luong", "score_function": "scaled_dot", "bidirectional": False},
    "gnmt": {
        "attention_type": "gnmt", "encoder_layers": 3, "decoder_layers": 3, "bidirectional_layers": 1, "residual": True,
    },
    "gnmt-gru": {"attention_type": "gnmt", "rnn_type": "gru", "decoder_layers": 2},
    "bahdanau-residual": {"decoder_layers": 3, "residual": True},
    "cho": {"attention_type": "none"},
    "sutskever": {"attention_type": "none", "context_feeding": "initial", "bidirectional": False, "decoder_layers": 2},
}  # fmt: skip
TRANSFORMERS = {
    "transformer": {},
    "pre-norm": {"norm_first": True, "norm_type": "rms"},
    "rotary": {"position_type": "rotary"},
    "alibi": {"position_type": "alibi"},
    "relative": {"position_type": "relative", "embedding_size": 16, "norm_first": True},
    "bart": {"position_type": "learned", "normalize_embedding": True, "output_bias": True},
    "t5": {
        "position_type": "relative",
        "norm_first": True,
        "norm_type": "rms",
        "head_dim": 10,
        "scale_attention": False,
        "use_bias": False,
        "gated_feed_forward": True,
        "scale_output": True,
    },
}


@functools.cache
def tokenizer():
    return train_tokenizer([SOURCE, TARGET] * 4, 320)


@functools.cache
def translator(name):
    """A model of random weights large enough that its numbers differ."""
    torch.manual_seed(len(name))
    common = {"vocab_size": len(tokenizer()), "hidden_size": 24, "dropout": 0.0, "initializer_range": 0.4}
    if name in RECURRENT:
        config = AttnRnnConfig(**common, embedding_size=24, attention_size=20, **RECURRENT[name])
        return Translator(AttnRnnForConditionalGeneration(config), tokenizer())
    sizes = {"encoder_layers": 1, "decoder_layers": 3, "encoder_attention_heads": 2, "decoder_attention_heads": 4}
    sizes |= {"encoder_intermediate_size": 32, "decoder_intermediate_size": 32}
    config = AttnTransformerConfig(**common, **sizes, **TRANSFORMERS[name])
    return Translator(AttnTransformerForConditionalGeneration(config), tokenizer())


@functools.cache
def translation(name):
    return translator(name).score(SOURCE, TARGET)


def numbers(name, position, **options):
    """All quantities by name."""
    steps = attention_steps(translator(name), translation(name), position, **options)
    return {quantity.name: quantity.values for step in steps for quantity in step.quantities}


def forward(name):
    """What the model itself computes for the translation."""
    model, line = translator(name).model, translation(name)
    read = torch.tensor([[model.config.decoder_start_token_id, *line.target_ids[:-1]]])
    with torch.no_grad():
        return model(
            torch.tensor([line.source_ids]), decoder_input_ids=read, output_attentions=True, output_hidden_states=True
        )


def close(actual, expected):
    torch.testing.assert_close(actual, expected, atol=1e-6, rtol=1e-5)


def follows_the_formulas(shown, keys, values):
    """Softmax and weighted sum in explicit loops over the numbers that are shown."""
    scores = [float(score) for score in shown.get("masked scores", shown["scores"]).double()]
    total = sum(math.exp(score) for score in scores)
    close(shown["weights"], torch.tensor([math.exp(score) / total for score in scores]))
    context = [0.0] * values.shape[1]
    for weight, value in zip(shown["weights"].tolist(), values.tolist(), strict=True):
        for index, number in enumerate(value):
            context[index] += weight * number
    close(shown["context"][0], torch.tensor(context))
    close(shown["weight × value"].sum(dim=0), torch.tensor(context))
    assert len(keys) == len(scores)


def shows_the_likeliest(name, shown, position):
    probabilities = forward(name).logits[0, position].exp()
    probabilities = probabilities / probabilities.sum()
    listed = shown["probability of the next piece"]
    close(listed[:5], probabilities.sort(descending=True).values[:5])
    written = float(probabilities[translation(name).target_ids[position]])
    steps = attention_steps(translator(name), translation(name), position)
    (marked,) = [
        (label, float(value))
        for label, value in zip(steps[-1].quantities[-1].rows, listed, strict=True)
        if label.endswith(" ← written")
    ]
    assert marked[0] == f"{translation(name).target_tokens[position]} ← written"
    assert marked[1] == pytest.approx(written, abs=1e-6)


POSITIONS = (0, 1, 4)


@pytest.mark.parametrize("position", POSITIONS)
@pytest.mark.parametrize("name", [name for name in RECURRENT if name not in ("cho", "sutskever")])
def test_recurrent_networks(name, position):
    shown, model, outputs = numbers(name, position), translator(name).model, forward(name)
    close(shown["weights"], translation(name).cross_attentions[0, 0, position])
    close(shown["keys = values"], outputs.encoder_last_hidden_state[0])
    follows_the_formulas(shown, shown["keys = values"], shown["keys = values"])
    with torch.no_grad():
        states = outputs.decoder_hidden_states[-1][0]  # the state after each step
        network = model.model.decoder.network
        query = states[position] if "luong" in name else shown["query"][0]
        close(shown["query"][0], query)
        if "bahdanau" in name:
            close(shown["new state"][0], states[position])
            if position:
                close(shown["query"][0], states[position - 1])
            embedding = model.model.decoder.embed_tokens.weight[([1] + translation(name).target_ids)[position]]
            close(shown["[embedding; context]"][0], torch.cat([embedding, shown["context"][0]]))
        elif "gnmt" in name:
            bottom = outputs.decoder_hidden_states[1][0]
            close(shown["new state of the bottom layer"][0], bottom[position])
            if position:
                close(shown["query"][0], bottom[position - 1])
            embedding = model.model.decoder.embed_tokens.weight[([1] + translation(name).target_ids)[position]]
            close(shown["[embedding; context]"][0], torch.cat([embedding, shown["context"][0]]))
            close(shown["output"][0], states[position])
        else:
            close(shown["[context; state]"][0], torch.cat([shown["context"][0], states[position]]))
            close(shown["attentional vector"][0], torch.tanh(network.combine.weight @ shown["[context; state]"][0]))
        # the score of each key by the formula, one pair at a time
        expected = [score_of(network.score, shown["query"][0], key) for key in shown["keys = values"]]
        close(shown["scores"], torch.stack(expected))
    shows_the_likeliest(name, shown, position)


def score_of(module, query, key):
    """The five formulas of the papers, for one query and one key."""
    weights = {name: parameter.detach() for name, parameter in module.named_parameters()}
    kind = type(module).__name__
    if kind == "ScaledDot":
        return query @ key / math.sqrt(len(query))
    if kind == "General":
        return query @ (weights["key_projection.weight"] @ key)
    if kind == "Concat":
        hidden = weights["pair_projection.weight"] @ torch.cat([query, key])
    else:
        hidden = weights["query_projection.weight"] @ query + weights["key_projection.weight"] @ key
    return weights["energy.weight"][0] @ torch.tanh(hidden)


@pytest.mark.parametrize("position", POSITIONS)
@pytest.mark.parametrize("name", ["cho", "sutskever"])
def test_without_attention_there_is_one_fixed_vector(name, position):
    shown, model, outputs = numbers(name, position), translator(name).model, forward(name)
    last = model.model.encoder(torch.tensor([translation(name).source_ids])).final_hidden[0, -1].detach()
    close(shown["last encoder state"][0], last)
    close(shown["the fixed vector"], numbers(name, 0)["the fixed vector"])
    if name == "cho":
        context = model.model.decoder.network.context
        close(shown["the fixed vector"][0], torch.tanh(context.weight @ last + context.bias).detach())
    close(shown["new state"][0], outputs.decoder_hidden_states[-1][0, position])
    assert "weights" not in shown
    shows_the_likeliest(name, shown, position)


@pytest.mark.parametrize("kind", ["cross", "decoder"])
@pytest.mark.parametrize("name", TRANSFORMERS)
def test_transformers(name, kind):
    model = translator(name).model
    caught = {}
    for layer, block in enumerate(model.model.decoder.layers):
        attention = block.cross_attention if kind == "cross" else block.self_attention
        for part in ("query_projection", "key_projection", "value_projection", "output_projection"):

            def catch(module, inputs, output, key=(layer, part)):
                caught[key] = (inputs[0][0], output[0])

            getattr(attention, part).register_forward_hook(catch)
    try:
        outputs = forward(name)
    finally:
        for module in model.modules():
            module._forward_hooks.clear()
    weights = getattr(translation(name), f"{kind}_attentions")
    for layer, head, position in ((0, 0, 0), (1, 3, 2), (2, 1, 5)):
        shown = numbers(name, position, layer=layer, head=head, kind=kind)
        width = model.config.head_dim or 6  # hidden_size 24 in 4 heads
        part = slice(width * head, width * head + width)
        close(shown["weights"], weights[layer, head, position])
        close(shown["weights of every head"], weights[layer, :, position])
        close(shown["state"][0], caught[layer, "query_projection"][0][position])
        close(shown["values"], caught[layer, "value_projection"][1][:, part])
        if name != "rotary" or kind == "cross":
            close(shown["query"][0], caught[layer, "query_projection"][1][position, part])
            close(shown["keys"], caught[layer, "key_projection"][1][:, part])
        close(shown["joined contexts"][0], caught[layer, "output_projection"][0][position])
        close(shown["joined contexts"][0, part], shown["context"][0])
        close(shown["output of the attention"][0], caught[layer, "output_projection"][1][position])
        close(shown["query · key"], torch.stack([shown["query"][0] @ key for key in shown["keys"]]))
        bias = shown.get("position bias", torch.zeros(()))
        assert ("position bias" in shown) == (name in ("alibi", "relative", "t5") and kind == "decoder")
        close(shown["scores"], shown["query · key"] / (1 if name == "t5" else math.sqrt(6)) + bias)
        follows_the_formulas(shown, shown["keys"], shown["values"])
        hidden = torch.tensor([kind == "decoder" and key > position for key in range(len(shown["keys"]))])
        assert torch.equal(shown["masked scores"].isinf(), hidden)
        close(shown["masked scores"][~hidden], shown["scores"][~hidden])
        close(shown["last state"][0], outputs.decoder_hidden_states[-1][0, position])
        shows_the_likeliest(name, shown, position)


@pytest.mark.parametrize("name", [*RECURRENT, *TRANSFORMERS])
def test_the_code_is_the_source(name):
    kinds = ("cross", "decoder") if name in TRANSFORMERS else ("cross",)
    for step in (step for kind in kinds for step in attention_steps(translator(name), translation(name), 1, kind=kind)):
        assert step.code, f"step {step.title} names no line"
        for code in step.code:
            file, number = code.where.split(":")
            source = (ROOT / file).read_text(encoding="utf-8").splitlines()
            shown = code.text.splitlines()
            assert [line.strip() for line in shown] == [
                line.strip() for line in source[int(number) - 1 : int(number) - 1 + len(shown)]
            ]
            assert '"""' not in code.text and "def " not in code.text


def test_the_choice_of_a_beam_is_marked():
    """The written piece is listed even if it is not among the likeliest."""
    steps = attention_steps(translator("bahdanau"), translation("bahdanau"), 3)
    labels = steps[-1].quantities[-1].rows
    assert len(labels) in (5, 6) and sum(label.endswith("← written") for label in labels) == 1
    assert labels[-1].endswith("← written") or len(labels) == 5


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("bahdanau", {"position": 99}, "position is 99"),
        ("bahdanau", {"position": -1}, "position is -1"),
        ("bahdanau", {"position": True}, "position is True"),
        ("bahdanau", {"layer": 1}, "layer is 1"),
        ("bahdanau", {"kind": "decoder"}, "kind is 'decoder'"),
        ("transformer", {"head": 4}, "head is 4"),
        ("transformer", {"layer": 3}, "layer is 3"),
        ("transformer", {"kind": "encoder"}, "kind is 'encoder'"),
    ],
)
def test_what_there_is_no_step_of(name, options, message):
    with pytest.raises(ValueError, match=message):
        attention_steps(translator(name), translation(name), **{"position": 0, **options})


def test_a_family_whose_steps_are_not_written_is_refused_by_name():
    config = AttnConvS2SConfig(vocab_size=len(tokenizer()), hidden_size=8, encoder_layers=1, decoder_layers=1)
    convolutional = Translator(AttnConvS2SForConditionalGeneration(config), tokenizer())
    with pytest.raises(ValueError, match="of type 'attn-convs2s'; steps are known for attn-rnn, attn-transformer"):
        attention_steps(convolutional, convolutional.score(SOURCE, TARGET), 0)


def test_a_translation_of_several_lines_has_no_steps():
    lines = Translation("a\nb", "a\nb", [], [], [], 0.0, segments=[translation("bahdanau")] * 2)
    for nothing in (lines, Translation("", "", [], [], [], 0.0)):
        with pytest.raises(ValueError, match="several lines or none"):
            attention_steps(translator("bahdanau"), nothing, 0)


def cards(page):
    """The list of steps as elements; it is well-formed, so that nothing in a sentence was markup."""
    document = page.document.replace("<details open>", "<details>")
    return ElementTree.fromstring(document[document.index("<ol>") : document.index("</ol>") + 5]).findall("li")


@pytest.mark.parametrize("name", ["bahdanau", "transformer", "cho"])
def test_the_page_shows_the_steps(name):
    steps = attention_steps(translator(name), translation(name), 2)
    shown = cards(steps_html(translator(name), translation(name), 2))
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
    assert numbered == [str(number + 1) for number in range(len(steps) - (name == "bahdanau"))]
    assert len(numbered) == {"bahdanau": 5, "transformer": 8, "cho": 3}[name]


@pytest.mark.parametrize(
    ("name", "formulas"),
    [
        ("bahdanau", ["query = state<sub>i-1</sub>", "score<sub>j</sub> = v · tanh(W query + U key<sub>j</sub>)"]),
        (
            "transformer",
            ["query = W<sup>Q</sup> state", "/ √head_dim", "[context<sub>1</sub>; …; context<sub>h</sub>]"],
        ),
        ("bart", ["/ √head_dim", "p = softmax(E state + b)"]),
        ("t5", ["score<sub>j</sub> = query · key<sub>j</sub><", "p = softmax(E state / √hidden_size)"]),
        ("cho", ["c = tanh(V h<sub>last</sub>)"]),
    ],
)
def test_formulas_are_set(name, formulas):
    document = steps_html(translator(name), translation(name), 0).document
    for formula in formulas:
        assert formula in document


def test_what_may_not_be_seen_is_minus_infinity():
    page = steps_html(translator("transformer"), translation("transformer"), 1, kind="decoder")
    (masked,) = [figure for figure in cards(page)[3].iter("figure")]
    cells = [cell.text for cell in masked.iter("td") if cell.text]
    assert cells.count("−∞") == len(translation("transformer").target_tokens) - 2


def test_tokens_stay_text():
    line = translation("bahdanau")
    nasty = dataclasses.replace(
        line,
        source_tokens=["<img src=x onerror=alert(1)>"] * len(line.source_ids),
        target_tokens=["</pre><b>&amp;"] * len(line.target_ids),
    )
    page = steps_html(translator("bahdanau"), nasty, 1)
    for unwanted in ("<img", "</pre><b>", "<b>&amp;</b>"):
        assert unwanted not in page.document
    assert "&lt;img src=x onerror=alert(1)&gt;" in page.document and "&lt;/pre&gt;&lt;b&gt;&amp;amp;" in page.document
    assert {element.tag for card in cards(page) for element in card.iter()} <= set(
        "li h2 span p sub sup div figure figcaption table thead tr th td details summary pre".split()
    )
