# Copyright 2026 The hf_attn authors. Licensed under the Apache License, Version 2.0.
"""The encoder of pictures, described for transformers' own model tests."""

import torch
from torch import nn

from hf_attn.models.configuration_attn_vit import AttnVitConfig
from hf_attn.models.modeling_attn_vit import (
    AttnVitForImageClassification,
    AttnVitForMaskedImageModeling,
    AttnVitModel,
)

config_class = AttnVitConfig
model_classes = [AttnVitModel, AttnVitForImageClassification, AttnVitForMaskedImageModeling]
config_kwargs = dict(
    image_size=12,
    patch_size=4,
    hidden_size=32,
    num_hidden_layers=2,
    num_attention_heads=4,
    intermediate_size=64,
)
tester = {"seq_length": 10, "encoder_seq_length": 10, "key_length": 10, "mask_length": 9, "num_masks": 4}
flags = {"test_resize_embeddings": False}  # patches have no vocabulary
tasks = {
    "AttnVitForImageClassification": "IMAGE_CLASSIFICATION",
    "AttnVitForMaskedImageModeling": "MASKED_IMAGE_MODELING",
}


def embeddings_of_patches_are_a_matrix(self):
    """In place of the test of word embeddings, as in transformers' own tests of encoders of pictures."""
    config, _ = self.model_tester.prepare_config_and_inputs_for_common()
    for model_class in self.all_model_classes:
        model = model_class(config)
        assert isinstance(model.get_input_embeddings(), nn.Linear) and model.get_output_embeddings() is None
        other = nn.Linear(3 * 4 * 4, 32)
        model.set_input_embeddings(other)
        assert model.get_input_embeddings() is other is model.base_model.embeddings.patch_embeddings


overrides = {"test_model_get_set_embeddings": embeddings_of_patches_are_a_matrix}


def prepare_inputs(config):
    """Four pictures."""
    return {"pixel_values": torch.rand(4, config.num_channels, config.image_size, config.image_size)}
