"""transformers' Marian against our Transformer: copied weights, equal outputs, equal training."""

import pytest
import torch
from transformers import MarianConfig, MarianMTModel

from hf_attn.models.modeling_attn_transformer import AttnTransformerConfig, AttnTransformerForConditionalGeneration

ATTENTION_NAMES = {
    "q_proj": "query_projection",
    "k_proj": "key_projection",
    "v_proj": "value_projection",
    "out_proj": "output_projection",
}
LAYER_NAMES = {
    "self_attn_layer_norm": "self_attention_norm",
    "encoder_attn_layer_norm": "cross_attention_norm",
    "final_layer_norm": "feed_forward_norm",
    "self_attn": "self_attention",
    "encoder_attn": "cross_attention",
    "fc1": "feed_forward.inner",
    "fc2": "feed_forward.outer",
}


def marian_pair(seed=0, activation="relu", heads=4, **marian):
    """A Marian made by transformers, and ours with its weights."""
    torch.manual_seed(seed)
    config = MarianConfig(
        vocab_size=60, d_model=32, encoder_layers=2, decoder_layers=3, encoder_attention_heads=heads,
        decoder_attention_heads=heads, encoder_ffn_dim=64, decoder_ffn_dim=48, max_position_embeddings=40,
        activation_function=activation, scale_embedding=True, dropout=0.0, attention_dropout=0.0,
        activation_dropout=0.0, pad_token_id=0, eos_token_id=2, bos_token_id=1,
        decoder_start_token_id=1, forced_eos_token_id=None, init_std=0.1, **marian,
    )  # fmt: skip
    theirs = MarianMTModel._from_config(config, attn_implementation="eager").eval()
    ours = AttnTransformerForConditionalGeneration(
        AttnTransformerConfig(
            vocab_size=60,
            hidden_size=32,
            encoder_layers=2,
            decoder_layers=3,
            encoder_attention_heads=heads,
            decoder_attention_heads=heads,
            encoder_intermediate_size=64,
            decoder_intermediate_size=48,
            max_position_embeddings=40,
            activation_function=activation,
            dropout=0.0,
            position_type="learned",
        )  # fmt: skip
    ).eval()
    # Marian's sinusoids have another order of coordinates (all sines, then all cosines) and stay fixed in training: a
    # frozen learned table
    state = {}
    for name, tensor in theirs.state_dict().items():
        if name.startswith(("final_logits_bias", "model.shared")):
            continue
        for old, new in (LAYER_NAMES | ATTENTION_NAMES | {"embed_positions": "embedding.learned"}).items():
            name = name.replace(f".{old}.", f".{new}.")
        state[name] = tensor.clone()
    missing, unexpected = ours.load_state_dict(state, strict=False)
    assert not missing and not unexpected
    for stack in (ours.model.encoder, ours.model.decoder):
        stack.embedding.learned.requires_grad_(False)
    return theirs, ours


def ragged_batch(generator, batch=5, source_len=9, target_len=8):
    input_ids = torch.randint(3, 60, (batch, source_len), generator=generator)
    labels = torch.randint(3, 60, (batch, target_len), generator=generator)
    mask = torch.ones_like(input_ids)
    for row in range(1, batch):
        mask[row, source_len - row :] = 0
        labels[row, target_len - row :] = -100
    return {"input_ids": input_ids.masked_fill(mask == 0, 0), "attention_mask": mask, "labels": labels}


@pytest.mark.parametrize(
    "seed,activation,heads", [(0, "relu", 4), (1, "gelu", 2), (2, "swish", 8), (3, "relu", 1), (4, "gelu", 4)]
)
@pytest.mark.parametrize("implementation", ["eager", "sdpa"])
def test_logits_weights_and_gradients_equal_marian(seed, activation, heads, implementation):
    theirs, ours = marian_pair(seed, activation, heads)
    ours.set_attn_implementation(implementation)
    batch = ragged_batch(torch.Generator().manual_seed(seed))
    expected = theirs(**batch, output_attentions=True)
    got = ours(**batch, output_attentions=True)
    torch.testing.assert_close(got.logits, expected.logits, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(got.loss, expected.loss, atol=1e-6, rtol=1e-6)
    for field in ("encoder_attentions", "decoder_attentions", "cross_attentions"):
        assert len(getattr(got, field)) == len(getattr(expected, field))
        for weights, expected_weights in zip(getattr(got, field), getattr(expected, field), strict=True):
            torch.testing.assert_close(weights, expected_weights, atol=1e-5, rtol=1e-5)
    ours(**batch).loss.backward()  # without weights: through the kernel
    expected.loss.backward()
    torch.testing.assert_close(
        ours.model.encoder.embed_tokens.weight.grad, theirs.model.shared.weight.grad, atol=1e-5, rtol=1e-4
    )


def sharpened_pair():
    """A pair with larger matrices, which choose among tokens: an untrained model repeats one."""
    theirs, ours = marian_pair(7)
    with torch.no_grad():
        for model in (theirs, ours):
            for name, parameter in model.named_parameters():
                if parameter.dim() > 1 and "positions" not in name and "learned" not in name:
                    parameter.mul_(1.7)
    return theirs, ours


@pytest.mark.parametrize("options", [{}, {"num_beams": 4}, {"num_beams": 3, "num_return_sequences": 2}])
def test_generate_equals_marian(options):
    theirs, ours = sharpened_pair()
    batch = ragged_batch(torch.Generator().manual_seed(3))
    inputs = {"input_ids": batch["input_ids"], "attention_mask": batch["attention_mask"]}
    settings = {"max_new_tokens": 12, "bad_words_ids": None, "forced_eos_token_id": None, **options}
    expected = theirs.generate(**inputs, **settings)
    assert expected.unique().numel() > 4
    assert torch.equal(ours.generate(**inputs, **settings), expected)


@pytest.mark.parametrize("implementation,dtype", [("eager", torch.float32), ("sdpa", torch.float64)])
def test_two_hundred_updates_equal_marian(implementation, dtype):
    theirs, ours = (model.to(dtype) for model in marian_pair(11))  # a kernel's rounding grows under Adam in float32
    ours.set_attn_implementation(implementation)
    theirs.train(), ours.train()
    optimizers = [
        torch.optim.Adam([p for p in model.parameters() if p.requires_grad], lr=1e-3, betas=(0.9, 0.98))
        for model in (theirs, ours)
    ]
    generator = torch.Generator().manual_seed(5)
    batches = [ragged_batch(generator) for _ in range(4)]
    losses = []
    for step in range(200):
        pair = []
        for model, optimizer in zip((theirs, ours), optimizers, strict=True):
            loss = model(**batches[step % 4]).loss
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            pair.append(loss.item())
        losses.append(pair)
    losses = torch.tensor(losses)
    assert losses[-1, 0] < 0.7 * losses[0, 0]  # it learned something
    assert (losses[:, 0] - losses[:, 1]).abs().max() < 1e-4
    assert (theirs(**batches[0]).logits - ours(**batches[0]).logits).abs().max() < 1e-3
