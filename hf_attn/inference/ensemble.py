"""Several models that translate as one: at every step they share their probabilities.

    p(piece) = mean over models of p_model(piece | pieces before, source)

The arithmetic mean of distributions is a distribution again, so log-probabilities keep their meaning; some toolkits
take the mean of the log-probabilities instead, which must be normalised anew. Ensembles in translation: Sutskever 2014
(arXiv 1409.3215), section 3.6; ways to combine the predictions: Garmash and Monz 2016 (COLING, C16-1133).

`Ensemble` has what `generate()` asks of a model, so greedy search, beam search and sampling are those of a single one.
Every model encodes the source once and keeps a cache of its own. Read `loading.py` for how the models are opened.
"""

import math
from typing import Any

import torch
from torch import nn
from transformers import GenerationMixin, PreTrainedConfig, PreTrainedModel
from transformers.modeling_outputs import Seq2SeqLMOutput

_ALIGNMENT = ("alignment_method", "alignment_layer", "alignment_heads")


class EncoderOutputs(dict):
    """What all encoders return, in one flat dictionary: `generate()` repeats its tensors for the beams.

    Args:
        outputs: the output of each encoder.
    """

    def __init__(self, outputs: list[Any]):
        super().__init__(
            {(number, name): value for number, output in enumerate(outputs) for name, value in output.items()}
        )
        self.kinds = [type(output) for output in outputs]

    def of(self, number: int) -> Any:
        """Give the output of one encoder, as its model wants it."""
        return self.kinds[number](**{name: value for (owner, name), value in self.items() if owner == number})


class Encoders(nn.Module):
    """The encoders of all models, on the same source.

    Args:
        encoders: one for each model.
    """

    def __init__(self, encoders: list[nn.Module]):
        super().__init__()
        self.encoders = nn.ModuleList(encoders)

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor | None = None, **kwargs) -> EncoderOutputs:
        """Encode (batch, source_len) with each; `generate()` passes more, which is for single models."""
        return EncoderOutputs(
            [encoder(input_ids=input_ids, attention_mask=attention_mask, return_dict=True) for encoder in self.encoders]
        )


class Caches(list):
    """The cache of each model."""

    def reorder_cache(self, beam_idx: torch.Tensor) -> None:
        """Let row i of every cache continue where row beam_idx[i] was."""
        for cache in self:
            cache.reorder_cache(beam_idx)


class Ensemble(PreTrainedModel, GenerationMixin):
    """Models with one target vocabulary that predict together.

    Args:
        models: encoder-decoders with generating heads, of any families, on one device.

    Raises:
        ValueError: if the models differ in what they predict, or where they run.
    """

    config_class = PreTrainedConfig
    main_input_name = "input_ids"
    _is_stateful = True  # no assisted decoding, which would take back steps

    def __init__(self, models: list[PreTrainedModel]):
        for name, values in (
            ("the size of the target vocabulary", [_target_vocab_size(model) for model in models]),
            ("device", [str(model.device) for model in models]),
            ("decoder_start_token_id", [_setting(model, "decoder_start_token_id") for model in models]),
            ("eos_token_id", [_setting(model, "eos_token_id") for model in models]),
        ):
            if any(value != values[0] for value in values):
                raise ValueError(f"the models of an ensemble differ in {name}: {', '.join(map(str, values))}")
        super().__init__(_common_config(models))
        self.models = nn.ModuleList(models)
        self.generation_config = models[0].generation_config

    @classmethod
    def _supports_default_dynamic_cache(cls) -> bool:
        """Return False: every model makes its own cache."""
        return False

    def get_encoder(self, modality: str | None = None) -> Encoders:
        """Return all encoders as one."""
        return Encoders([model.get_encoder() for model in self.models])  # type: ignore[operator]

    def forward(
        self,
        input_ids: torch.Tensor | None = None,
        attention_mask: torch.Tensor | None = None,
        decoder_input_ids: torch.Tensor | None = None,
        encoder_outputs: EncoderOutputs | None = None,
        cache: Caches | None = None,
        use_cache: bool = False,
        output_attentions: bool = False,
        **kwargs,
    ) -> Seq2SeqLMOutput:
        """Predict the next target piece at every position.

        Args:
            input_ids: (batch, source_len); not read where `encoder_outputs` are given.
            attention_mask: (batch, source_len), non-zero for real pieces.
            decoder_input_ids: (batch, target_len)
            encoder_outputs: what `get_encoder()` returned.
            cache: the caches of earlier steps.
            use_cache: whether to return caches.
            output_attentions: whether to return attention weights: the mean of those of the models.
            **kwargs: ignored.

        Returns:
            Log-probabilities (batch, target_len, vocab_size) in place of logits, caches, and what was asked for.

        Raises:
            ValueError: if weights are asked for and the models differ in layers or heads, or a model gives none.
        """
        outputs = [
            model(
                input_ids=input_ids if encoder_outputs is None else None,
                attention_mask=attention_mask,
                decoder_input_ids=decoder_input_ids,
                encoder_outputs=None if encoder_outputs is None else encoder_outputs.of(number),
                cache=None if cache is None else cache[number],
                use_cache=use_cache,
                output_attentions=output_attentions,
                return_dict=True,
            )
            for number, model in enumerate(self.models)
        ]
        log_probs = torch.stack([output.logits.float().log_softmax(dim=-1) for output in outputs])
        weights: dict[str, Any] = {}
        if output_attentions:
            names = ("cross_attentions", "encoder_attentions", "decoder_attentions")
            weights = {name: _mean_weights(self.models, outputs, name) for name in names}
        caches: Any = Caches(output.cache for output in outputs) if use_cache else None
        return Seq2SeqLMOutput(logits=log_probs.logsumexp(dim=0) - math.log(len(outputs)), cache=caches, **weights)


def _common_config(models: list[PreTrainedModel]) -> PreTrainedConfig:
    """Say of the ensemble what `generate()` and `Translator` ask: its vocabulary, its positions, its alignment."""
    positions = [getattr(model.config, "max_position_embeddings", None) for model in models]
    limits = [limit for limit in positions if isinstance(limit, int)]
    settings: dict[str, Any] = {"vocab_size": _target_vocab_size(models[0])}
    if limits:
        settings["max_position_embeddings"] = min(limits)
    alignments = [{name: getattr(model.config, name, None) for name in _ALIGNMENT} for model in models]
    if all(alignment == alignments[0] for alignment in alignments):
        settings |= alignments[0]
        # the weights have a mean, but not what each model multiplies its own with
        without_norms = {"value_norm": "weights", "shifted_value_norm": "shifted"}
        method = settings["alignment_method"]
        settings["alignment_method"] = without_norms.get(method, method)
    return PreTrainedConfig(is_encoder_decoder=True, **settings)


def vocab_limits(model: PreTrainedModel) -> tuple[int, int]:
    """Give the numbers of pieces that a model, or each of an ensemble, can read and write; very large if unknown."""
    config: Any = model.models[0].config if isinstance(model, Ensemble) else model.config
    read = getattr(config, "vocab_size", None) or 2**31
    return read, getattr(config, "decoder_vocab_size", None) or read


def _target_vocab_size(model: PreTrainedModel) -> int:
    return getattr(model.config, "decoder_vocab_size", None) or model.config.vocab_size


def _setting(model: PreTrainedModel, name: str) -> Any:
    value = getattr(model.generation_config, name, None)
    return getattr(model.config, name, None) if value is None else value


def _mean_weights(models: Any, outputs: list[Any], name: str) -> tuple[torch.Tensor, ...] | None:
    """Average the weights of each layer and head over the models."""
    all_layers = [getattr(output, name, None) for output in outputs]
    for model, layers in zip(models, all_layers, strict=True):
        if layers is not None and len(layers) == 0:
            raise ValueError(
                f"{type(model).__name__} gives no attention weights with attn_implementation="
                f'{model.config._attn_implementation!r}; load it with attn_implementation="eager", or call with '
                "return_attention=False"
            )
    heads = [None if layers is None else [layer.shape[1] for layer in layers] for layers in all_layers]
    if any(each != heads[0] for each in heads):
        shapes = ", ".join("none" if each is None else f"{len(each)} layers of {each[0]} heads" for each in heads)
        raise ValueError(
            f"the models of this ensemble differ in their {name.replace('_', ' ')} ({shapes}), so there is no mean; "
            "call with return_attention=False and without coverage_penalty, or take models of one shape"
        )
    if heads[0] is None:
        return None
    return tuple(torch.stack(layers).mean(dim=0) for layers in zip(*all_layers, strict=True))
