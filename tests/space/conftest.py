# Copyright 2026 The hf_attn authors. Licensed under the Apache License, Version 2.0.
"""A Space with tiny models that learned a few pairs in seconds, served on this machine."""

import shutil
import sys

import pytest
import torch
from chromium import chromium
from scripting import load_script
from space.driving import Visits
from teaching import teach
from transformers import AutoConfig, AutoModel, AutoModelForCausalLM, ViTImageProcessorPil

pytest.importorskip("gradio")

from hf_attn.data import train_tokenizer
from hf_attn.data.shapes import SIDE, generate
from hf_attn.data.text import train_text_tokenizer
from hf_attn.models.captioning import AttnCaptioner
from hf_attn.models.configuration_attn_bert import AttnBertConfig
from hf_attn.models.configuration_attn_convs2s import AttnConvS2SConfig
from hf_attn.models.configuration_attn_gpt import AttnGptConfig
from hf_attn.models.configuration_attn_rnn import AttnRnnConfig
from hf_attn.models.configuration_attn_transformer import AttnTransformerConfig
from hf_attn.models.configuration_attn_vit import AttnVitConfig
from hf_attn.models.modeling_attn_bert import AttnBertForMaskedLM
from hf_attn.models.modeling_attn_convs2s import AttnConvS2SForConditionalGeneration
from hf_attn.models.modeling_attn_gpt import AttnGptForCausalLM
from hf_attn.models.modeling_attn_rnn import AttnRnnForConditionalGeneration
from hf_attn.models.modeling_attn_transformer import AttnTransformerForConditionalGeneration
from hf_attn.models.modeling_attn_vit import AttnVitForImageClassification

PAIRS = {
    "en-fr": [
        ("The old teacher reads a long letter in the garden.", "Le vieux professeur lit une longue lettre au jardin."),
        ("We did not see the three red books.", "Nous n'avons pas vu les trois livres rouges."),
        ("Where is the girl?", "Où est la fille ?"),
        ("The girl reads.", "La fille lit."),
    ],
    "en-ko": [
        ("The old teacher reads a long letter in the garden.", "늙은 선생님이 정원에서 긴 편지를 읽습니다."),
        ("We did not see the three red books.", "우리는 빨간 책 세 권을 보지 못했습니다."),
        ("Where is the girl?", "소녀는 어디에 있습니까?"),
        ("The girl reads.", "소녀가 읽습니다."),
    ],
}
SIZES = {"hidden_size": 32, "dropout": 0.0}
MODELS = {
    "en-fr-none": {"attention_type": "none"},
    "en-fr-bahdanau": {"attention_type": "bahdanau"},
    "en-fr-luong": {"attention_type": "luong"},
    "en-fr-convs2s": {},
    "en-fr-transformer": {},
    "en-ko-none": {"attention_type": "none"},
    "en-ko-bahdanau": {"attention_type": "bahdanau"},
}


def new_model(name, vocab_size):
    """A tiny model of the architecture in its name."""
    torch.manual_seed(1)
    if name.endswith("convs2s"):
        config = AttnConvS2SConfig(vocab_size=vocab_size, encoder_layers=2, decoder_layers=2, **SIZES)
        return AttnConvS2SForConditionalGeneration(config)
    if MODELS[name]:
        config = AttnRnnConfig(
            vocab_size=vocab_size, embedding_size=32, rnn_type="gru", initializer_range=0.3, **SIZES, **MODELS[name]
        )
        return AttnRnnForConditionalGeneration(config)
    config = AttnTransformerConfig(
        vocab_size=vocab_size,
        encoder_layers=1,
        decoder_layers=2,
        encoder_attention_heads=2,
        decoder_attention_heads=2,
        encoder_intermediate_size=32,
        decoder_intermediate_size=32,
        **SIZES,
    )
    return AttnTransformerForConditionalGeneration(config)


@pytest.fixture(scope="session")
def models_folder(tmp_path_factory):
    """A folder of models as they are shipped: no code beside the weights."""
    folder = tmp_path_factory.mktemp("space") / "models"
    for pair, sentences in PAIRS.items():
        tokenizer = train_tokenizer([sentence for both in sentences for sentence in both], 420)
        for name in (name for name in MODELS if name.startswith(pair)):
            model = teach(new_model(name, len(tokenizer)), tokenizer, sentences, steps=60)
            model.save_pretrained(folder / name, include_code=False)
            tokenizer.save_pretrained(folder / name)
    return folder


@pytest.fixture(scope="session")
def others_folder(tmp_path_factory):
    """A folder of models that do not translate, and have learned nothing."""
    folder = tmp_path_factory.mktemp("others") / "models"
    texts = [sentence for pair in PAIRS.values() for both in pair for sentence in both]
    sizes = {"intermediate_size": 48, "max_position_embeddings": 64, "initializer_range": 0.3, **SIZES}
    for name, masked, config, model in (
        ("tiny-bert", True, AttnBertConfig, AttnBertForMaskedLM),
        ("tiny-gpt", False, AttnGptConfig, AttnGptForCausalLM),
    ):
        torch.manual_seed(1)
        tokenizer = train_text_tokenizer(texts, 420, masked=masked)
        tokenizer.save_pretrained(folder / name)
        made = config(vocab_size=len(tokenizer), num_hidden_layers=2, num_attention_heads=2, **sizes)
        model(made).save_pretrained(folder / name, include_code=False)
    save_vit(folder / "tiny-vit")
    save_captioner(folder / "tiny-captioner")
    return folder


def save_vit(folder):
    """Save a new classifier of digits."""
    torch.manual_seed(1)
    config = AttnVitConfig(
        image_size=8, patch_size=2, num_labels=10, num_hidden_layers=2, num_attention_heads=2, initializer_range=0.3,
        intermediate_size=48, **SIZES,
    )  # fmt: skip
    AttnVitForImageClassification(config).save_pretrained(folder, include_code=False)
    image_processor(8).save_pretrained(folder)


def save_captioner(folder):
    """Save a model that describes every picture as if it were the first."""
    torch.manual_seed(1)
    (first,) = generate("compositional", 1)
    tokenizer = train_tokenizer([scene.caption for scene in generate("train", 50)], 100, kind="word")
    sizes = {"num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 48, **SIZES}
    encoder = AutoConfig.for_model("attn-vit", image_size=SIDE, patch_size=16, use_pooler=False, **sizes)
    written = {"vocab_size": len(tokenizer), "max_position_embeddings": 24, "add_cross_attention": True}
    decoder = AutoConfig.for_model("attn-gpt", **written, **sizes)
    model = AttnCaptioner(encoder=AutoModel.from_config(encoder), decoder=AutoModelForCausalLM.from_config(decoder))
    for config in (model.config, model.generation_config):
        config.decoder_start_token_id, config.pad_token_id, config.eos_token_id = 1, 0, 2
    model.generation_config.max_length = 24
    pixels = image_processor(SIDE)([first.picture], return_tensors="pt")["pixel_values"]
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for _ in range(30):
        optimizer.zero_grad()
        model(pixel_values=pixels, labels=torch.tensor([tokenizer(first.caption)["input_ids"]])).loss.backward()
        optimizer.step()
    model.save_pretrained(folder, include_code=False)
    for part in (tokenizer, image_processor(SIDE)):
        part.save_pretrained(folder)


def image_processor(side):
    """An image processor as those of the classifier and of the captioner."""
    half = [0.5, 0.5, 0.5]
    return ViTImageProcessorPil(size={"height": side, "width": side}, image_mean=half, image_std=half)


@pytest.fixture(scope="session")
def space_folder(tmp_path_factory, models_folder, others_folder):
    """A folder of all models."""
    folder = tmp_path_factory.mktemp("all") / "models"
    for part in (models_folder, others_folder):
        shutil.copytree(part, folder, dirs_exist_ok=True)
    return folder


@pytest.fixture(scope="session")
def app():
    """The module space/app.py."""
    return load_script("space/app.py")


@pytest.fixture(scope="session")
def service(app):
    """The module space/service.py."""
    return sys.modules["service"]


@pytest.fixture(scope="session")
def space(app, space_folder):
    """What the page and the endpoints compute."""
    return app.Space(app.load_models(space_folder), app.load_others(space_folder))


@pytest.fixture(scope="session")
def endpoints(app, space):
    """What programs can ask."""
    return app.Endpoints(space)


@pytest.fixture(scope="session")
def translate_tab(app, space):
    """The tab that translates."""
    return app.TranslateTab(space)


@pytest.fixture(scope="session")
def steps_tab(app, space):
    """The tab that takes one word apart."""
    return app.StepsTab(space)


@pytest.fixture(scope="session")
def server(app, space_folder):
    """The address of the running Space."""
    threads = torch.get_num_threads()
    demo = app.build(space_folder)
    _, url, _ = demo.launch(prevent_thread_lock=True, quiet=True, **app.LAUNCH)
    yield url
    demo.close()
    torch.set_num_threads(threads)


@pytest.fixture(scope="module")
def browser():
    """A headless Chromium."""
    with chromium() as browser:
        yield browser


@pytest.fixture
def visit(browser):
    """A function that opens the Space; at the end nothing may have been asked for elsewhere, and nothing broken."""
    visits = Visits(browser)
    yield visits
    assert visits.end() == []
