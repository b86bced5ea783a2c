"""The steps of ConvS2S against its equations in explicit loops of float64, from the ids to the probabilities."""

import functools
import math

import pytest
import reference
import reference_convs2s
import torch
from contract import VARIANTS
from visualization.stepping import close, follows_the_formulas, numbers, shows_the_likeliest

from hf_attn.data import train_tokenizer
from hf_attn.inference import Translator
from hf_attn.models.modeling_attn_convs2s import AttnConvS2SConfig, AttnConvS2SForConditionalGeneration
from hf_attn.visualization import attention_steps

SOURCE, TARGET = "the old cat sleeps.", "늙은 고양이가 잔다."
LAYERS = {"encoder_layers": 2, "decoder_layers": 3}


@functools.cache
def translator(variant):
    """A model of random weights, of one vocabulary."""
    torch.manual_seed(3)
    tokenizer = train_tokenizer([SOURCE, TARGET] * 4, 320)
    options = {name: value for name, value in VARIANTS["convs2s"][variant].items() if name != "decoder_vocab_size"}
    config = AttnConvS2SConfig(vocab_size=len(tokenizer), hidden_size=16, initializer_range=0.5, **LAYERS | options)
    return Translator(AttnConvS2SForConditionalGeneration(config), tokenizer)


@pytest.mark.parametrize("variant", VARIANTS["convs2s"])
def test_every_number_is_that_of_the_equations(variant):
    model = translator(variant).model
    line = translator(variant).score(SOURCE, TARGET)
    config, weights = model.config, {name: value.double() for name, value in model.state_dict().items()}
    read = [config.decoder_start_token_id, *line.target_ids[:-1]]
    of_source = reference_convs2s.embed(weights, "model.encoder", line.source_ids)
    keys, values = reference_convs2s.encode(config, weights, line.source_ids)
    embeddings = reference_convs2s.embed(weights, "model.decoder", read)
    logits, _ = reference_convs2s.translate(config, weights, line.source_ids, read)
    states = [reference_convs2s.linear(weights, "model.decoder.input_projection", vector) for vector in embeddings]
    size = config.decoder_kernel_size
    for layer in range(config.decoder_layers):
        prefix = f"model.decoder.layers.{layer}"
        found = reference_convs2s.convolve(weights, prefix, states, size, before=size - 1)
        new = []
        for position, (output, embedding) in enumerate(zip(found, embeddings, strict=True)):
            attended, row = reference_convs2s.look(weights, prefix, output, embedding, keys, values)
            new.append(reference_convs2s.halved(states[position], attended))
            if position not in (0, 1, len(read) - 1):
                continue
            steps = attention_steps(translator(variant), line, position, layer=layer)
            shown = numbers(steps)
            window = [
                states[place] if place >= 0 else 0 * states[0] for place in range(position - size + 1, position + 1)
            ]
            close(shown["window"], torch.stack(window))
            assert [label == "(nothing)" for label in steps[0].quantities[0].rows] == [
                place < 0 for place in range(position - size + 1, position + 1)
            ]
            both = reference_convs2s.linear(weights, f"{prefix}.convolution.projection", torch.cat(window))
            close(shown["A"][0], both[: len(both) // 2])
            close(shown["gate sigmoid(B)"][0], torch.stack([1 / (1 + torch.exp(-x)) for x in both[len(both) // 2 :]]))
            close(shown["h"][0], output)
            projected = reference_convs2s.linear(weights, f"{prefix}.query_projection", output)
            close(shown["W h + b"][0], projected)
            close(shown["target embedding g"][0], embedding)
            close(shown["query d"][0], projected + embedding)
            close(shown["encoder outputs z"], torch.stack(keys))
            close(shown["scores"], torch.stack([reference.dot(projected + embedding, key) for key in keys]))
            close(shown["weights"], row)
            close(shown["weights"], line.cross_attentions[layer, 0, position])
            close(shown["source embeddings e"], torch.stack(of_source))
            close(shown["values"], torch.stack(values))
            follows_the_formulas(shown, shown["encoder outputs z"], shown["values"])
            close(shown["√m context"], shown["context"] * math.sqrt(len(keys)))
            close(shown["found"][0], attended)
            close(shown["new state"][0], new[-1])
            last = weights["model.decoder.output_projection.weight"]
            if layer == config.decoder_layers - 1:
                output = last @ new[-1] + weights["model.decoder.output_projection.bias"]
                close(shown["output"][0], output)
            shows_the_likeliest(steps[-1].quantities[-1], logits[position], line.target_ids[position])
            said = f"Layer {layer + 2} begins with it." if layer < 2 else "This was the last layer."
            assert said in steps[6].meaning
            assert (f"{2 - layer} more layer" in steps[-1].meaning) == (layer < 2)
        states = new


def test_a_window_of_one_place_is_the_piece_read_last():
    line = translator("separate").score(SOURCE, TARGET)
    step = attention_steps(translator("separate"), line, 2)[0]
    assert step.formula == "window = state_i" and step.quantities[0].rows == [line.target_tokens[1]]
