"""The training script's arguments: where they come from, and what is refused before anything is trained."""

import json

import pytest
import torch
from safetensors.torch import save_file
from transformers import GenerationConfig, MarianConfig

from hf_attn.training import check_generation, check_lengths, find_checkpoint, parse_arguments
from hf_attn.training.arguments import parse_overrides
from hf_attn.training.recipes import RECIPES


@pytest.fixture
def files(tmp_path):
    for name in ("train", "dev", "test"):
        (tmp_path / f"{name}.tsv").write_text("a\tb\n", encoding="utf-8")
    return tmp_path


def command(folder, *words, validation=True, output=True):
    return [
        *("--source_lang", "en", "--target_lang", "fr", "--train_file", str(folder / "train.tsv")),
        *(("--validation_file", str(folder / "dev.tsv")) if validation else ()),
        *(("--output_dir", str(folder / "out")) if output else ()),
        *words,
    ]


def test_defaults_follow_the_recipe_and_the_data(files):
    model, data, training = parse_arguments(command(files, "--recipe", "bahdanau-small"))
    assert (model.recipe, training.learning_rate, training.label_smoothing_factor) == ("bahdanau-small", 1e-3, 0.1)
    assert training.lr_scheduler_type.value == "inverse_sqrt"
    assert (training.do_train, training.do_eval, training.do_predict) == (True, True, False)
    assert training.eval_strategy.value == "steps"
    assert training.generation_max_length == data.max_target_length + 1
    assert training.num_train_epochs == 3
    _, _, training = parse_arguments(command(files, validation=False))
    assert (training.do_eval, training.eval_strategy.value) == (False, "no")
    _, _, training = parse_arguments(command(files, "--test_file", str(files / "test.tsv"), "--max_minutes", "1"))
    assert training.do_predict
    assert training.num_train_epochs == 1000
    _, _, training = parse_arguments(command(files, "--early_stopping_patience", "2"))
    assert (training.load_best_model_at_end, training.metric_for_best_model, training.greater_is_better) == (
        True, "bleu", True,
    )  # fmt: skip
    _, _, training = parse_arguments(command(files, "--load_best_model_at_end", "--predict_with_generate", "false"))
    assert (training.metric_for_best_model, training.greater_is_better) == ("loss", False)
    assert training.prediction_loss_only


@pytest.mark.parametrize("suffix", ["yaml", "json"])
def test_command_line_over_file_over_recipe_over_default(files, suffix):
    path = files / f"run.{suffix}"
    if suffix == "yaml":
        path.write_text("recipe: luong-small\nlearning_rate: 2e-3\ntokens_per_batch: 99\nbf16: false\n")
    else:
        values = {"recipe": "luong-small", "learning_rate": 2e-3, "tokens_per_batch": 99, "bf16": False}
        path.write_text(json.dumps(values))
    model, data, training = parse_arguments([str(path), *command(files, "--tokens_per_batch", "50")])
    assert model.recipe == "luong-small"  # the file's
    assert data.tokens_per_batch == 50  # the command line's
    assert training.learning_rate == 2e-3  # the file's, not the recipe's
    assert training.adam_beta2 == 0.98  # the recipe's, not the default
    assert training.bf16 is False
    assert parse_arguments([str(path), *command(files, "--recipe", "cho")])[0].recipe == "cho"


def test_phrasebook_brings_languages_and_splits(tmp_path):
    words = ["--phrasebook", "en-ko", "--output_dir", str(tmp_path)]
    _, data, training = parse_arguments(words)
    assert (data.source_lang, data.target_lang) == ("en", "ko")
    assert training.do_train and training.do_eval and training.do_predict
    _, data, _ = parse_arguments([*words, "--source_lang", "ko", "--target_lang", "en"])
    assert (data.source_lang, data.target_lang) == ("ko", "en")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--tokens_per_batch", "0"], "tokens_per_batch must be 1 or more, got 0"),
        (["--num_beams", "0"], "num_beams must be 1 or more, got 0"),
        (["--generation_num_beams", "-2"], "generation_num_beams must be 1 or more, got -2"),
        (["--max_source_length", "1"], r"max_source_length must be 2 \(a token and </s>\) or more, got 1"),
        (["--max_minutes", "0"], "max_minutes must be more than 0, got 0.0"),
        (["--alignment_weight", "0"], "alignment_weight must be more than 0, got 0.0"),
        (["--alignment_supervision", "links"], "alignment_supervision='links' needs gold links"),
        (["--max_eval_samples", "-1"], r"max_eval_samples must be 0 \(all\) or more, got -1"),
        (["--average_checkpoints", "0"], "average_checkpoints must be 1 or more, got 0"),
        (["--average_checkpoints", "9"], "average_checkpoints=9 needs as many checkpoints, .* keep 5"),
        (["--average_checkpoints", "2", "--save_strategy", "no"], "average_checkpoints=2 needs .* keep 0"),
        (["--average_checkpoints", "2", "--load_best_model_at_end"], "=2 and load_best_model_at_end both choose"),
        (["--recipe", "gpt-9"], "recipe must be one of .*'gpt-9'"),
        (["--config_overrides", "hidden_size"], "config_overrides must be name=value.*'hidden_size'"),
        (["--train_file", "nowhere.tsv"], "train_file: there is no file nowhere.tsv"),
        (["--validation_file", "nowhere.tsv"], "validation_file: there is no file nowhere.tsv"),
        (["--target_lang", "en"], "must be two language codes, got 'en' and 'en'"),
        (["--phrasebook", "en-ko"], "exclude each other"),
        (["--do_predict"], "test_file is missing"),
        (["--model_name_or_path", "x", "--config_name", "y"], "model_name_or_path='x' brings its own config"),
        (["--config_name", "x", "--config_overrides", "dropout=0"], "config_overrides='dropout=0' changes a recipe"),
        (["--separate_vocabularies", "--tokenizer_name", "x"], "separate_vocabularies learns two tokenizers"),
        (["--early_stopping_patience", "0"], "early_stopping_patience must be 1 or more, got 0"),
        (
            ["--predict_with_generate", "false", "--metric_for_best_model", "bleu"],
            "metric_for_best_model='bleu' needs predict_with_generate",
        ),
        (["--do_train", "false", "--do_eval", "false"], "nothing to do"),
        (["--do_train", "false"], "do_train=False needs model_name_or_path"),
        (["--reinforcement", "gleu"], "reinforcement='gleu' needs model_name_or_path"),
        (["--reinforcement_samples", "1"], "reinforcement_samples must be 2 or more, got 1"),
        (["--reinforcement_temperature", "0"], "reinforcement_temperature must be more than 0 and finite, got 0"),
        (["--likelihood_weight", "-0.1"], "likelihood_weight must be 0 or more, got -0.1"),
        (
            ["--reinforcement", "gleu", "--model_name_or_path", "x", "--alignment_supervision", "ibm1"],
            "alignment_supervision='ibm1' and reinforcement='gleu' exclude each other",
        ),
    ],
)
def test_what_cannot_work_is_refused(files, words, message):
    with pytest.raises(ValueError, match=message):
        parse_arguments(command(files, *words))


@pytest.mark.parametrize("recipe", RECIPES)
def test_every_recipe_is_accepted_as_it_is(recipe, tmp_path):
    _, data, training = parse_arguments(["--recipe", recipe, "--phrasebook", "en-it", "--output_dir", str(tmp_path)])
    assert training.save_total_limit >= data.average_checkpoints


def test_missing_arguments_are_named(files, tmp_path):
    with pytest.raises(ValueError, match="output_dir is missing"):
        parse_arguments(command(files, output=False))
    with pytest.raises(ValueError, match="no data: give train_file"):
        parse_arguments(["--output_dir", str(tmp_path)])
    with pytest.raises(ValueError, match="phrasebook='en-de' must be one of en-it, en-fr, en-ko"):
        parse_arguments(["--output_dir", str(tmp_path), "--phrasebook", "en-de"])
    with pytest.raises(ValueError, match="early_stopping_patience=2 needs evaluation"):
        parse_arguments(command(files, "--early_stopping_patience", "2", "--load_best_model_at_end", "false",
                                validation=False))  # fmt: skip
    with pytest.raises(ValueError, match="validation_file is missing"):
        parse_arguments(command(files, "--eval_strategy", "steps", validation=False))
    with pytest.raises(ValueError, match="there is no argument file missing.yaml"):
        parse_arguments(["missing.yaml"])
    (files / "bad.yaml").write_text("learning_rat: 1\n", encoding="utf-8")
    with pytest.raises(ValueError, match="unknown names: learning_rat"):
        parse_arguments([str(files / "bad.yaml")])
    (files / "list.json").write_text("[1]", encoding="utf-8")
    with pytest.raises(ValueError, match="must hold argument names with values, got list"):
        parse_arguments([str(files / "list.json")])


@pytest.mark.parametrize("words", [["--learning_rate", "fast"], ["--recip", "cho"], ["--no_such_argument", "1"]])
def test_the_command_line_parser_refuses_the_rest(files, words, capsys):
    with pytest.raises((SystemExit, ValueError)):
        parse_arguments(command(files, *words))


def test_overrides():
    assert parse_overrides("hidden_size=128, rnn_type=gru,norm_first=true,dropout=0.25,score_function=null") == {
        "hidden_size": 128, "rnn_type": "gru", "norm_first": True, "dropout": 0.25, "score_function": None,
    }  # fmt: skip
    assert parse_overrides(None) == parse_overrides("") == {}
    for text in ("a", "=3", "a=", "a b=1"):
        with pytest.raises(ValueError, match="config_overrides must be name=value"):
            parse_overrides(text)


def test_lengths_against_the_table_of_positions(files):
    _, data, _ = parse_arguments(command(files, "--max_target_length", "100"))
    check_lengths(MarianConfig(max_position_embeddings=128), data)
    with pytest.raises(ValueError, match="max_source_length=128 is more than the model's max_position_embeddings=100"):
        check_lengths(MarianConfig(max_position_embeddings=100), data)


def write_checkpoint(folder):
    """Write the files without which training cannot go on."""
    folder.mkdir(parents=True)
    (folder / "trainer_state.json").write_text("{}")
    save_file({"weight": torch.ones(2)}, folder / "model.safetensors")
    for name in ("optimizer.pt", "scheduler.pt"):
        torch.save({}, folder / name)


def test_checkpoint_to_resume_from(files):
    def find(*words):
        return find_checkpoint(parse_arguments(command(files, *words))[2])

    resume = "--resume_from_checkpoint"
    assert find() is None
    assert find(resume, "false") is None
    with pytest.raises(ValueError, match="resume_from_checkpoint=true, but output_dir=.* holds no complete checkpoint"):
        find(resume, "true")
    for step in (5, 20, 100):
        write_checkpoint(files / "out" / f"checkpoint-{step}")
    assert find() == find(resume, "true") == str(files / "out" / "checkpoint-100")
    chosen = str(files / "out" / "checkpoint-5")
    assert find(resume, chosen) == chosen
    with pytest.raises(ValueError, match="resume_from_checkpoint=false, but output_dir=.* holds checkpoints"):
        find(resume, "false")
    with pytest.raises(ValueError, match="there is no folder nowhere"):
        find(resume, "nowhere")


def test_what_a_killed_run_left_is_not_resumed_from(files):
    def find(*words):
        return find_checkpoint(parse_arguments(command(files, *words))[2])

    half = files / "out" / "checkpoint-7"
    write_checkpoint(half)
    (half / "trainer_state.json").unlink()
    with pytest.warns(UserWarning, match="checkpoint-7 is not a complete checkpoint and is passed over: trainer_state"):
        assert find() is None
    with pytest.warns(UserWarning), pytest.raises(ValueError, match="resume_from_checkpoint=true.*no complete"):
        find("--resume_from_checkpoint", "true")
    with pytest.warns(UserWarning):
        assert find("--resume_from_checkpoint", "false") is None
    with pytest.raises(ValueError, match="checkpoint-7 is not a complete checkpoint: trainer_state.json is missing"):
        find("--resume_from_checkpoint", str(half))
    with pytest.warns(UserWarning), pytest.raises(ValueError, match="save_only_model leaves nothing to resume from"):
        find("--save_only_model")
    write_checkpoint(files / "out" / "checkpoint-3")
    with pytest.warns(UserWarning, match="checkpoint-7"):
        assert find() == str(files / "out" / "checkpoint-3")


@pytest.mark.parametrize(
    ("settings", "asked", "message"),
    [
        ({}, {"num_beams": 2}, None),
        ({"num_beams": 4, "length_penalty": 0.6}, {"num_beams": 1}, None),  # generate() ignores the penalty then
        ({"length_penalty": 0.6}, {}, "(?s)cannot be used.*length_penalty"),  # could not be saved after training
        ({"min_length": 50}, {"generation_max_length": 20}, "asks for 50 tokens or more, but at most 20 are allowed"),
        ({"min_new_tokens": 20}, {"generation_max_length": 20}, "asks for 21 tokens or more, but at most 20"),
        ({"min_new_tokens": 19}, {"generation_max_length": 20}, None),
        ({"min_length": 50, "max_new_tokens": 49}, {"generation_max_length": 20}, None),
        ({"num_beams": 4, "num_return_sequences": 4}, {"num_beams": 1}, "(?s)cannot be used.*num_return_sequences"),
        ({"num_beams": 4, "num_return_sequences": 2}, {"num_beams": 4}, "one translation a sentence"),
        ({"return_dict_in_generate": True}, {}, "one translation a sentence"),
    ],
)
def test_generation_that_would_fail_later_is_refused_before_training(files, settings, asked, message):
    words = [word for name, value in asked.items() for word in (f"--{name}", str(value))]
    _, data, training = parse_arguments(command(files, *words))
    config = GenerationConfig(**settings)
    if message is None:
        check_generation(config, data, training)
    else:
        with pytest.raises(ValueError, match=message):
            check_generation(config, data, training)
