# Copyright 2026 The hf_attn authors. Licensed under the Apache License, Version 2.0.
"""The recurrent models against explicit loops, and against what the library asks of a model."""

import copy
import itertools

import pytest
import reference_rnn
import torch
from huggingface_hub.errors import StrictDataclassError
from torch import nn
from transformers.cache_utils import DynamicCache
from transformers.modeling_outputs import BaseModelOutput

from hf_attn.models.configuration_attn_rnn import AttnRnnConfig
from hf_attn.models.modeling_attn_rnn import AttnRnnForConditionalGeneration, AttnRnnModel

SUTSKEVER = dict(
    attention_type="none",
    context_feeding="initial",
    bidirectional=False,
    reverse_source=True,
    encoder_layers=2,
    decoder_layers=2,
)
GNMT = dict(attention_type="gnmt", encoder_layers=4, decoder_layers=4, bidirectional_layers=1, residual=True)
DEEP = dict(encoder_layers=3, decoder_layers=3, residual=True)
FAMILY = {
    "sutskever": SUTSKEVER,
    "sutskever bridged": dict(attention_type="none", context_feeding="initial", encoder_layers=2),
    "cho": dict(attention_type="none", context_feeding="every_step", bidirectional=False, rnn_type="gru"),
    "cho lstm": dict(attention_type="none", context_feeding="every_step", decoder_layers=2),
    "bahdanau": dict(rnn_type="gru"),
    "bahdanau lstm": dict(encoder_layers=2, decoder_layers=2),
    "bahdanau one direction": dict(rnn_type="rnn", bidirectional=False, score_function="dot"),
    "luong": dict(attention_type="luong"),
    "luong additive": dict(attention_type="luong", score_function="additive", rnn_type="gru", decoder_layers=2),
    "luong dot": dict(
        attention_type="luong", score_function="dot", bidirectional=False, encoder_layers=2, decoder_layers=2
    ),
    "luong scaled": dict(attention_type="luong", score_function="scaled_dot", bidirectional=False, reverse_source=True),
    "luong fed": dict(attention_type="luong", input_feeding=True, score_function="concat", decoder_layers=2),
    "luong fed gru": dict(attention_type="luong", input_feeding=True, rnn_type="gru", bidirectional=False),
    "gnmt": GNMT,
    "gnmt gru": dict(GNMT, rnn_type="gru"),
    "gnmt both ways": dict(attention_type="gnmt", rnn_type="gru", encoder_layers=2, decoder_layers=2),
    "gnmt one layer": dict(attention_type="gnmt", score_function="dot", bidirectional=False),
    "gnmt two both ways": dict(GNMT, encoder_layers=5, bidirectional_layers=2, decoder_layers=2),
    "bahdanau residual": dict(DEEP, rnn_type="gru", bidirectional_layers=1),
    "luong residual": dict(DEEP, attention_type="luong"),
    "luong fed residual": dict(DEEP, attention_type="luong", input_feeding=True, rnn_type="gru"),
    "cho residual": dict(DEEP, attention_type="none", context_feeding="every_step", bidirectional_layers=2),
    "sutskever residual": dict(DEEP, attention_type="none", context_feeding="initial", bidirectional=False),
}
GENERATING = ["sutskever", "cho", "bahdanau", "luong", "luong fed", "gnmt"]
VOCAB = 17


def make(name, scale=1.0, head=AttnRnnForConditionalGeneration, **changes):
    """A tiny model; its matrices multiplied by `scale`, so that different tokens come out."""
    options = {
        "vocab_size": VOCAB,
        "hidden_size": 6,
        "dropout": 0.0,
        "initializer_range": 0.3,
        **FAMILY[name],
        **changes,
    }
    model = head(AttnRnnConfig(**options)).eval()
    with torch.no_grad():
        for parameter in {id(p): p for p in model.parameters()}.values():
            if parameter.dim() > 1:
                parameter.mul_(scale)
    return model


def source_ids(*lengths):
    """Rows of random ids, padded with 0 on the right."""
    ids = torch.randint(3, VOCAB, (len(lengths), max(lengths)))
    return ids * (torch.arange(max(lengths)) < torch.tensor(lengths)[:, None])


@pytest.mark.parametrize("name", FAMILY)
def test_logits_and_weights_are_the_equations(name):
    model = make(name, embedding_size=5).double()
    source, target = source_ids(4, 2), torch.randint(3, VOCAB, (2, 3))
    with torch.no_grad():
        out = model(input_ids=source, decoder_input_ids=target, output_attentions=True)
        table = dict(model.named_parameters())
        for row, length in enumerate((4, 2)):
            logits, weights = reference_rnn.translate(
                model.config, table, source[row, :length].tolist(), target[row].tolist()
            )
            torch.testing.assert_close(out.logits[row], logits)
            if weights is None:
                assert out.cross_attentions is None
            else:
                (ours,) = out.cross_attentions
                assert ours.shape == (2, 1, 3, 4)
                torch.testing.assert_close(ours[row, 0, :, :length], weights)
                assert ours[row, 0, :, length:].eq(0).all()
    assert out.encoder_attentions is None and out.decoder_attentions is None


def test_additive_and_concat_are_one_function():
    additive = make("bahdanau", score_function="additive")
    concat = make("bahdanau", score_function="concat")
    table = additive.state_dict()
    prefix = "model.decoder.network.score."
    halves = [table.pop(f"{prefix}query_projection.weight"), table.pop(f"{prefix}key_projection.weight")]
    concat.load_state_dict({**table, f"{prefix}pair_projection.weight": torch.cat(halves, dim=1)})
    inputs = {"input_ids": source_ids(5, 3), "decoder_input_ids": torch.randint(3, VOCAB, (2, 4))}
    torch.testing.assert_close(additive(**inputs).logits, concat(**inputs).logits)


def test_context_is_the_weighted_sum_of_the_encoders_states():
    model = make("luong", head=AttnRnnModel)
    out = model(
        input_ids=source_ids(5, 3),
        decoder_input_ids=torch.randint(3, VOCAB, (2, 4)),
        output_attentions=True,
        output_hidden_states=True,
    )
    (weights,) = out.cross_attentions
    torch.testing.assert_close(weights.sum(dim=-1), torch.ones(2, 1, 4))
    context = weights[:, 0] @ out.encoder_last_hidden_state
    both = torch.cat([context, out.decoder_hidden_states[-1]], dim=-1)
    torch.testing.assert_close(out.last_hidden_state, torch.tanh(both @ model.decoder.network.combine.weight.T))


@pytest.mark.parametrize("name", ["bahdanau", "sutskever", "luong fed", "gnmt"])
def test_padding_changes_nothing_wherever_it_stands(name):
    model = make(name)
    ids = torch.randint(3, VOCAB, (1, 3))
    target = torch.randint(3, VOCAB, (1, 4))
    alone = model(input_ids=ids, decoder_input_ids=target, output_attentions=True)
    for places in ([0, 1, 2], [2, 3, 4], [0, 2, 4]):
        padded, mask = torch.zeros(1, 5, dtype=torch.long), torch.zeros(1, 5, dtype=torch.long)
        padded[0, places], mask[0, places] = ids[0], 1
        explicit = model(
            input_ids=torch.where(mask > 0, padded, 9),
            attention_mask=mask,
            decoder_input_ids=target,
            output_attentions=True,
            output_scores=True,
        )
        for out in (model(input_ids=padded, decoder_input_ids=target, output_attentions=True), explicit):
            torch.testing.assert_close(out.logits, alone.logits)
            if out.cross_attentions is not None:
                torch.testing.assert_close(out.cross_attentions[0][..., places], alone.cross_attentions[0])


@pytest.mark.parametrize("name", GENERATING)
def test_a_row_of_padding_is_finite(name):
    model = make(name)
    ids = source_ids(4, 3)
    ids[1] = 0
    out = model(input_ids=ids, labels=torch.randint(3, VOCAB, (2, 3)), output_attentions=True)
    out.loss.backward()
    assert out.logits.isfinite().all() and all(p.grad.isfinite().all() for p in model.parameters())
    if out.cross_attentions is not None:
        assert out.cross_attentions[0][1].eq(0).all()


def test_the_reversed_source_is_read_backwards():
    reverse, plain = make("sutskever"), make("sutskever", reverse_source=False)
    plain.load_state_dict(reverse.state_dict())
    ids, target = source_ids(5), torch.randint(3, VOCAB, (1, 3))
    out = reverse(input_ids=ids, decoder_input_ids=target)
    torch.testing.assert_close(out.logits, plain(input_ids=ids.flip(1), decoder_input_ids=target).logits)
    assert not torch.allclose(out.logits, plain(input_ids=ids, decoder_input_ids=target).logits)


@pytest.mark.parametrize("name", GENERATING)
@pytest.mark.parametrize("beams", [1, 4])
def test_the_cache_changes_nothing(name, beams):
    model = make(name, scale=4.0)
    model.generation_config.eos_token_id = None
    ids = source_ids(6, 4, 5)
    cached, recomputed = (
        model.generate(
            ids, num_beams=beams, max_new_tokens=7, use_cache=use_cache, return_dict_in_generate=True,
            output_attentions=True, output_scores=True,
        )
        for use_cache in (True, False)
    )  # fmt: skip
    assert torch.equal(cached.sequences, recomputed.sequences)
    assert len(set(cached.sequences.flatten().tolist())) > 4
    for one, other in zip(cached.scores, recomputed.scores, strict=True):
        torch.testing.assert_close(one, other, atol=1e-4, rtol=1e-4)
    assert len(cached.cross_attentions) == 7
    if model.config.attention_type == "none":
        assert set(cached.cross_attentions) == {None}
        return
    assert all(len(step) == 1 and step[0].shape == (3 * beams, 1, 1, 6) for step in cached.cross_attentions)
    # the weights of the best beams are those of a run over the finished translation
    forced = model(input_ids=ids, decoder_input_ids=cached.sequences[:, :-1], output_attentions=True).cross_attentions[
        0
    ]
    for step, (weights,) in enumerate(cached.cross_attentions):
        rows = torch.arange(3) if beams == 1 else cached.beam_indices[:, step]
        torch.testing.assert_close(weights[rows][:, 0, 0], forced[:, 0, step], atol=1e-5, rtol=1e-4)


def test_generation_goes_on_from_a_given_cache():
    model = make("luong fed", scale=4.0)
    model.generation_config.eos_token_id = None
    ids = source_ids(5, 4)
    whole = model.generate(ids, max_new_tokens=6)
    first = model.generate(ids, max_new_tokens=3, return_dict_in_generate=True)
    rest = model.generate(
        ids, max_new_tokens=3, cache=first.cache, decoder_input_ids=first.sequences,
        decoder_attention_mask=torch.ones_like(first.sequences),
    )  # fmt: skip
    assert torch.equal(whole, rest)


@pytest.mark.parametrize(("rnn_type", "bidirectional"), [*itertools.product(["rnn", "gru", "lstm"], [True, False])])
def test_every_combination_trains_all_its_parameters(rnn_type, bidirectional):
    layers = (2, 1) if bidirectional else (1, 2)
    kinds = [
        dict(attention_type="none", context_feeding="initial"),
        dict(attention_type="none"),
        dict(attention_type="bahdanau"),
        dict(attention_type="bahdanau", score_function="general"),
        dict(attention_type="luong", score_function="concat"),
        dict(attention_type="luong", input_feeding=True),
        dict(attention_type="gnmt"),
    ]
    for kind in kinds:
        model = AttnRnnForConditionalGeneration(
            AttnRnnConfig(
                vocab_size=VOCAB, hidden_size=6, embedding_size=5, rnn_type=rnn_type, bidirectional=bidirectional,
                encoder_layers=layers[0], decoder_layers=layers[1], dropout=0.0, **kind,
            )
        )  # fmt: skip
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        inputs = {"input_ids": source_ids(4, 3), "labels": torch.randint(3, VOCAB, (2, 3))}
        before = model.train()(**inputs).loss
        before.backward()
        missing = [
            name for name, parameter in model.named_parameters() if parameter.grad is None or not parameter.grad.any()
        ]
        assert not missing
        optimizer.step()
        assert model(**inputs).loss < before


def test_the_loss_is_exact_under_gradient_accumulation():
    model = make("bahdanau")
    ids, labels = source_ids(4, 3, 4), torch.randint(3, VOCAB, (3, 5))
    labels[0, 2:] = labels[2, 4:] = -100
    count = labels.ne(-100).sum()
    whole = model(input_ids=ids, labels=labels).loss
    parts = sum(
        model(input_ids=ids[i : i + 1], labels=labels[i : i + 1], num_items_in_batch=count).loss for i in range(3)
    )
    torch.testing.assert_close(parts, whole)
    log_probs = model(input_ids=ids, labels=labels).logits.log_softmax(-1)
    chosen = [log_probs[i, j, labels[i, j]] for i in range(3) for j in range(5) if labels[i, j] != -100]
    torch.testing.assert_close(whole, -sum(chosen) / len(chosen))


@pytest.mark.parametrize("name", ["sutskever", "cho", "bahdanau", "luong", "gnmt"])
@pytest.mark.parametrize(("share", "tie"), [*itertools.product([False, True], [False, True])])
def test_every_way_of_tying_embeddings_survives_saving(name, share, tie, tmp_path):
    model = make(name, share_embeddings=share, tie_word_embeddings=tie)
    model.save_pretrained(tmp_path, include_code=False)
    poison = torch.full((1_000_000,), float("nan"))
    del poison
    loaded, info = AttnRnnForConditionalGeneration.from_pretrained(tmp_path, output_loading_info=True)
    assert not info["missing_keys"] and not info["unexpected_keys"]
    for one in (model, loaded):
        source, target = one.model.encoder.embed_tokens.weight, one.model.decoder.embed_tokens.weight
        assert (source is target) == share and (one.lm_head.weight is target) == tie
    for key, value in model.state_dict().items():
        assert torch.equal(value, loaded.state_dict()[key]), key
    inputs = {"input_ids": source_ids(4, 3), "decoder_input_ids": torch.randint(3, VOCAB, (2, 3))}
    torch.testing.assert_close(model(**inputs).logits, loaded.eval()(**inputs).logits)


def test_new_recurrent_weights_are_orthogonal_and_the_forget_gate_is_open():
    rnn = make("luong").model.decoder.network.rnn.layers[0]
    for gate in rnn.weight_hh_l0.chunk(4):
        torch.testing.assert_close(gate @ gate.T, torch.eye(6), atol=1e-5, rtol=0)
    assert rnn.bias_hh_l0.tolist() == [0.0] * 6 + [1.0] * 6 + [0.0] * 12
    assert rnn.bias_ih_l0.eq(0).all()


def test_separate_vocabularies():
    model = make("bahdanau", decoder_vocab_size=29, tie_word_embeddings=True, scale=4.0)
    assert model.model.encoder.embed_tokens.num_embeddings == VOCAB
    assert model.model.decoder.embed_tokens.num_embeddings == model.lm_head.out_features == 29
    ids = source_ids(4, 3)
    assert model(input_ids=ids, labels=torch.full((2, 3), 28)).logits.shape == (2, 3, 29)
    model.generation_config.eos_token_id = None
    out = model.generate(ids, max_new_tokens=5, num_beams=2, return_dict_in_generate=True, output_scores=True)
    scores = model.compute_transition_scores(out.sequences, out.scores, out.beam_indices)
    forced = model(input_ids=ids, decoder_input_ids=out.sequences[:, :-1]).logits.log_softmax(-1)
    expected = forced.gather(2, out.sequences[:, 1:, None])[..., 0]
    torch.testing.assert_close(scores, expected, atol=1e-4, rtol=1e-4)
    assert model.config.vocab_size == VOCAB


@pytest.mark.parametrize("name", GENERATING)
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_runs_and_is_close(name, dtype):
    model = make(name)
    inputs = {"input_ids": source_ids(4, 3), "labels": torch.randint(3, VOCAB, (2, 3))}
    with torch.no_grad():
        expected = model(**inputs).logits
        with torch.autocast("cpu", dtype=torch.bfloat16):
            automatic = model(**inputs).logits
        half = model.to(dtype)(**inputs).logits
    torch.testing.assert_close(automatic.float(), expected, atol=0.05, rtol=0.05)
    torch.testing.assert_close(half.float(), expected, atol=0.05, rtol=0.05)
    assert half.dtype == dtype


@pytest.mark.parametrize("options", [dict(encoder_layers=2), dict(DEEP, bidirectional_layers=1)])
def test_checkpointed_encoder_has_the_same_gradients(options):
    model = make("bahdanau", **options).train()
    inputs = {"input_ids": source_ids(4, 3), "labels": torch.randint(3, VOCAB, (2, 3))}
    model(**inputs).loss.backward()
    expected = {name: parameter.grad.clone() for name, parameter in model.named_parameters()}
    model.zero_grad()
    model.activation_checkpointing_enable()
    model(**inputs).loss.backward()
    for name, parameter in model.named_parameters():
        torch.testing.assert_close(parameter.grad, expected[name])


def test_hidden_states_are_embeddings_and_layers():
    model = make("bahdanau", encoder_layers=2, decoder_layers=2, embedding_size=5)
    out = model(
        input_ids=source_ids(4, 3), decoder_input_ids=torch.randint(3, VOCAB, (2, 3)), output_hidden_states=True
    )
    assert [tuple(states.shape) for states in out.encoder_hidden_states] == [(2, 4, 5), (2, 4, 12), (2, 4, 12)]
    assert [tuple(states.shape) for states in out.decoder_hidden_states] == [(2, 3, 5), (2, 3, 6), (2, 3, 6)]
    assert torch.equal(out.encoder_hidden_states[-1], out.encoder_last_hidden_state)


@pytest.mark.parametrize("implementation", ["sdpa", "flash_attention_2", "flex_attention"])
def test_fused_kernels_are_refused_with_the_reason(implementation, tmp_path):
    model = make("luong")
    model.save_pretrained(tmp_path, include_code=False)
    with pytest.raises(
        ValueError, match=f"{implementation}.*AttnRnnForConditionalGeneration; use 'eager'.*nothing to fuse"
    ):
        AttnRnnForConditionalGeneration.from_pretrained(tmp_path, attn_implementation=implementation)
    with pytest.raises(ValueError, match="nothing to fuse"):
        AttnRnnForConditionalGeneration._from_config(copy.deepcopy(model.config), attn_implementation=implementation)
    with pytest.raises(ValueError, match="nothing to fuse"):
        model.set_attn_implementation(implementation)
    model.set_attn_implementation("eager")
    assert (
        AttnRnnForConditionalGeneration.from_pretrained(
            tmp_path, attn_implementation="eager"
        ).config._attn_implementation
        == "eager"
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (dict(rnn_type="gru2"), "rnn_type='gru2' .*'rnn', 'gru', 'lstm'"),
        (dict(attention_type="self"), "attention_type='self' .*'none', 'bahdanau', 'luong', 'gnmt'"),
        (dict(score_function="cosine"), "score_function='cosine' .*'additive'"),
        (dict(num_attention_heads=2), "num_attention_heads=2 .*1"),
        (dict(hidden_size=0), "hidden_size=0 must be at least 1"),
        (dict(dropout=1.0), "dropout=1.0 must be at least 0 and less than 1"),
        (dict(pad_token_id=32000), "pad_token_id=32000 must be at least 0 and less than 32000"),
        (dict(decoder_start_token_id=-1), "decoder_start_token_id=-1 must be at least 0"),
        (dict(bidirectional=True, reverse_source=True), "reverse_source=True needs bidirectional=False"),
        (dict(bidirectional=False, bidirectional_layers=1), "bidirectional_layers=1 .*got bidirectional=False"),
        (dict(bidirectional_layers=2), "bidirectional_layers=2 .*encoder_layers=1"),
        (dict(bidirectional_layers=0), "bidirectional_layers=0 must be at least 1"),
        (dict(input_feeding=True), "input_feeding=True needs attention_type='luong', got attention_type='bahdanau'"),
        (dict(context_feeding="initial"), "context_feeding='initial' needs attention_type='none'"),
        (dict(attention_type="none", context_feeding="last"), "context_feeding='last' .*'every_step', 'initial'"),
        (dict(attention_type="none", score_function="dot"), "score_function='dot' needs attention"),
        (
            dict(attention_type="luong", score_function="dot"),
            "score_function='dot' .*width hidden_size=512 .*width 1024",
        ),
        (dict(share_embeddings=True, decoder_vocab_size=9), "share_embeddings=True needs a joint vocabulary"),
        (
            dict(attention_type="luong", tie_word_embeddings=True, embedding_size=9),
            "needs embedding_size == hidden_size",
        ),
    ],
)
def test_bad_configurations_are_refused_by_name(options, message):
    with pytest.raises(ValueError, match=message):
        AttnRnnConfig(**options)


def test_a_wrong_type_is_refused():
    with pytest.raises((TypeError, StrictDataclassError), match="hidden_size"):
        AttnRnnConfig(hidden_size="wide")


def test_arguments_that_do_not_fit_are_refused():
    model = make("bahdanau")
    ids, target = source_ids(4, 3), torch.randint(3, VOCAB, (2, 3))
    encoded = BaseModelOutput(last_hidden_state=torch.zeros(2, 4, 12))
    with pytest.raises(
        ValueError, match="encoder_outputs must be what this model's encoder returned .*BaseModelOutput"
    ):
        model(encoder_outputs=encoded, decoder_input_ids=target)
    with pytest.raises(ValueError, match="cache must be a RecurrentCache, .*DynamicCache"):
        model(input_ids=ids, decoder_input_ids=target, cache=DynamicCache())
    with pytest.raises(ValueError, match="padding before a real token"):
        model(input_ids=ids, decoder_input_ids=target, decoder_attention_mask=torch.tensor([[0, 1, 1], [1, 1, 1]]))
    with pytest.raises(ValueError, match="exactly one of input_ids and inputs_embeds, got neither"):
        model(decoder_input_ids=target)
    with pytest.raises(ValueError, match="exactly one of decoder_input_ids and decoder_inputs_embeds, got both"):
        model.model(input_ids=ids, decoder_input_ids=target, decoder_inputs_embeds=torch.zeros(2, 3, 6))


def test_it_learns_to_reverse():
    model = make("bahdanau", rnn_type="gru", hidden_size=32, dropout=0.0, initializer_range=0.1).train()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for _ in range(60):
        ids = torch.randint(3, VOCAB, (32, 4))
        loss = model(input_ids=ids, labels=ids.flip(1)).loss
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    ids = torch.randint(3, VOCAB, (64, 4))
    out = model.eval()(input_ids=ids, labels=ids.flip(1), output_attentions=True)
    assert out.loss < 0.5
    looked_at = out.cross_attentions[0][:, 0].argmax(dim=-1)
    assert (looked_at == torch.tensor([3, 2, 1, 0])).float().mean() > 0.5


def test_a_source_without_tokens_is_refused():
    model = AttnRnnForConditionalGeneration(AttnRnnConfig(vocab_size=10, hidden_size=8, attention_size=8))
    with pytest.raises(ValueError, match="must have at least one token"):
        model(torch.empty(1, 0, dtype=torch.long), labels=torch.tensor([[3, 2]]))


@pytest.mark.parametrize("name", ["bahdanau", "bahdanau lstm", "luong fed", "luong dot", "gnmt", "gnmt both ways"])
def test_value_norms_are_the_share_of_a_state_in_what_reads_the_context(name):
    """The matrices that read the context, applied to a context that is one encoder state alone."""
    model = make(name)
    states = torch.randn(2, 5, model.config.source_width)
    (norms,) = model.model.decoder.value_norms(states)
    assert norms.shape == (2, 1, 5)
    network = model.model.decoder.network
    for row, position in itertools.product(range(2), range(5)):
        state, width = states[row, position], model.config.hidden_size
        if name.startswith("luong"):
            read = network.combine(torch.cat([state, torch.zeros(width)]))
        elif name.startswith("gnmt"):
            layers = [network.bottom.layers[0], *network.above]
            below = [model.config.embedding_width] + [width] * len(network.above)
            read = [layer.weight_ih_l0 @ torch.cat([torch.zeros(size), state]) for layer, size in zip(layers, below)]
            read = torch.cat(read)
        else:
            layer, embedding = network.rnn.layers[0], model.config.embedding_width
            step = layer.weight_ih_l0 @ torch.cat([torch.zeros(embedding), state])
            nothing = torch.zeros(width + embedding)
            output = network.output.projection
            read = torch.cat([step, output(torch.cat([nothing, state])) - output.bias])
        torch.testing.assert_close(norms[row, 0, position], read.square().sum().sqrt())


@pytest.mark.parametrize("kind", ["lstm", "gru"])
def test_the_deep_encoder_is_torchs_layers_with_the_sums_written_out(kind):
    """Wu 2016, sections 3.1 and 3.2: the bottom layer reads both ways, the sums begin with the third."""
    model = make("gnmt", rnn_type=kind, embedding_size=5).double()
    layers = [getattr(nn, kind.upper())(size, 6, bidirectional=size == 5).double() for size in (5, 12, 6, 6)]
    for mine, theirs in zip(model.model.encoder.layers, layers, strict=True):
        theirs.load_state_dict(mine.rnn.state_dict())
    ids = source_ids(5, 2)
    out = model.model.encoder(ids, output_hidden_states=True)
    assert [states.shape[-1] for states in out.hidden_states] == [5, 12, 6, 6, 6] and model.config.source_width == 6
    for row, length in enumerate((5, 2)):
        embedded = model.model.encoder.embed_tokens(ids[row, :length])
        first, _ = layers[0](embedded)
        second, _ = layers[1](first)
        third, _ = layers[2](second)
        fourth, _ = layers[3](third + second)
        expected = [embedded, first, second, third + second, fourth + third + second]
        for states, wanted in zip(out.hidden_states, expected, strict=True):
            torch.testing.assert_close(states[row, :length], wanted)
            assert states[row, length:].eq(0).all() or states is out.hidden_states[0]
        # of the layers as wide as the top: their own states, without the sums
        last = torch.stack([second[-1], third[-1], fourth[-1]])
        torch.testing.assert_close(out.final_hidden[row], last)


@pytest.mark.parametrize("kind", ["lstm", "gru"])
def test_the_layers_above_the_bottom_are_torchs_with_the_sums_written_out(kind):
    """Wu 2016, section 3: given the bottom layer and the contexts, each layer reads the one below and the context."""
    model = make("gnmt", rnn_type=kind, head=AttnRnnModel).double()
    network, ids, target = model.decoder.network, source_ids(5, 2), torch.randint(3, VOCAB, (2, 4))
    encoded = model.encoder(ids)
    out = model(encoder_outputs=encoded, decoder_input_ids=target, output_attentions=True, output_hidden_states=True)
    contexts = out.cross_attentions[0][:, 0] @ encoded.last_hidden_state
    _, bottom, *above = out.decoder_hidden_states
    first_states, outputs = network.begin(encoded).states, [bottom]
    for layer, (mine, state) in enumerate(zip(network.above, first_states[1:], strict=True), start=1):
        theirs = getattr(nn, kind.upper())(12, 6, batch_first=True).double()
        theirs.load_state_dict(mine.state_dict())
        before = tuple(part[None] for part in state)
        hidden, _ = theirs(torch.cat([outputs[-1], contexts], dim=-1), before if kind == "lstm" else before[0])
        outputs.append(hidden if layer == 1 else hidden + outputs[-1])
    for mine, wanted in zip(above, outputs[1:], strict=True):
        torch.testing.assert_close(mine, wanted)
    assert torch.equal(out.last_hidden_state, above[-1])


@pytest.mark.parametrize("name", ["gnmt", "gnmt gru", "bahdanau residual", "luong fed residual"])
def test_token_by_token_is_the_whole_sequence(name):
    model = make(name).double()
    ids, target = source_ids(5, 2, 3), torch.randint(3, VOCAB, (3, 6))
    encoded = model.get_encoder()(ids)
    whole = model(encoder_outputs=encoded, decoder_input_ids=target, use_cache=True, output_attentions=True)
    cache, logits, weights = None, [], []
    for position in range(6):
        step = target[:, position : position + 1]
        out = model(
            encoder_outputs=encoded, decoder_input_ids=step, cache=cache, use_cache=True, output_attentions=True
        )
        cache = out.cache
        logits.append(out.logits)
        weights.append(out.cross_attentions[0])
    torch.testing.assert_close(torch.cat(logits, dim=1), whole.logits)
    torch.testing.assert_close(torch.cat(weights, dim=2), whole.cross_attentions[0])
    assert len(cache.memory.states) == model.config.decoder_layers
    for one, other in zip(cache.memory.states, whole.cache.memory.states, strict=True):
        torch.testing.assert_close(one, other)


@pytest.mark.parametrize("kind", [dict(attention_type="luong"), dict(attention_type="none", context_feeding="initial")])
def test_a_decoder_that_starts_from_every_layer_needs_them_equally_wide(kind):
    with pytest.raises(ValueError, match="bidirectional_layers=1 makes encoder layers of different widths"):
        AttnRnnConfig(encoder_layers=2, bidirectional_layers=1, **kind)
    assert AttnRnnConfig(encoder_layers=2, bidirectional_layers=2, **kind).encoder_widths == [1024, 1024]


@pytest.mark.parametrize(
    ("options", "widths"),
    [
        (dict(encoder_layers=3), [1024, 1024, 1024]),
        (dict(encoder_layers=3, bidirectional_layers=1), [1024, 512, 512]),
        (dict(encoder_layers=3, bidirectional_layers=2), [1024, 1024, 512]),
        (dict(encoder_layers=3, bidirectional=False), [512, 512, 512]),
    ],
)
def test_the_source_is_as_wide_as_the_top_layer(options, widths):
    config = AttnRnnConfig(**options)
    assert config.encoder_widths == widths and config.source_width == widths[-1]


def test_without_attention_there_are_no_value_norms():
    model = make("cho")
    assert model.model.decoder.value_norms(torch.randn(1, 2, model.config.source_width)) is None
