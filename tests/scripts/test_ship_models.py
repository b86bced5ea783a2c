"""Shipped models: small float16 files without code, cards whose numbers are those of the files, limits that hold."""

import json
import re
import shutil
from pathlib import Path

import pytest
import sacrebleu
import torch
import yaml
from huggingface_hub import ModelCard
from safetensors.torch import load_file, save_file
from scripting import load_script
from transformers import AutoTokenizer, HfArgumentParser

from hf_attn.data import train_tokenizer
from hf_attn.inference import Translator
from hf_attn.training import RECIPES, build_model

SCRIPTS = Path(__file__).parents[2] / "scripts"
PLAN = yaml.safe_load((SCRIPTS.parent / "space" / "models.yaml").read_text(encoding="utf-8"))
PAIRS = [("the cat sleeps.", "le chat dort."), ("the dog eats.", "le chien mange."), ("yes.", "oui.")]
FILES = ["README.md", "config.json", "generation_config.json", "model.safetensors", "results.json", "tokenizer.json"]
FILES.append("tokenizer_config.json")


@pytest.fixture
def script(monkeypatch, tmp_path):
    """The script, which measures in this process, on a few sentences of the phrasebook."""
    module, evaluation = load_script("scripts/ship_models.py"), load_script("scripts/evaluate_translation.py")

    def evaluate(folder, **options):
        options |= {"model_name_or_path": folder, "output_dir": tmp_path / "evaluation"}
        options |= {"max_samples": 12} if "phrasebook" in options else {}
        words = [word for option, value in options.items() for word in (f"--{option}", str(value))]
        (parsed,) = HfArgumentParser(evaluation.EvaluationArguments).parse_args_into_dataclasses(words)
        return evaluation.main(parsed)

    # the alignment table's training set for IBM Model 1 would be the whole phrasebook
    draw = evaluation.phrasebook
    monkeypatch.setattr(evaluation, "phrasebook", lambda pair, split, size=None: draw(pair, split, size or 20))
    monkeypatch.setattr(module, "evaluate", evaluate)
    return module


def trained_folder(path, recipe, updates):
    """A folder as after training: two lines learned by a tiny model of the recipe, saved with its code."""
    torch.manual_seed(0)
    tokenizer = train_tokenizer([side for pair in PAIRS for side in pair], 320)
    small = {"hidden_size": 32, "encoder_layers": 1, "decoder_layers": 1}
    small |= {"encoder_intermediate_size": 32} if "transformer" in recipe else {"embedding_size": 32}
    model = build_model(recipe, tokenizer, **small)
    inputs = tokenizer([source for source, _ in PAIRS], padding=True, return_tensors="pt")
    labels = tokenizer([target for _, target in PAIRS], padding=True, return_tensors="pt").input_ids
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for _ in range(30):
        optimizer.zero_grad()
        model(**inputs, labels=labels.masked_fill(labels == 0, -100)).loss.backward()
        optimizer.step()
    model.config.use_cache = False  # as the Trainer leaves it
    model.save_pretrained(path)
    tokenizer.save_pretrained(path)
    (path / "trainer_state.json").write_text(json.dumps({"global_step": updates}))
    return tokenizer


@pytest.fixture
def arguments(script, tmp_path):
    tokenizer = trained_folder(tmp_path / "trained" / "en-fr" / "none", "none-small", 70)
    trained_folder(tmp_path / "trained" / "en-it" / "transformer", "transformer-tiny", 90)
    rows = [*PAIRS, ("yes.", "ouais.")]
    text = "".join(f"{source}\t{target}\n" for source, target in rows)
    (tmp_path / "tatoeba.en-fr.test.tsv").write_text(text, encoding="utf-8")
    names = ["en-fr-none", "en-it-transformer"]
    folders = {"trained_dir": str(tmp_path / "trained"), "output_dir": str(tmp_path / "shipped")}
    return tokenizer, script.ShipArguments(**folders, data_dir=str(tmp_path), models=names)


def test_shipped_files_cards_and_check(script, arguments, tmp_path, capsys):
    tokenizer, args = arguments
    script.main(args)
    folder = tmp_path / "shipped" / "en-fr-none"
    for name in args.models:
        assert sorted(file.name for file in (tmp_path / "shipped" / name).iterdir()) == FILES
        assert {tensor.dtype for tensor in load_file(tmp_path / "shipped" / name / "model.safetensors").values()} == {
            torch.float16
        }
        config = json.loads((tmp_path / "shipped" / name / "config.json").read_text())
        assert "auto_map" not in config and config["use_cache"] is True and config["dtype"] == "float16"
    assert AutoTokenizer.from_pretrained(folder).get_vocab() == tokenizer.get_vocab()
    assert "local_files_only" not in (folder / "tokenizer_config.json").read_text()

    # the numbers are sacrebleu's, of what the shipped files translate; the two references of "yes." both count
    lines = [result.text for result in Translator(folder)([source for source, _ in PAIRS], num_beams=5)]
    streams = [[target for _, target in PAIRS], [None, None, "ouais."]]
    results = json.loads((folder / "results.json").read_text())
    measured = results["measured"]
    assert measured["bleu"] == pytest.approx(sacrebleu.corpus_bleu(lines, streams).score)
    assert measured["chrf"] == pytest.approx(sacrebleu.corpus_chrf(lines, streams).score)
    assert (measured["sentences"], measured["num_beams"], results["updates"]) == (3, 5, 70)

    # a card that the Hub can read, with the same numbers
    loaded = ModelCard.load(folder / "README.md")
    metadata = loaded.data.to_dict()
    assert metadata["language"] == ["en", "fr"] and metadata["license"] == "cc-by-2.0"
    assert metadata["pipeline_tag"] == "translation"
    (entry,) = metadata["model-index"]
    shown = {metric["type"]: metric["value"] for part in entry["results"] for metric in part["metrics"]}
    assert shown == {name: measured[name] for name in shown}
    assert set(shown) == {"bleu", "chrf", "perplexity"} and entry["name"] == "en-fr-none"
    card = str(loaded)
    assert f"| BLEU | {measured['bleu']:.1f} |" in card and measured["bleu_signature"] in card
    assert "tatoeba.org" in card and "CC-BY 2.0 FR" in card and "70 updates" in card and "none-small" in card

    # the Transformer's recommended layer and head are those that the phrasebook's validation split chose
    other = json.loads((tmp_path / "shipped" / "en-it-transformer" / "results.json").read_text())["measured"]
    config = json.loads((tmp_path / "shipped" / "en-it-transformer" / "config.json").read_text())
    chosen = json.loads((tmp_path / "evaluation" / "evaluation.json").read_text())["alignment"]
    rate = chosen["by_layer_and_head"][config["alignment_method"]]
    place = f"layer {config['alignment_layer'] + 1}, "
    place += "mean of heads" if config["alignment_heads"] is None else f"head {config['alignment_heads'][0] + 1}"
    assert other["alignment_error_rate"] == rate[place]
    assert other["sentences"] == 12 and "alignment_error_rate" not in measured

    args.check = True
    capsys.readouterr()
    script.main(args)
    assert "en-fr-none: as its card says\n" in capsys.readouterr().out

    # other weights, other numbers
    weights = load_file(folder / "model.safetensors")
    mixed = {name: tensor.roll(1, 0) if "embed" in name else tensor for name, tensor in weights.items()}
    save_file(mixed, folder / "model.safetensors", {"format": "pt"})
    with pytest.raises(ValueError, match="numbers are not those of the cards"):
        script.main(args)
    assert re.search(r"en-fr-none: perplexity is \d", capsys.readouterr().out)
    # another card
    path = tmp_path / "shipped" / "en-it-transformer" / "README.md"
    path.write_text(path.read_text(encoding="utf-8").replace("| BLEU | ", "| BLEU | 9"), encoding="utf-8")
    plan = script.find_differences("en-it-transformer", args, PLAN)
    assert plan == ["en-it-transformer: README.md is not the card of results.json"]


def test_sizes_are_limited(script, arguments, tmp_path, monkeypatch):
    _, args = arguments
    args.models = ["en-fr-none"]
    monkeypatch.setattr(script, "measure", lambda *_: {name: 1 for name in script.MEASURED})
    monkeypatch.setattr(script, "MEGABYTES_EACH", 0.01)
    with pytest.raises(ValueError, match=r"en-fr-none has 0.\d MB and the other models 0.0 MB; allowed are 0.01 MB"):
        script.main(args)
    assert not (tmp_path / "shipped" / "en-fr-none").exists()
    monkeypatch.setattr(script, "MEGABYTES_EACH", 16)
    script.main(args)
    script.main(args)  # again: the old copy of the same model does not count
    shutil.copytree(tmp_path / "shipped" / "en-fr-none", tmp_path / "shipped" / "other")
    together = sum(file.stat().st_size for file in (tmp_path / "shipped").rglob("*") if file.is_file()) / 1e6
    monkeypatch.setattr(script, "MEGABYTES_TOGETHER", together - 0.001)
    with pytest.raises(ValueError, match="MB together"):
        script.main(args)


OTHERS = {name: model for name, model in PLAN["models"].items() if "evaluate" in model}


@pytest.mark.parametrize("name", OTHERS)
def test_what_does_not_translate_has_a_card_that_says_what_was_measured(script, tmp_path, name):
    model = OTHERS[name]
    measured = {score: 0.12345678 for score in model["scores"]}
    results = {"updates": 6000, "parameters": 1234, "measured": measured}
    (tmp_path / "results.json").write_text(json.dumps(results), encoding="utf-8")
    card = script.card(name, tmp_path, PLAN)
    metadata = ModelCard(card).data.to_dict()
    assert metadata["license"] in ("apache-2.0", "cc0-1.0") and metadata["pipeline_tag"] in model["metadata"].values()
    for title in model["scores"].values():
        assert f"| {title} | 0.1235 |" in card
    assert f'"{name}"' in card and "1,234 parameters, stored in float16" in card and "6,000 updates on " in card
    assert not re.search(r"[{}]|None", card)
    assert (SCRIPTS / model["evaluate"].split()[0]).is_file() and "{folder}" in model["evaluate"]


def test_a_language_model_is_stored_measured_and_checked(monkeypatch, tmp_path, capsys):
    script, trainer = load_script("scripts/ship_models.py"), load_script("scripts/train_language_model.py")
    monkeypatch.setattr(script, "run_script", lambda words: trainer.main(words[1:]))
    few = "--phrasebook en --max_train_samples 60 --max_eval_samples 20 --disable_tqdm true"
    small = "--recipe tiny --max_steps 2 --vocab_size 300 --config_overrides hidden_size=16,num_attention_heads=2"
    trainer.main(f"--objective clm {few} {small} --output_dir {tmp_path / 'trained' / 'bible' / 'gpt'}".split())
    plan = {"data": PLAN["data"], "models": {"bible-gpt": dict(OTHERS["bible-gpt"])}}
    command = "train_language_model.py --objective clm --do_train false --model_name_or_path {folder} --output_dir "
    plan["models"]["bible-gpt"]["evaluate"] = f"{command}{{output}} {few}"
    (tmp_path / "plan.yaml").write_text(yaml.safe_dump(plan), encoding="utf-8")
    folders = {"trained_dir": str(tmp_path / "trained"), "output_dir": str(tmp_path / "shipped")}
    args = script.ShipArguments(**folders, config=str(tmp_path / "plan.yaml"))
    script.main(args)
    folder = tmp_path / "shipped" / "bible-gpt"
    assert sorted(file.name for file in folder.iterdir()) == FILES
    assert {tensor.dtype for tensor in load_file(folder / "model.safetensors").values()} == {torch.float16}
    measured = json.loads((folder / "results.json").read_text())["measured"]
    assert measured["eval_perplexity"] > 1 and set(measured) == set(OTHERS["bible-gpt"]["scores"])
    args.check = True
    script.main(args)
    assert "bible-gpt: as its card says\n" in capsys.readouterr().out
    weights = load_file(folder / "model.safetensors")
    save_file({name: tensor * 2 for name, tensor in weights.items()}, folder / "model.safetensors", {"format": "pt"})
    with pytest.raises(ValueError, match="numbers are not those of the cards"):
        script.main(args)


def test_mistakes(script, tmp_path):
    with pytest.raises(ValueError, match="models has en-de-gpt; .* lists en-fr-none, "):
        script.main(script.ShipArguments(models=["en-de-gpt"]))
    with pytest.raises(FileNotFoundError, match="en-fr/none"):
        script.main(script.ShipArguments(models=["en-fr-none"], trained_dir=str(tmp_path)))
    with pytest.raises(ValueError, match="1 numbers are not those of the cards"):
        script.main(script.ShipArguments(models=["en-fr-none"], output_dir=str(tmp_path), check=True))


def test_the_planned_models_fit_and_have_cards(script, tmp_path):
    assert list(PLAN["models"]) == [
        *("en-fr-none", "en-fr-bahdanau", "en-fr-luong", "en-fr-convs2s", "en-fr-transformer"),
        *("en-ko-bahdanau", "en-ko-transformer", "en-it-bahdanau", "en-it-transformer"),
        *("bible-gpt", "bible-bert", "digits-vit", "shapes-captioner"),
    ]
    tokenizer = train_tokenizer(["a b"], 300)
    sizes = []
    for name, model in PLAN["models"].items():
        if "recipe" not in model:
            continue
        recipe, data = RECIPES[model["recipe"]], PLAN["data"][model["data"]]
        network = build_model(model["recipe"], tokenizer, vocab_size=recipe.arguments["vocab_size"])
        sizes.append(network.num_parameters() * 2 / 1e6 + 0.5)  # and the tokenizer
        measured = {"bleu": 12.34, "chrf": 56.78, "perplexity": 9.876, "sentences": 874, "num_beams": 5}
        measured |= {"bleu_signature": "s", "chrf_signature": "t", "alignment_error_rate": 0.1234}
        results = {"recipe": model["recipe"], "updates": 6000, "parameters": 7, "measured": measured}
        results |= {"dtype": "float16"}
        description = PLAN["recipes"][model["recipe"]]
        source, target, _ = name.split("-")
        card = script.model_card(
            name,
            languages=(source, target),
            description=description,
            data=data,
            results=results,
            has_attention=True,
        )
        metadata = ModelCard(card).data.to_dict()
        assert metadata["language"] == name.split("-")[:2] and metadata["license"] in ("cc-by-2.0", "apache-2.0")
        assert "| alignment error rate on the phrasebook | 0.123 |" in card and description in card
        assert not re.search(r"[{}]|None", card)
    assert max(sizes) < script.MEGABYTES_EACH and sum(sizes) < script.MEGABYTES_TOGETHER
