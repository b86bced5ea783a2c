"""Every family and head at a size that runs in milliseconds, for the tests that all must pass.

A family is here as soon as it is in `registry.FAMILIES`: fields that its configuration has get the small values of
SMALL, and VARIANTS adds the published alternatives whose code differs.
"""

import inspect
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import pytest
import torch
from transformers import PreTrainedConfig, PreTrainedModel

from hf_attn.registry import FAMILIES, family_module

SMALL = {
    "vocab_size": 43,
    "hidden_size": 16,
    "embedding_size": 16,
    "attention_size": 12,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "encoder_attention_heads": 2,
    "decoder_attention_heads": 4,
    "encoder_kernel_size": 3,
    "decoder_kernel_size": 3,
    "encoder_intermediate_size": 24,
    "decoder_intermediate_size": 20,
    "intermediate_size": 24,
    "max_position_embeddings": 48,
    "image_size": 6,
    "patch_size": 2,
    "num_channels": 2,
    "dropout": 0.1,
    "attention_dropout": 0.1,
}
VARIANTS: dict[str, dict[str, dict[str, Any]]] = {
    "rnn": {
        "bahdanau": {},
        "luong": {"attention_type": "luong", "input_feeding": True, "rnn_type": "gru", "share_embeddings": True},
        "cho": {"attention_type": "none", "rnn_type": "gru", "tie_word_embeddings": True},
        "sutskever": {
            "attention_type": "none", "context_feeding": "initial", "bidirectional": False, "reverse_source": True,
        },
        "gnmt": {
            "attention_type": "gnmt", "encoder_layers": 3, "decoder_layers": 3, "bidirectional_layers": 1,
            "residual": True, "tie_word_embeddings": True,
        },
    },
    "convs2s": {
        "gehring": {},
        "tied": {
            "embedding_size": 12, "encoder_kernel_size": 5, "decoder_kernel_size": 2, "share_embeddings": True,
            "tie_word_embeddings": True,
        },
        "separate": {"decoder_vocab_size": 37, "decoder_kernel_size": 1},
    },
    "transformer": {
        "vaswani": {},
        "pre-norm": {"norm_first": True, "norm_type": "rms", "position_type": "rotary", "tie_word_embeddings": False},
        "learned": {"position_type": "learned", "embedding_size": 12, "share_embeddings": False},
        "alibi": {"position_type": "alibi", "decoder_vocab_size": 37, "share_embeddings": False},
        "bart": {
            "position_type": "learned", "scale_embedding": False, "normalize_embedding": True, "output_bias": True,
            "activation_function": "gelu", "activation_dropout": 0.1, "decoder_start_token_id": 2,
        },
        "t5": {
            "position_type": "relative", "norm_first": True, "norm_type": "rms", "head_dim": 6,
            "scale_attention": False, "use_bias": False, "gated_feed_forward": True, "activation_function": "gelu_new",
            "scale_output": True, "decoder_start_token_id": 0,
        },
    },
    "bert": {
        "devlin": {"initializer_range": 0.25, "bos_token_id": 1, "eos_token_id": 2},
        "roberta": {"initializer_range": 0.25, "type_vocab_size": 1, "position_offset": 1, "eos_token_id": 2},
        "albert": {
            "initializer_range": 0.25, "share_layers": True, "embedding_size": 12, "activation_function": "gelu_new",
        },
        "pre-norm": {
            "initializer_range": 0.25, "norm_first": True, "norm_type": "rms", "layer_norm_eps": None,
            "position_type": "rotary", "type_vocab_size": 0, "use_pooler": False, "tie_word_embeddings": False,
        },
    },
    "gpt": {
        "radford": {},
        "llama": {
            "position_type": "rotary", "norm_type": "rms", "gated_feed_forward": True, "activation_function": "silu",
            "use_bias": False, "num_key_value_heads": 1, "tie_word_embeddings": False,
        },
        "window": {"position_type": "alibi", "normalize_embedding": True, "sliding_window": 3, "head_dim": 6},
        "decoder": {
            "position_type": "sinusoidal", "scale_embedding": True, "norm_first": False, "add_cross_attention": True,
            "cross_attention_hidden_size": 12,
        },
    },
    "vit": {
        "dosovitskiy": {"initializer_range": 0.25},
        "plain": {
            "initializer_range": 0.25, "pooling": "mean", "position_type": "sinusoidal", "norm_type": "rms",
            "layer_norm_eps": None, "qkv_bias": False, "use_pooler": False,
        },
    },
}  # fmt: skip
# classes whose own code is the same in every variant: they come in the first one alone
CLASSIFIERS = (
    "AutoModelForSequenceClassification",
    "AutoModelForTokenClassification",
    "AutoModelForQuestionAnswering",
    "AutoModelForPreTraining",
    "AutoModelForImageClassification",
    "AutoModelForMaskedImageModeling",
)


@dataclass(frozen=True)
class Case:
    """One model class in one variant."""

    family: str
    auto_name: str
    variant: str

    @property
    def id(self) -> str:
        """Name of the test."""
        return f"{self.model_class.__name__}-{self.variant}"

    @property
    def model_class(self) -> type[PreTrainedModel]:
        """The class that is tested."""
        return family_module(self.family).AUTO_CLASSES[self.auto_name]

    @property
    def label_names(self) -> tuple[str, ...]:
        """The arguments that say what is right; none without a loss."""
        return tuple(name for name in ("labels", "start_positions", "end_positions") if name in self.arguments)

    @property
    def is_head(self) -> bool:
        """Whether the class computes a loss."""
        return bool(self.label_names)

    @property
    def reads_text(self) -> bool:
        """Whether the input is text; else it is pictures."""
        return self.model_class.main_input_name == "input_ids"

    @property
    def is_encoder_decoder(self) -> bool:
        """Whether there is a source and a target."""
        return self.config().is_encoder_decoder

    @property
    def is_causal(self) -> bool:
        """Whether each token is predicted from those before it, without a source."""
        return self.generates and not self.is_encoder_decoder

    @property
    def has_vocabulary(self) -> bool:
        """Whether the class scores the tokens of its vocabulary."""
        return self.is_head and self.auto_name not in CLASSIFIERS

    @property
    def generates(self) -> bool:
        """Whether the class has `generate()`."""
        return self.model_class.can_generate()

    @cached_property
    def arguments(self) -> tuple[str, ...]:
        """Names of the arguments of `forward`."""
        return tuple(inspect.signature(self.model_class.forward).parameters)

    @property
    def still(self) -> dict[str, float]:
        """Options that drop nothing."""
        names = [field.name for field in fields(self.model_class.config_class)]
        return {name: 0.0 for name in names if name.endswith("dropout")}

    def config(self, **options: Any) -> PreTrainedConfig:
        """The small configuration of the variant; options come on top."""
        config_class = self.model_class.config_class
        # a family of one head in each layer has no choice
        known = {one.name for one in fields(config_class) if (one.name, one.default) != ("num_attention_heads", 1)}
        variant = VARIANTS.get(self.family, {}).get(self.variant, {})
        return config_class(**{name: SMALL[name] for name in SMALL if name in known} | variant | options)

    def model(self, seed: int = 0, sharpness: float = 1.0, **options: Any) -> PreTrainedModel:
        """A model with random weights, in eval mode.

        Args:
            seed: of the weights.
            sharpness: Factor of all matrices. The logits of tiny new models are nearly constant; 4 makes the tokens
                that they choose distinct. Of convolutional models, in which nothing bounds what the layers multiply,
                factor of the embeddings and the output matrix.
            options: of the configuration.
        """
        torch.manual_seed(seed)
        model = self.model_class(self.config(**options)).eval()
        with torch.no_grad():
            for name, parameter in model.named_parameters():  # a tied matrix comes once
                if parameter.dim() > 1 and (self.family != "convs2s" or "embed" in name or "lm_head" in name):
                    parameter.mul_(sharpness)
        return model

    def batch(self, lengths=(7, 4, 1), targets=(5, 6, 2), seed: int = 0, labels: bool | None = None) -> dict:
        """A ragged batch, padded on the right: the arguments of `forward`. Or as many pictures.

        Args:
            lengths: of the inputs, the end-of-sentence id included.
            targets: of the labels.
            seed: of the ids.
            labels: Whether to give labels; by default if the class takes them. Else the decoder's input, if there is
                one.
        """
        config = self.config()
        generator = torch.Generator().manual_seed(seed)
        if not self.reads_text:
            size = (len(lengths), config.num_channels, config.image_size, config.image_size)
            pictures = {"pixel_values": torch.randn(size, generator=generator)}
            wants_labels = self.is_head if labels is None else labels
            return pictures | (self._labels(torch.ones(len(lengths), 1), generator) if wants_labels else {})
        batch = dict(zip(("input_ids", "attention_mask"), self._ids(lengths, config.vocab_size, generator)))
        wants_labels = self.is_head if labels is None else labels
        if wants_labels and not config.is_encoder_decoder:
            batch |= self._labels(batch["attention_mask"].bool(), generator)
        elif config.is_encoder_decoder:
            ids, mask = self._ids(targets, config.decoder_vocab_size or config.vocab_size, generator)
            if wants_labels:
                batch["labels"] = ids.masked_fill(mask == 0, -100)
            else:
                batch["decoder_input_ids"] = ids
        return batch

    def _labels(self, real: torch.Tensor, generator: torch.Generator) -> dict[str, torch.Tensor]:
        """Random labels of the kind of the head, for texts of which these tokens, (batch, length), are real."""
        if self.auto_name == "AutoModelForQuestionAnswering":
            places = (torch.rand(2, len(real), generator=generator) * real.sum(1)).long().sort(dim=0).values
            return dict(zip(self.label_names, places, strict=True))
        if self.auto_name in ("AutoModelForSequenceClassification", "AutoModelForImageClassification"):
            return {"labels": torch.randint(self.config().num_labels, (len(real),), generator=generator)}
        classes = self.config().vocab_size if self.has_vocabulary else 2
        labels = torch.randint(classes, real.shape, generator=generator)
        return {"labels": labels.masked_fill(~real, -100)}

    def attention_shapes(
        self, batch: int = 3, source_len: int = 7, target_len: int = 6, key_len: int | None = None
    ) -> dict[str, list[tuple[int, ...]]]:
        """The shapes of the attention weights by field of the output, for each layer; a field that the model does not
        have is absent.

        Args:
            batch: Number of rows.
            source_len: Length of the source.
            target_len: Number of target tokens in the call.
            key_len: How many target tokens they attend to; by default only themselves.
        """
        config, key_len = self.config(), target_len if key_len is None else key_len
        if self.family == "rnn":
            return {} if config.attention_type == "none" else {"cross_attentions": [(batch, 1, target_len, source_len)]}
        if self.family == "convs2s":
            return {"cross_attentions": [(batch, 1, target_len, source_len)] * config.decoder_layers}
        if not self.reads_text:
            source_len = config.class_tokens + config.grid_size**2
        if not config.is_encoder_decoder:
            shape = (batch, config.num_attention_heads, source_len, source_len)
            return {"attentions": [shape] * config.num_hidden_layers}
        encoder, decoder = (batch, config.encoder_attention_heads), (batch, config.decoder_attention_heads)
        return {
            "encoder_attentions": [(*encoder, source_len, source_len)] * config.encoder_layers,
            "decoder_attentions": [(*decoder, target_len, key_len)] * config.decoder_layers,
            "cross_attentions": [(*decoder, target_len, source_len)] * config.decoder_layers,
        }

    def _ids(self, lengths, vocab_size: int, generator: torch.Generator) -> tuple[torch.Tensor, torch.Tensor]:
        """Random ids above the special ones, each row ended by the end-of-sentence id, then padding; and their mask."""
        config = self.config()
        end = 2 if config.eos_token_id is None else config.eos_token_id
        ids = torch.randint(3, vocab_size, (len(lengths), max(lengths)), generator=generator)
        columns = torch.arange(max(lengths))[None]
        length = torch.tensor(lengths)[:, None]
        ids = ids.masked_fill(columns == length - 1, end)
        return ids.masked_fill(columns >= length, config.pad_token_id), (columns < length).long()


def cases(
    heads: bool | None = None,
    generates: bool | None = None,
    variants: bool = True,
    seq2seq: bool | None = None,
    text: bool | None = None,
) -> list:
    """All model classes in all variants, as parameters of a test.

    Args:
        heads: Only classes with a loss (True) or without (False).
        generates: Only classes with `generate()` (True) or without (False).
        variants: Whether to take every variant; else the first of each family, for what does not depend on them.
        seq2seq: Only encoder-decoders (True) or what has one stack (False).
        text: Only what reads text (True) or pictures (False).
    """
    found = []
    for family in FAMILIES:
        names = list(VARIANTS.get(family, {"default": {}}))
        for auto_name in family_module(family).AUTO_CLASSES:
            for variant in names if variants and auto_name not in CLASSIFIERS else names[:1]:
                case = Case(family, auto_name, variant)
                kinds = (
                    (heads, case.is_head), (generates, case.generates), (seq2seq, case.is_encoder_decoder),
                    (text, case.reads_text),
                )  # fmt: skip
                if all(wanted in (None, found_kind) for wanted, found_kind in kinds):
                    found.append(pytest.param(case, id=case.id))
    return found
