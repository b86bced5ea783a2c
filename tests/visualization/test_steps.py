"""The steps show the model's own numbers: what it computes itself, and what each formula makes of those before."""

import dataclasses
import functools
import math

import pytest
import torch
from transformers import MarianConfig, MarianMTModel
from visualization.stepping import (
    Caught,
    alibi,
    cards,
    close,
    follows_the_formulas,
    leaves_nothing,
    relative,
    shows_the_head,
    shows_the_likeliest,
    shows_the_source,
    shows_the_steps,
)
from visualization.stepping import numbers as numbers_of

from hf_attn.data import train_tokenizer
from hf_attn.inference import Translation, Translator
from hf_attn.models.configuration_attn_convs2s import AttnConvS2SConfig
from hf_attn.models.configuration_attn_rnn import AttnRnnConfig
from hf_attn.models.configuration_attn_transformer import AttnTransformerConfig
from hf_attn.models.modeling_attn_convs2s import AttnConvS2SForConditionalGeneration
from hf_attn.models.modeling_attn_rnn import AttnRnnForConditionalGeneration
from hf_attn.models.modeling_attn_transformer import AttnTransformerForConditionalGeneration
from hf_attn.visualization import attention_steps, steps_html
from hf_attn.visualization.page import escape

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
    sizes = {"encoder_layers": 2, "decoder_layers": 3, "encoder_attention_heads": 2, "decoder_attention_heads": 4}
    sizes |= {"encoder_intermediate_size": 32, "decoder_intermediate_size": 32}
    if name == "convs2s":
        config = AttnConvS2SConfig(**common, encoder_layers=2, decoder_layers=3)
        return Translator(AttnConvS2SForConditionalGeneration(config), tokenizer())
    config = AttnTransformerConfig(**common, **sizes, **TRANSFORMERS[name])
    return Translator(AttnTransformerForConditionalGeneration(config), tokenizer())


@functools.cache
def translation(name):
    return translator(name).score(SOURCE, TARGET)


def numbers(name, position, **options):
    """All quantities by name."""
    return numbers_of(attention_steps(translator(name), translation(name), position, **options))


def forward(name):
    """What the model itself computes for the translation."""
    model, line = translator(name).model, translation(name)
    read = torch.tensor([[model.config.decoder_start_token_id, *line.target_ids[:-1]]])
    with torch.no_grad():
        return model(
            torch.tensor([line.source_ids]), decoder_input_ids=read, output_attentions=True, output_hidden_states=True
        )


def shows_the_choice(name, position):
    """The last step has the model's own probabilities, and marks the piece that is written."""
    line, quantity = (
        translation(name),
        attention_steps(translator(name), translation(name), position)[-1].quantities[-1],
    )
    assert quantity.name == "probability of the next piece"
    shows_the_likeliest(quantity, forward(name).logits[0, position], line.target_ids[position])
    assert f"{line.target_tokens[position]} ← written" in quantity.rows


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
    shows_the_choice(name, position)


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
    shows_the_choice(name, position)


KINDS = ("cross", "decoder", "encoder")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", TRANSFORMERS)
def test_transformers(name, kind):
    model, line = translator(name).model, translation(name)
    stack = model.model.encoder if kind == "encoder" else model.model.decoder
    heads = stack.layers[0].self_attention.num_heads
    options = {"allowed": (lambda query, key: key <= query) if kind == "decoder" else None}
    if kind != "cross":
        options["base"] = 10000.0 if name == "rotary" else None
        if name == "alibi":
            options["bias"] = alibi(heads)
        elif name in ("relative", "t5"):
            options["bias"] = relative(stack.position_bias, bidirectional=kind == "encoder")
    weights = getattr(line, f"{kind}_attentions")
    for layer, head, position in ((0, 0, 0), (1, 1, 2), (len(stack.layers) - 1, heads - 1, 5)):
        block = stack.layers[layer]
        attention = block.cross_attention if kind == "cross" else block.self_attention
        caught = Caught(attention, lambda: forward(name))
        shown = numbers(name, position, layer=layer, head=head, kind=kind)
        shows_the_head(shown, caught, position, head, **options)
        close(shown["weights of every head"], weights[layer, :, position].T)
        follows_the_formulas(shown, shown["keys"], shown["values"])
        assert ("normalised state" in shown) == model.config.norm_first
        if kind == "encoder":
            close(shown["last state"][0], caught.outputs.encoder_last_hidden_state[0, position])
        else:
            close(shown["last state"][0], caught.outputs.decoder_hidden_states[-1][0, position])
            shows_the_choice(name, position)
        if kind != "cross":
            states = getattr(caught.outputs, f"{kind}_hidden_states")
            close(shown["state"][0], states[layer][0, position])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["transformer", "pre-norm"])
def test_the_state_that_is_added_to_is_what_the_layer_goes_on_with(name, kind):
    """From the sum that is shown, the rest of the layer, written out, is the next layer's state."""
    model, position, layer = translator(name).model, 3, 0
    stack = model.model.encoder if kind == "encoder" else model.model.decoder
    outputs = forward(name)
    states = outputs.encoder_hidden_states if kind == "encoder" else outputs.decoder_hidden_states
    shown, block = numbers(name, position, layer=layer, kind=kind), stack.layers[layer]
    state = shown["state + output"][0]
    with torch.no_grad():
        if kind == "decoder":
            state = block.self_attention_norm(state) if not model.config.norm_first else state
            close(numbers(name, position, layer=layer)["state"][0], state)
            return
        if model.config.norm_first:
            state = state + block.feed_forward(block.feed_forward_norm(state))
        else:
            norm = block.self_attention_norm if kind == "encoder" else block.cross_attention_norm
            state = norm(state)
            state = block.feed_forward_norm(state + block.feed_forward(state))
    close(state, states[layer + 1][0, position])


@pytest.mark.parametrize("name", [*RECURRENT, *TRANSFORMERS, "convs2s"])
def test_the_code_is_the_source(name):
    for kind in KINDS if name in TRANSFORMERS else ("cross",):
        steps = attention_steps(translator(name), translation(name), 1, kind=kind)
        assert all(step.code for step in steps)
        shows_the_source(steps)


@pytest.mark.parametrize("name", ["bahdanau", "transformer", "convs2s"])
def test_nothing_is_left_on_the_model(name):
    kinds = KINDS if name == "transformer" else ("cross",)
    line = translation(name)
    leaves_nothing(
        translator(name).model,
        lambda: [attention_steps(translator(name), line, 2, kind=kind) for kind in kinds],
    )


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
        ("transformer", {"kind": "encoder", "layer": 2}, "layer is 2; here it must be a whole number from 0 to 1"),
        ("transformer", {"kind": "encoder", "head": 2}, "head is 2"),
        ("transformer", {"kind": "encoder", "position": 99}, "position is 99"),
        ("transformer", {"kind": "both"}, "kind is 'both'; for attn-transformer it must be one of cross, decoder, enc"),
        ("convs2s", {"kind": "encoder"}, "kind is 'encoder'; for attn-convs2s it must be one of cross"),
        ("convs2s", {"layer": 3}, "layer is 3"),
        ("convs2s", {"head": 1}, "head is 1"),
    ],
)
def test_what_there_is_no_step_of(name, options, message):
    with pytest.raises(ValueError, match=message):
        attention_steps(translator(name), translation(name), **{"position": 0, **options})


def test_a_family_whose_steps_are_not_written_is_refused_by_name():
    sizes = {"d_model": 8, "encoder_layers": 1, "decoder_layers": 1, "encoder_ffn_dim": 8, "decoder_ffn_dim": 8}
    sizes |= {"encoder_attention_heads": 2, "decoder_attention_heads": 2}
    config = MarianConfig(
        vocab_size=len(tokenizer()), pad_token_id=0, eos_token_id=2, decoder_start_token_id=0, **sizes
    )
    marian = Translator(MarianMTModel._from_config(config, attn_implementation="eager"), tokenizer())
    with pytest.raises(ValueError, match="of type 'marian'; steps are known for attn-rnn, attn-convs2s, attn-transf"):
        attention_steps(marian, marian.score(SOURCE, TARGET), 0)


def test_a_translation_of_several_lines_has_no_steps():
    lines = Translation("a\nb", "a\nb", [], [], [], 0.0, segments=[translation("bahdanau")] * 2)
    for nothing in (lines, Translation("", "", [], [], [], 0.0)):
        with pytest.raises(ValueError, match="several lines or none"):
            attention_steps(translator("bahdanau"), nothing, 0)


@pytest.mark.parametrize(
    ("name", "kind", "count"),
    [
        ("bahdanau", "cross", 5),
        ("cho", "cross", 3),
        ("convs2s", "cross", 8),
        ("transformer", "cross", 7),
        ("transformer", "encoder", 7),
        ("pre-norm", "decoder", 7),
    ],
)
def test_the_page_shows_the_steps(name, kind, count):
    line, options = translation(name), {"kind": kind}
    page = steps_html(translator(name), line, 2, **options)
    assert shows_the_steps(page, attention_steps(translator(name), line, 2, **options)) == count
    piece = escape((line.source_tokens if kind == "encoder" else line.target_tokens)[2])
    happened = "encoder read" if kind == "encoder" else "model wrote"
    assert f'<h1>How the {happened} <span dir="auto" lang="">“{piece}”</span></h1>' in page.document


@pytest.mark.parametrize(
    ("name", "formulas"),
    [
        ("bahdanau", ["query = state<sub>i-1</sub>", "score<sub>j</sub> = v · tanh(W query + U key<sub>j</sub>)"]),
        (
            "transformer",
            ["query = W<sup>Q</sup> state + b", "/ √head_dim", "[context<sub>1</sub>; …; context<sub>h</sub>] + b"],
        ),
        ("bart", ["/ √head_dim", "p = softmax(E state + b)"]),
        (
            "rotary",
            ["query = rotate(W<sup>Q</sup> state + b, i)", "value<sub>j</sub> = W<sup>V</sup> state<sub>j</sub>"],
        ),
        (
            "pre-norm",
            ["query = W<sup>Q</sup> norm(state) + b", "key<sub>j</sub> = W<sup>K</sup> state<sub>j</sub> + b"],
        ),
        ("gnmt", ["state<sup>l</sup><sub>i</sub> = rnn([output<sup>l-1</sup><sub>i</sub>; context])"]),
        (
            "convs2s",
            ["[A; B] = W window + b", "d = W h + b + g", "value<sub>j</sub> = √½ (z<sub>j</sub> + e<sub>j</sub>)"],
        ),
        (
            "t5",
            [
                "score<sub>j</sub> = query · key<sub>j</sub><",
                "query = W<sup>Q</sup> norm(state)<",
                "p = softmax(E state / √hidden_size)",
            ],
        ),
        ("cho", ["c = tanh(V h<sub>last</sub>)"]),
    ],
)
def test_formulas_are_set(name, formulas):
    kind = "decoder" if name == "rotary" else "cross"
    document = steps_html(translator(name), translation(name), 0, kind=kind).document
    for formula in formulas:
        assert formula in document


def test_what_may_not_be_seen_is_minus_infinity():
    page = steps_html(translator("transformer"), translation("transformer"), 1, kind="decoder")
    (masked,) = [figure for figure in cards(page)[4].iter("figure")]
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
