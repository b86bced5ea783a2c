"""A model of a picture's encoder and a text's decoder opens where the package is not installed."""

import json
import subprocess
import sys

import pytest
import torch
from transformers import AutoModelForImageTextToText, VisionEncoderDecoderModel

from hf_attn.models.captioning import AttnCaptioner
from hf_attn.models.configuration_attn_gpt import AttnGptConfig
from hf_attn.models.configuration_attn_vit import AttnVitConfig
from hf_attn.models.modeling_attn_gpt import AttnGptForCausalLM
from hf_attn.models.modeling_attn_vit import AttnVitModel

SIZES = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
IDS = [[1, 5, 6, 7]]

# In a process that cannot import the package: opens the folder, runs it, and saves it again.
OPEN_ELSEWHERE = """
import json, sys
sys.modules["hf_attn"] = None
import torch
from transformers import AutoModelForImageTextToText, VisionEncoderDecoderModel

def refused(open_folder):
    try:
        open_folder("saved")
    except ValueError as error:
        return str(error)

def run(folder):
    model, info = AutoModelForImageTextToText.from_pretrained(folder, trust_remote_code=True, output_loading_info=True)
    for part in (model, model.encoder, model.decoder):
        assert type(part).__module__.startswith("transformers_modules."), type(part)
    pixels = torch.load("pixels.pt")
    with torch.no_grad():
        outputs = model(pixel_values=pixels, decoder_input_ids=torch.tensor(IDS), output_attentions=True)
    return model, {
        "logits": outputs.logits.tolist(),
        "weights": outputs.cross_attentions[0].tolist(),
        "generated": model.generate(pixel_values=pixels, num_beams=2, max_length=6).tolist(),
        "missing": sorted(info["missing_keys"] | info["unexpected_keys"]),
    }

plain = [refused(VisionEncoderDecoderModel.from_pretrained), refused(AutoModelForImageTextToText.from_pretrained)]
model, first = run("saved")
model.save_pretrained("again")
json.dump({"plain": plain, "first": first, "second": run("again")[1]}, open("answer.json", "w"))
"""


@pytest.fixture(scope="module")
def model():
    torch.manual_seed(0)
    encoder = AttnVitModel(AttnVitConfig(image_size=16, patch_size=8, use_pooler=False, **SIZES))
    decoder = AttnGptForCausalLM(
        AttnGptConfig(vocab_size=12, max_position_embeddings=8, add_cross_attention=True, **SIZES)
    )
    model = AttnCaptioner(encoder=encoder, decoder=decoder).eval()
    for config in (model.config, model.generation_config):
        config.decoder_start_token_id, config.pad_token_id, config.eos_token_id = 1, 0, 2
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() > 1:
                parameter.mul_(6)
    return model


@pytest.fixture(scope="module")
def pixels():
    return torch.randn(2, 3, 16, 16, generator=torch.Generator().manual_seed(1))


def run(model, pixels):
    ids = torch.tensor(IDS).expand(2, -1)
    with torch.no_grad():
        return model(pixel_values=pixels, decoder_input_ids=ids, output_attentions=True)


def test_it_is_transformers_own_model(model, pixels, tmp_path):
    assert isinstance(model, VisionEncoderDecoderModel)
    plain = VisionEncoderDecoderModel(encoder=model.encoder, decoder=model.decoder).eval()
    assert torch.equal(run(model, pixels).logits, run(plain, pixels).logits)
    model.save_pretrained(tmp_path)
    for auto_class in (VisionEncoderDecoderModel, AutoModelForImageTextToText, AttnCaptioner):
        opened = auto_class.from_pretrained(tmp_path)
        assert torch.equal(run(opened, pixels).logits, run(model, pixels).logits)
    trusted = AutoModelForImageTextToText.from_pretrained(tmp_path, trust_remote_code=True)
    assert type(trusted.encoder) is AttnVitModel  # the installed package goes first


@pytest.mark.parametrize("beams", [1, 2])
def test_every_kind_of_cache_gives_the_same_captions(model, pixels, beams):
    options = {"pixel_values": pixels, "num_beams": beams, "max_length": 6, "disable_compile": True}
    without = model.generate(**options, use_cache=False).tolist()
    for kind in ("dynamic", "static"):
        assert model.generate(**options, cache_implementation=kind).tolist() == without


@pytest.mark.slow
def test_a_saved_folder_opens_where_the_package_is_not_installed(model, pixels, tmp_path):
    model.save_pretrained(tmp_path / "saved")
    torch.save(pixels, tmp_path / "pixels.pt")
    environment = {"PATH": "/usr/bin:/bin", "HF_HOME": str(tmp_path), "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"}
    code = OPEN_ELSEWHERE.replace("IDS", str(IDS * 2))
    process = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=environment, cwd=tmp_path
    )
    assert process.returncode == 0, process.stderr[-3000:]
    answer = json.loads((tmp_path / "answer.json").read_text())
    # transformers alone knows neither part; what makes them known is the code in the folder
    assert all("Unrecognized model type" in message for message in answer["plain"])
    expected, generated = run(model, pixels), model.generate(pixel_values=pixels, num_beams=2, max_length=6)
    for stage in ("first", "second"):
        assert answer[stage]["missing"] == []
        assert answer[stage]["generated"] == generated.tolist()
        torch.testing.assert_close(torch.tensor(answer[stage]["logits"]), expected.logits)
        torch.testing.assert_close(torch.tensor(answer[stage]["weights"]), expected.cross_attentions[0])
