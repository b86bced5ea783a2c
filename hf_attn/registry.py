# Copyright 2026 The hf_attn authors. Licensed under the Apache License, Version 2.0.
"""Tell transformers' Auto classes about our families; each modeling file lists its own in AUTO_CLASSES."""

import importlib

import transformers
from transformers.models.auto.image_processing_auto import IMAGE_PROCESSOR_MAPPING
from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES

FAMILIES = ("rnn", "convs2s", "transformer", "bert", "gpt", "vit")

# what prepares pictures, by what does the work; names, since torchvision and Pillow need not be there
IMAGE_PROCESSORS = {"torchvision": "ViTImageProcessor", "pil": "ViTImageProcessorPil"}


def family_module(family: str):
    """Return the modeling module of a family.

    Args:
        family: One of FAMILIES.

    Raises:
        ValueError: If the family is unknown.
    """
    if family not in FAMILIES:
        raise ValueError(f"family={family!r} is unknown; choose one of {', '.join(FAMILIES)}")
    return importlib.import_module(f".models.modeling_attn_{family}", __package__)


def register_families() -> None:
    """Register every family, so that `AutoModel.from_pretrained` and its relatives open our folders. Harmless when
    repeated."""
    for family in FAMILIES:
        auto_classes = family_module(family).AUTO_CLASSES
        config_class = auto_classes["AutoModel"].config_class
        transformers.AutoConfig.register(config_class.model_type, config_class, exist_ok=True)
        for auto_name, model_class in auto_classes.items():
            getattr(transformers, auto_name).register(config_class, model_class, exist_ok=True)
            if auto_name == "AutoModelForCausalLM":  # by this name the Trainer knows that smoothed labels are shifted
                MODEL_FOR_CAUSAL_LM_MAPPING_NAMES[config_class.model_type] = model_class.__name__
        if "image" in auto_classes["AutoModel"].input_modalities:
            IMAGE_PROCESSOR_MAPPING.register(config_class, IMAGE_PROCESSORS, exist_ok=True)  # type: ignore[arg-type]
