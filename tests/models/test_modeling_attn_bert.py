"""The bidirectional encoder: padding, positions, segments, shared layers, precision."""

import functools

import pytest
import torch
from contract import Case, cases

from hf_attn.models.configuration_attn_bert import POSITION_TYPES
from hf_attn.models.modeling_attn_bert import AttnBertModel

BERT = [param for param in cases() if param.values[0].family == "bert"]
STACK = Case("bert", "AutoModel", "devlin")
MASKED = Case("bert", "AutoModelForMaskedLM", "devlin")


@functools.cache
def model_of(case, **options):
    return case.model(sharpness=3.0, **options)


def ids_of(rows, length, seed=0):
    return torch.randint(3, 43, (rows, length), generator=torch.Generator().manual_seed(seed))


def close(one, other, **tolerance):
    torch.testing.assert_close(one, other, **{"atol": 1e-5, "rtol": 1e-4, **tolerance})


def run(model, *arguments, **options):
    with torch.no_grad():
        return model(*arguments, output_attentions=True, **options)


@pytest.mark.parametrize("where", ["left", "right"])
@pytest.mark.parametrize("case", BERT)
def test_padding_changes_nothing(case, where):
    model, ids = model_of(case), ids_of(2, 5)
    columns = torch.full((2, 3), model.config.pad_token_id)
    longer = torch.cat([columns, ids] if where == "left" else [ids, columns], dim=1)
    real = slice(3, None) if where == "left" else slice(5)
    plain = run(model, ids)
    for mask in (longer.ne(model.config.pad_token_id).long(), None):  # given, and inferred from the ids
        output = run(model, longer, mask)
        for one, other in zip(output.to_tuple(), plain.to_tuple(), strict=True):
            if isinstance(one, tuple):
                for weights, expected in zip(one, other, strict=True):
                    close(weights[:, :, real, real], expected)
                    assert (weights.sum(-1) - 1).abs().max() < 1e-5 and (weights[:, :, real].sum(-1) > 0.99).all()
            else:
                close(one[:, real] if one.shape[1] == 8 else one, other)
        base = model.base_model
        for pooling in ("cls", "mean", "max"):
            close(base.sentence_embedding(longer, mask, pooling=pooling), base.sentence_embedding(ids, pooling=pooling))


@pytest.mark.parametrize("implementation", ["eager", "sdpa"])
@pytest.mark.parametrize("case", BERT)
def test_a_row_of_padding_is_finite_and_so_are_its_gradients(case, implementation):
    model = case.model().train()
    model.set_attn_implementation(implementation)
    batch = case.batch()
    batch["attention_mask"][1] = 0
    outputs = model(**batch, output_attentions=implementation == "eager")
    loss = outputs.loss if case.is_head else outputs[0].square().mean()
    loss.backward()
    assert loss.isfinite() and outputs[1 if case.is_head else 0].isfinite().all()
    assert all(one.grad.isfinite().all() for one in model.parameters() if one.grad is not None)
    for weights in outputs.attentions or ():
        assert (weights[1] == 0).all()


@pytest.mark.parametrize("kind", POSITION_TYPES)
def test_without_positions_a_set_is_read_and_with_them_a_sequence(kind):
    model, ids, order = model_of(STACK, position_type=kind), torch.arange(3, 9)[None], [1, 2, 3, 4, 5, 0]
    before, after = (run(model, one).last_hidden_state for one in (ids, ids[:, order]))
    if kind == "none":
        close(before[:, order], after)
    else:
        assert (before[:, order] - after).abs().max() > 1e-3


@pytest.mark.parametrize("case", BERT)
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float64])
def test_other_precisions_compute_nearly_the_same(case, dtype):
    batch = case.batch()
    expected, got = run(case.model(**case.still), **batch), run(case.model(**case.still).to(dtype), **batch)
    scale = expected[1].abs().max().item() if case.is_head else expected[0].abs().max().item()
    place = 1 if case.is_head else 0
    assert got[place].dtype == dtype
    close(got[place].float(), expected[place], rtol=0, atol=(0.04 if dtype == torch.bfloat16 else 1e-4) * scale)
    if case.is_head:
        close(got.loss.float(), expected.loss, rtol=0.03, atol=0)


@pytest.mark.parametrize("variant", ["devlin", "albert", "pre-norm"])
def test_gradcheck_of_the_whole(variant):
    """By its embeddings; the last token is padding in the second row."""
    case = Case("bert", "AutoModelForMaskedLM", variant)
    small = {"hidden_size": 4, "intermediate_size": 6, "vocab_size": 7} | case.still
    model = case.model(**small, embedding_size=3 if variant == "albert" else 4, layer_norm_eps=1e-5).double()
    embeds = torch.randn(2, 3, model.config.embedding_width, dtype=torch.float64, requires_grad=True)
    mask = torch.tensor([[1, 1, 1], [1, 1, 0]])
    assert torch.autograd.gradcheck(lambda x: model(inputs_embeds=x, attention_mask=mask).logits, (embeds,))


def test_one_layer_for_all_is_as_many_layers_with_the_same_weights():
    shared = model_of(Case("bert", "AutoModel", "albert"), num_hidden_layers=3)
    single = AttnBertModel(Case("bert", "AutoModel", "albert").config(share_layers=False, num_hidden_layers=3)).eval()
    assert len(shared.layers) == 1 and len(single.layers) == 3
    state = shared.state_dict()
    for number in (1, 2):
        copies = {name.replace("layers.0.", f"layers.{number}.") for name in state if "layers.0." in name}
        state |= {name: state[name.replace(f"layers.{number}.", "layers.0.")] for name in copies}
    single.load_state_dict(state)
    ids = ids_of(2, 6)
    one, other = run(shared, ids), run(single, ids)
    close(one.last_hidden_state, other.last_hidden_state)
    assert len(one.attentions) == 3
    for weights, expected in zip(one.attentions, other.attentions, strict=True):
        close(weights, expected)


def test_positions_numbered_from_an_offset_are_those_of_a_shorter_table():
    offset, plain = model_of(STACK, position_offset=2), model_of(STACK, max_position_embeddings=46)
    state = offset.state_dict()
    state["embedding.learned.weight"] = state["embedding.learned.weight"][2:]
    plain.load_state_dict(state)
    close(run(offset, ids_of(2, 46)).last_hidden_state, run(plain, ids_of(2, 46)).last_hidden_state)
    for model in (offset, plain):
        with pytest.raises(ValueError, match="the sequence has 47 tokens, but there are only 46 learned positions"):
            model(ids_of(1, 47))


def test_segments_are_added_and_0_where_nothing_is_said():
    model, ids = model_of(STACK), ids_of(2, 6)
    segments = torch.tensor([[0, 0, 0, 1, 1, 1], [0, 1, 1, 1, 1, 1]])
    table = model.embedding.segments.weight
    embeds = model.embed_tokens(ids) + table[segments] - table[0]
    close(run(model, ids, token_type_ids=segments)[0], run(model, inputs_embeds=embeds)[0])
    assert torch.equal(run(model, ids)[0], run(model, ids, token_type_ids=torch.zeros_like(ids))[0])
    without = model_of(STACK, type_vocab_size=0)
    assert torch.equal(run(without, ids)[0], run(without, ids, token_type_ids=torch.zeros_like(ids))[0])


@pytest.mark.parametrize(
    ("options", "segments", "message"),
    [
        ({}, torch.full((2, 6), 2), "token_type_ids has the id 2; ids must be at least 0 and less than 2"),
        ({"type_vocab_size": 0}, torch.ones(2, 6).long(), "token_type_ids has the id 1; .*less than 1"),
        ({}, torch.zeros(2, 5).long(), r"token_type_ids must have the shape \(2, 6\) of the tokens, got \(2, 5\)"),
        ({}, torch.zeros(1, 6).long(), r"token_type_ids must have the shape \(2, 6\) of the tokens, got \(1, 6\)"),
    ],
)
def test_segments_that_there_are_not_are_refused(options, segments, message):
    with pytest.raises(ValueError, match=message):
        model_of(STACK, **options)(ids_of(2, 6), token_type_ids=segments)


def test_an_answer_needs_both_its_ends():
    with pytest.raises(ValueError, match="both start_positions and end_positions"):
        model_of(Case("bert", "AutoModelForQuestionAnswering", "devlin"))(
            ids_of(2, 6), start_positions=torch.tensor([0, 1])
        )


def test_a_pooler_is_where_it_is_asked_for_or_needed():
    assert AttnBertModel(STACK.config()).pooler is not None
    assert AttnBertModel(STACK.config(use_pooler=False)).pooler is None
    assert run(AttnBertModel(STACK.config(use_pooler=False)), ids_of(1, 3)).pooler_output is None
    for name in ("AutoModelForMaskedLM", "AutoModelForTokenClassification", "AutoModelForQuestionAnswering"):
        assert Case("bert", name, "devlin").model().model.pooler is None
    classifier = Case("bert", "AutoModelForSequenceClassification", "devlin").model(use_pooler=False)
    assert classifier.model.pooler is not None


def test_a_sentence_embedding_is_the_mean_of_the_states_of_its_tokens():
    model, batch = model_of(STACK), STACK.batch()
    states = run(model, **batch).last_hidden_state
    vectors = model.sentence_embedding(**batch)
    for row, mask, vector in zip(states, batch["attention_mask"], vectors, strict=True):
        real = [state for state, one in zip(row, mask, strict=True) if one]
        close(vector, sum(real) / len(real))


@pytest.mark.parametrize("problem", ["regression", "multi_label_classification", "single_label_classification"])
def test_texts_are_classified_by_the_kind_that_the_configuration_names(problem):
    case = Case("bert", "AutoModelForSequenceClassification", "devlin")
    model = case.model(num_labels=3, problem_type=problem)
    labels = torch.tensor([[1.0, 0, 1], [0, 0, 1], [1, 1, 0]])
    labels = labels.argmax(-1) if problem == "single_label_classification" else labels
    outputs = model(**case.batch(labels=False), labels=labels)
    expected = {
        "regression": torch.nn.functional.mse_loss,
        "multi_label_classification": torch.nn.functional.binary_cross_entropy_with_logits,
        "single_label_classification": torch.nn.functional.cross_entropy,
    }[problem](outputs.logits, labels)
    torch.testing.assert_close(outputs.loss, expected)
    assert model.config.problem_type == problem
