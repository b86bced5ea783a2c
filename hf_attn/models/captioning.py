# Copyright 2026 The hf_attn authors. Licensed under the Apache License, Version 2.0.
"""Describe pictures: attn-vit reads the patches, attn-gpt writes the words, with cross-attention to the patches.

    p(word_t | words before t, picture) = gpt(words before t, vit(picture))_t

Paper: Xu 2015 (arXiv 1502.03044), with Transformers for both parts. All of it is transformers' own
`VisionEncoderDecoderModel`, which does not know our parts where this package is not installed; the class of this file
makes them known, so that its saved folder opens there too.
Read before: modeling_attn_vit.py, modeling_attn_gpt.py.
"""

import transformers
from transformers import AutoConfig, PreTrainedConfig, PreTrainedModel, VisionEncoderDecoderConfig
from transformers.models.auto.configuration_auto import CONFIG_MAPPING
from transformers.models.vision_encoder_decoder.modeling_vision_encoder_decoder import VisionEncoderDecoderModel

from .base import AttnPreTrainedModel
from .configuration_attn_gpt import AttnGptConfig
from .configuration_attn_vit import AttnVitConfig
from .generation import GenerativeMixin
from .modeling_attn_gpt import AttnGptForCausalLM
from .modeling_attn_vit import AttnVitModel

PARTS = {"AutoModel": (AttnVitConfig, AttnVitModel), "AutoModelForCausalLM": (AttnGptConfig, AttnGptForCausalLM)}

for auto_name, (part_config, part) in PARTS.items():
    if part_config.model_type not in CONFIG_MAPPING:  # the installed package goes first
        AutoConfig.register(part_config.model_type, part_config)
        getattr(transformers, auto_name).register(part_config, part)


class AttnCaptionerConfig(VisionEncoderDecoderConfig):
    """Configuration of `AttnCaptioner`: `encoder` and `decoder`, the configurations of its parts."""


class AttnCaptioner(AttnPreTrainedModel, VisionEncoderDecoderModel):
    """transformers' `VisionEncoderDecoderModel`, saved with its code.

    Args:
        config: The configuration; made of those of the parts if they are given.
        encoder: The part that reads pictures.
        decoder: The part that writes, with cross-attention.
    """

    config: AttnCaptionerConfig
    base_model_prefix = "vision_encoder_decoder"
    create_masks_for_generate = staticmethod(GenerativeMixin.create_masks_for_generate)  # the decoder writes its own

    def __init__(
        self,
        config: PreTrainedConfig | None = None,
        encoder: PreTrainedModel | None = None,
        decoder: PreTrainedModel | None = None,
    ):
        if config is None and encoder is not None and decoder is not None:
            config = AttnCaptionerConfig.from_encoder_decoder_configs(encoder.config, decoder.config)
        super().__init__(config, encoder, decoder)


AUTO_CLASSES = {"AutoModelForImageTextToText": AttnCaptioner}
