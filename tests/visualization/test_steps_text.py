"""The steps of models that read one text: the numbers of every head of BERT and GPT in every variant."""

import functools

import pytest
import torch
from contract import cases
from transformers import PreTrainedTokenizerFast
from visualization.stepping import (
    Caught,
    alibi,
    close,
    follows_the_formulas,
    leaves_nothing,
    numbers,
    shows_the_head,
    shows_the_likeliest,
    shows_the_source,
    shows_the_steps,
)

from hf_attn.data import train_tokenizer
from hf_attn.data.tokenizer import readable_tokens
from hf_attn.visualization import text_steps, text_steps_html
from hf_attn.visualization.steps_text import TEXT_FAMILIES

TEXT = "the <old> cat sees a red bird & 새"
CASES = [case for case in cases(seq2seq=False) if f"attn-{case.values[0].family}" in TEXT_FAMILIES]


@functools.cache
def tokenizer(mask_token=True) -> PreTrainedTokenizerFast:
    """Whole words, as many as the models of the contract know."""
    words = train_tokenizer(
        [TEXT, " ".join(f"w{number}" for number in range(50))], 43, kind="word", mask_token=mask_token
    )
    assert len(words) == 43
    return words


@functools.cache
def model_of(case):
    """A model whose outputs are distinct."""
    return case.model(sharpness=3.0 if case.family == "gpt" else 1.0)


def run(model, ids):
    """What the model itself computes."""
    with torch.no_grad():
        return model(torch.tensor([ids]), output_attentions=True, output_hidden_states=True, return_dict=True)


@pytest.mark.parametrize("case", CASES)
def test_every_number_is_the_model_s(case):
    model = model_of(case)
    config, ids, stack = model.config, tokenizer()(TEXT).input_ids, model.base_model
    causal = case.family == "gpt"
    window = getattr(config, "sliding_window", None)
    ids[5] = tokenizer().mask_token_id

    def allowed(query, key):
        return not causal or (key <= query and (window is None or query - key < window))

    base = None
    if config.position_type == "rotary":
        base = getattr(config, "rope_theta", 10000.0)
    bias = alibi(config.num_attention_heads) if config.position_type == "alibi" else None
    for layer, head, position in ((0, 0, 5), (1, 1, 0), (1, 0, len(ids) - 1)):
        call = layer if len(stack.layers) == 1 else 0  # layers may share one attention
        caught = Caught(stack.layers[layer % len(stack.layers)].self_attention, lambda: run(model, ids))
        outputs = caught.outputs
        steps = text_steps(model, tokenizer(), TEXT, position, masked=[5], layer=layer, head=head)
        shown = numbers(steps)
        shows_the_head(shown, caught, position, head, call, allowed, bias, base)
        follows_the_formulas(shown, shown["keys"], shown["values"])
        close(shown["weights of every head"], outputs.attentions[layer][0, :, position].T)
        close(shown["state"][0], outputs.hidden_states[layer][0, position])
        close(shown["last state"][0], outputs.hidden_states[-1][0, position])
        assert steps[1].quantities[-1].values.numel() == stack.layers[0].self_attention.head_dim
        assert steps[0].quantities[0].rows == readable_tokens(tokenizer(), ids)
        shows_the_source(steps)


@pytest.mark.parametrize("case", CASES)
def test_the_last_step_is_what_the_head_says(case):
    model, original = model_of(case), tokenizer()(TEXT).input_ids
    hidden = [*original[:3], tokenizer().mask_token_id, *original[4:]]
    outputs = run(model, hidden)
    for position in (3, len(original) - 1):
        last = text_steps(model, tokenizer(), TEXT, position, masked=[3])[-1].quantities[-1]
        if hasattr(model, "lm_head"):
            following = original[position + 1] if position + 1 < len(original) else None
            written = original[position] if case.family == "bert" else following
            assert last.name == f"probability of the {'piece here' if case.family == 'bert' else 'next piece'}"
            shows_the_likeliest(last, outputs.logits[0, position], written)
        elif case.auto_name == "AutoModelForSequenceClassification":
            close(last.values, outputs.logits[0])
            assert last.rows == ["LABEL_0", "LABEL_1"]
        elif case.auto_name == "AutoModelForTokenClassification":
            close(last.values, outputs.logits[0, position])
        else:
            assert last.name == "last state"


HEADS = {case.id: case.values[0] for case in CASES}
BERT, GPT = HEADS["AttnBertForMaskedLM-devlin"], HEADS["AttnGptForCausalLM-radford"]


def test_a_mask_in_the_text_is_nothing_that_was_written():
    model, words = BERT.model(), tokenizer()
    ids = words(TEXT).input_ids
    ids[3] = words.mask_token_id
    last = text_steps(model, words, ids, 3)[-1].quantities[-1]
    shows_the_likeliest(last, run(model, ids).logits[0, 3], None)


def test_a_text_is_its_pieces():
    ids = tokenizer()(TEXT).input_ids
    for case in (BERT, GPT):
        of_text, of_ids = (numbers(text_steps(model_of(case), tokenizer(), given, 2)) for given in (TEXT, ids))
        assert of_text.keys() == of_ids.keys()
        for name in of_text:
            assert torch.equal(of_text[name], of_ids[name])


def test_padding_that_is_given_as_a_piece_is_read_as_one():
    """Without a mask of its own a text with the padding's id would lose pieces."""
    model, ids = model_of(BERT), [5, 0, 7, 2]
    shown = numbers(text_steps(model, tokenizer(), ids, 2, layer=0))
    with torch.no_grad():
        outputs = model(torch.tensor([ids]), torch.ones(1, 4).long(), output_attentions=True)
    close(shown["weights"], outputs.attentions[0][0, 0, 2])
    assert shown["weights"][1] > 0


def test_a_gpt_sees_nothing_that_comes_later_and_a_bert_sees_all():
    length = len(tokenizer()(TEXT).input_ids)
    hidden = numbers(text_steps(model_of(GPT), tokenizer(), TEXT, 2))["weights of every head"] == 0
    assert hidden[3:].all() and not hidden[:3].any() and len(hidden) == length
    assert (numbers(text_steps(model_of(BERT), tokenizer(), TEXT, 2))["weights of every head"] > 0).all()


@pytest.mark.parametrize("case", [BERT, GPT], ids=["bert", "gpt"])
def test_nothing_is_left_on_the_model(case):
    leaves_nothing(model_of(case), lambda: text_steps(model_of(case), tokenizer(), TEXT, 1, masked=[2]))


@pytest.mark.parametrize("case", [BERT, GPT], ids=["bert", "gpt"])
def test_the_page_shows_the_steps(case):
    options = {"masked": [1, 6], "layer": 0, "head": 1}
    page = text_steps_html(model_of(case), tokenizer(), TEXT, 2, **options)
    assert shows_the_steps(page, text_steps(model_of(case), tokenizer(), TEXT, 2, **options)) == 7
    assert '<h1>How the model read <span dir="auto" lang="">“old”' in page.document.replace("▁", "")
    sentence = page.document[page.document.index('<p class="sentence"') : page.document.index("<ol>")]
    assert sentence.count("&lt;mask&gt;") == 2 and "<old>" not in page.document and "head 2 (below)" in page.document


def errors(case, **options):
    options = {"text": TEXT, "position": 0} | options
    model = options.pop("model", model_of(case))
    with pytest.raises(ValueError) as caught:
        text_steps(
            model, options.pop("tokenizer", tokenizer()), options.pop("text"), options.pop("position"), **options
        )
    return str(caught.value)


def test_what_there_is_no_step_of():
    length = len(tokenizer()(TEXT).input_ids)
    for name, last in (("position", length - 1), ("layer", 1), ("head", 1)):
        for wrong in (-1, last + 1, True, 0.0):
            message = f"{name} is {wrong!r}; here it must be a whole number from 0 to {last}"
            assert errors(BERT, **{name: wrong}) == message
    assert errors(BERT, masked=[0, length]).startswith(f"masked is {length}; here")
    assert errors(BERT, text=[]) == "text has no pieces"
    assert "must be less than" in errors(GPT, text=[1, 99]) or "99" in errors(GPT, text=[1, 99])
    assert "tokens" in errors(GPT, text=[5] * 49)
    without = tokenizer(mask_token=False)
    assert errors(BERT, tokenizer=without, masked=[1]) == "masked is [1], but the tokenizer has no mask token"


def test_other_models_are_refused():
    (other,) = [one.values[0] for one in cases(seq2seq=True, heads=True) if one.id.endswith("Generation-bahdanau")]
    assert errors(other) == "model is of type 'attn-rnn'; the steps of a text are known for attn-bert, attn-gpt"
    training = BERT.model().train()
    assert "training mode" in errors(BERT, model=training) and training.training
