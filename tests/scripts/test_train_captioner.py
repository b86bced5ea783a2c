"""The script that trains a captioner, end to end: a folder that opens anywhere, and the numbers of its files."""

import json
import subprocess
import sys

import numpy as np
import pytest
import torch
from scripting import load_script
from transformers import EvalPrediction

from hf_attn.data import shapes
from hf_attn.inference import Captioner

SIZES = "--hidden_size 16 --encoder_layers 1 --decoder_layers 1 --attention_heads 2 --patch_size 16"
DATA = "--train_samples 80 --validation_samples 6 --test_samples 7 --per_device_train_batch_size 20"
RUN = "--eval_steps 2 --save_steps 2 --logging_steps 1 --use_cpu --disable_tqdm true --learning_rate 0.01"

# In a process that cannot import the package: describes a picture with the folder alone.
DESCRIBE_ELSEWHERE = """
import sys
sys.modules["hf_attn"] = None
from PIL import Image
from transformers import AutoImageProcessor, AutoModelForImageTextToText, AutoTokenizer
folder = sys.argv[1]
model = AutoModelForImageTextToText.from_pretrained(folder, trust_remote_code=True)
pixels = AutoImageProcessor.from_pretrained(folder)(Image.open(sys.argv[2]), return_tensors="pt")["pixel_values"]
ids = model.generate(pixel_values=pixels)[0]
print(AutoTokenizer.from_pretrained(folder).decode(ids, skip_special_tokens=True))
"""


@pytest.fixture(scope="module")
def script():
    return load_script("scripts/train_captioner.py")


@pytest.fixture(scope="module")
def trained(script, tmp_path_factory):
    folder = tmp_path_factory.mktemp("captioner")
    results = script.main(f"{SIZES} {DATA} {RUN} --max_steps 4 --output_dir {folder}".split())
    return folder, results


def test_the_numbers_are_those_of_the_captions_in_the_files(trained):
    folder, results = trained
    assert results == json.loads((folder / "all_results.json").read_text())
    captioner = Captioner(folder)
    recommended = captioner(shapes("test", 1)[0]["image"])
    assert recommended.alignment_layer == results["attention_layer"]
    assert recommended.alignment_heads == [results["attention_head"]]
    for split in ("test", "compositional"):
        lines = (folder / f"{split}_predictions.tsv").read_text(encoding="utf-8").splitlines()
        pairs = [line.split("\t") for line in lines]
        pictures = shapes(split, 7)
        assert [right for _, right in pairs] == list(pictures["caption"])
        assert [text for text, _ in pairs] == [caption.text for caption in captioner(list(pictures["image"]))]
        assert results[f"{split}_exact_match"] == sum(text == right for text, right in pairs) / 7
        assert results[f"{split}_samples"] == 7 and 0 < results[f"{split}_attention_inside"] < 1
        assert 0 < results[f"{split}_attention_chance"] < 1
    settings = json.loads((folder / "run.json").read_text())["settings"]
    assert (settings["hidden_size"], settings["learning_rate"], settings["train_samples"]) == (16, 0.01, 80)
    assert str(folder) not in (folder / "run.json").read_text()


def test_a_trained_model_is_measured_where_it_lies(script, trained, tmp_path):
    folder, results = trained
    measured = f"{DATA} --use_cpu --disable_tqdm true --do_train false --model_name_or_path {folder}".split()
    assert script.main([*measured, "--output_dir", str(tmp_path / "measured")]) == results
    assert sorted(path.name for path in (tmp_path / "measured").iterdir()) == [
        *("all_results.json", "compositional_predictions.tsv", "test_predictions.tsv"),
    ]
    with pytest.raises(ValueError, match="model_name_or_path='x' goes with --do_train false"):
        script.main(f"{DATA} --model_name_or_path x --output_dir {tmp_path}".split())


@pytest.mark.slow
def test_the_folder_describes_pictures_where_the_package_is_not_installed(trained, tmp_path):
    folder, _ = trained
    picture = shapes("test", 1)[0]["image"]
    picture.save(tmp_path / "picture.png")
    environment = {"PATH": "/usr/bin:/bin", "HF_HOME": str(tmp_path), "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-c", DESCRIBE_ELSEWHERE, str(folder), str(tmp_path / "picture.png")]
    run = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=tmp_path)
    assert run.returncode == 0, run.stderr[-3000:]
    assert run.stdout.strip() == Captioner(folder)(picture).text


def test_a_run_goes_on_where_it_stopped(script, trained, tmp_path):
    whole, _ = trained
    words = f"{SIZES} {DATA} {RUN} --output_dir {tmp_path}".split()
    script.main([*words, "--max_steps", "4", "--do_predict", "false"])
    for name in ("config.json", "model.safetensors"):
        (tmp_path / name).unlink()
    (tmp_path / "checkpoint-4" / "optimizer.pt").unlink()  # as if it had been killed while it wrote this
    with pytest.warns(UserWarning, match="not a complete checkpoint"):
        script.main([*words, "--max_steps", "4", "--do_predict", "false"])
    once, twice = Captioner(whole).model.state_dict(), Captioner(tmp_path).model.state_dict()
    for name, value in once.items():
        torch.testing.assert_close(value, twice[name], msg=name)


def test_a_trained_folder_is_measured_again(script, trained):
    folder, results = trained
    words = f"--validation_samples 6 --test_samples 7 --train_samples 80 --do_train false --output_dir {folder}"
    again = script.main([*words.split(), "--use_cpu", "--num_beams", "1"])
    assert again == pytest.approx(results)


def test_exact_match_counts_rows_without_an_error(script):
    chosen = np.array([[5, 6, 2, 9], [5, 7, 2, 9], [4, 2, 2, 2], [2, 2, 2, 2]])
    labels = np.array([[5, 6, 2, -100], [5, 6, 2, -100], [4, 2, -100, -100], [2, 2, 2, 3]])
    assert script.exact_match(EvalPrediction(chosen, labels)) == {"exact_match": 0.5}


def test_attention_is_measured_on_the_right_pictures(script, trained):
    """A model that always looked at the object would score 1: here the weights are put there."""
    captioner, pictures = Captioner(trained[0]), shapes("validation", 4)
    read = captioner.score

    def look_at_objects(images, captions):
        scored = read(images, captions)
        for caption, links, things in zip(scored, pictures["links"], pictures["objects"], strict=True):
            weights = torch.zeros_like(caption.cross_attentions)
            for word, link in enumerate(links):
                if link >= 0:
                    left, top, right, bottom = things[link]["box"]
                    patch = (top + bottom) // 2 // 16 * 4 + (left + right) // 2 // 16
                    weights[:, 1, word, 1 + patch] = 1.0
            caption.cross_attentions = weights
        return scored

    captioner.score = look_at_objects
    assert script.look(captioner, pictures)["inside"].tolist() == [[0.0, 1.0]]
