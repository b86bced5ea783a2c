# Copyright 2026 The hf_attn authors. Licensed under the Apache License, Version 2.0.
"""Other checkpoints in the Space: off unless the operator says so, then opened by folder or Hub id, for one visitor."""

import hashlib
import html
import json
import os
import shutil
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import gradio as gr
import pytest
import torch
import transformers
from gradio_client import Client
from gradio_client.exceptions import AppError
from hub.hub_stand_in import run_hub, use_hub
from safetensors.torch import load_file
from space.conftest import PAIRS
from space.driving import SENTENCE, Visits, close, lit, results, unfold
from space.wire import Session
from teaching import teach
from transformers import (
    AutoTokenizer,
    BartConfig,
    BartForConditionalGeneration,
    BertConfig,
    BertModel,
    MarianConfig,
    MarianMTModel,
    T5Config,
    T5ForConditionalGeneration,
)

from hf_attn import Translator

ROOT = Path(__file__).parents[2]
VIEWS = ["words", "pieces", "next pieces", "beams"]
IDS = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 1, "forced_eos_token_id": 2}
SIZES = {"d_model": 16, "encoder_layers": 1, "decoder_layers": 2, "encoder_ffn_dim": 8, "decoder_ffn_dim": 8}
HEADS = {"encoder_attention_heads": 2, "decoder_attention_heads": 2}
T5 = {"d_model": 16, "d_kv": 8, "d_ff": 16, "num_layers": 2, "num_heads": 2, "decoder_start_token_id": 0}


def new_model(kind, vocab_size):
    """A tiny model of transformers, whose outputs vary."""
    torch.manual_seed(3)
    if kind == "t5":
        return T5ForConditionalGeneration(T5Config(vocab_size=vocab_size, pad_token_id=0, eos_token_id=2, **T5))
    if kind == "bert":
        sizes = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 1, "intermediate_size": 8}
        return BertModel(BertConfig(vocab_size=vocab_size, **sizes))
    config = BartConfig if kind == "bart" else MarianConfig
    model = BartForConditionalGeneration if kind == "bart" else MarianMTModel
    return model(config(vocab_size=vocab_size, dropout=0.0, **IDS, **SIZES, **HEADS))


@pytest.fixture(scope="module")
def checkpoints(app):
    """The module space/checkpoints.py."""
    return sys.modules["checkpoints"]


@pytest.fixture(scope="module")
def tokenizer(models_folder):
    """A tokenizer of the tiny models."""
    return AutoTokenizer.from_pretrained(models_folder / "en-fr-bahdanau")


@pytest.fixture(scope="module")
def theirs(tokenizer, tmp_path_factory):
    """A folder of checkpoints of transformers."""
    folder = tmp_path_factory.mktemp("theirs")
    for kind in ("marian", "bart", "t5", "bert"):
        model = new_model(kind, len(tokenizer))
        if kind != "bert":
            teach(model, tokenizer, PAIRS["en-fr"], steps=40)
        for part in (model, tokenizer):
            part.save_pretrained(folder / kind)
    return folder


@pytest.fixture
def open_space(app, checkpoints, models_folder):
    """What the page computes where the operator lets visitors open checkpoints."""
    return app.Space(app.load_models(models_folder), None, checkpoints.Checkpoints())


@pytest.fixture
def tab(app, open_space):
    """The tab that translates, where visitors may open checkpoints."""
    return app.TranslateTab(open_space)


# the switch of the operator


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({}, (False, False)),
        ({"SPACE_OPEN": "", "SPACE_REMOTE_CODE": ""}, (False, False)),
        ({"SPACE_OPEN": "0", "SPACE_REMOTE_CODE": "0"}, (False, False)),
        ({"SPACE_OPEN": "1"}, (True, False)),
        ({"SPACE_OPEN": "1", "SPACE_REMOTE_CODE": "1"}, (True, True)),
        ({"SPACE_OPEN": "yes"}, r"SPACE_OPEN is 'yes'; it must be 1 \(on\), 0 or empty \(off\)"),
        ({"SPACE_OPEN": " 1"}, "SPACE_OPEN is ' 1'"),
        ({"SPACE_OPEN": "1", "SPACE_REMOTE_CODE": "True"}, "SPACE_REMOTE_CODE is 'True'"),
        ({"SPACE_REMOTE_CODE": "1"}, "SPACE_REMOTE_CODE is '1' without SPACE_OPEN"),
        ({"SPACE_OPEN": "0", "SPACE_REMOTE_CODE": "1"}, "SPACE_REMOTE_CODE is '1' without SPACE_OPEN"),
    ],
)
def test_switches_are_on_off_or_refused(app, environment, expected):
    if isinstance(expected, tuple):
        assert app.read_switches(environment) == expected
    else:
        with pytest.raises(ValueError, match=expected):
            app.read_switches(environment)


@pytest.mark.parametrize(
    ("environment", "said"),
    [
        ({}, "offline 1"),
        ({"HF_HUB_OFFLINE": "0"}, "offline 1"),
        ({"SPACE_OPEN": "0", "HF_HUB_OFFLINE": "0"}, "offline 1"),
        ({"SPACE_OPEN": "1"}, "offline None"),
        ({"SPACE_OPEN": "1", "HF_HUB_OFFLINE": "0"}, "offline 0"),
        ({"SPACE_OPEN": "1", "HF_HUB_OFFLINE": "1"}, "offline 1"),
        ({"SPACE_OPEN": "on"}, "ValueError: SPACE_OPEN is 'on'"),
    ],
)
def test_without_the_switch_the_network_is_off_whatever_the_environment_says(environment, said):
    """The app is read up to its first import of a library, which must find the network off already."""
    code = (
        "import os, runpy, sys; sys.modules['gradio'] = None\n"
        "try: runpy.run_path('space/app.py')\n"
        "except ImportError: print('offline', os.environ.get('HF_HUB_OFFLINE'))"
    )
    bare = {name: value for name, value in os.environ.items() if not name.startswith(("HF_", "SPACE_"))}
    done = subprocess.run(
        [sys.executable, "-c", code], env=bare | environment, cwd=ROOT, capture_output=True, text=True
    )
    assert said in (done.stdout + done.stderr).splitlines()[-1]


def labels(demo):
    return {getattr(block, "label", None) for block in demo.blocks.values()}


def test_the_box_is_there_with_the_switch_alone(app, models_folder):
    box = {"Another checkpoint", "Hub id, or folder on the machine of this Space"}
    off, on = app.build(models_folder), app.build(models_folder, open_checkpoints=True)
    assert not box & labels(off) and box <= labels(on)
    names = [{function.name for function in demo.fns.values()} for demo in (off, on)]
    assert "open" not in names[0] and "open" in names[1]
    opens = next(function for function in on.fns.values() if function.name == "open")
    assert opens.api_visibility == "private"


def test_without_the_switch_a_forced_call_opens_nothing(app, space, models_folder, monkeypatch):
    tab, folder = app.TranslateTab(space), str(models_folder / "en-fr-none")
    monkeypatch.setattr(sys.modules["checkpoints"], "Translator", None)
    with pytest.raises(gr.Error, match="There is no such model"):
        tab.show(SENTENCE, [folder], 1, "words")
    with pytest.raises(gr.Error, match="There is no such model"):
        tab.open(folder, [], "en-fr", [])
    assert space.checkpoints is None


def test_endpoints_never_take_a_folder_or_a_hub_id(app, open_space, theirs):
    open_space.translator(str(theirs / "marian"))
    for method in (getattr(app.Endpoints(open_space), name) for name in ("translate", "attention", "beams")):
        for name in (str(theirs / "marian"), "google/flan-t5-base"):
            with pytest.raises(gr.Error, match="There is no such model"):
                method(SENTENCE, name)


# what a visitor sees


@pytest.mark.parametrize("kind", ["marian", "bart", "t5"])
def test_models_of_transformers_translate_in_all_views(tab, open_space, theirs, kind):
    name = str(theirs / kind)
    opened, choice = tab.open(f"  {name} ", [], "en-fr", ["en-fr-bahdanau"])
    assert opened == [name] and choice.value == ["en-fr-bahdanau", name] and (name, name) in choice.choices
    for view in VIEWS:
        _, page = tab.show(SENTENCE, [name], 3, view, opened)
        assert f"<h3>{name}</h3>" in page and page.count("<iframe") == 1 and 'lang=""' in page
    translation = open_space.translation(name, SENTENCE, 3)
    assert len(set(translation.target_ids)) > 3
    model = getattr(transformers, type(new_model(kind, 9)).__name__).from_pretrained(name, attn_implementation="eager")
    read = torch.tensor([[model.config.decoder_start_token_id, *translation.target_ids[:-1]]])
    with torch.no_grad():
        outputs = model(torch.tensor([translation.source_ids]), decoder_input_ids=read, output_attentions=True)
    weights = torch.stack([layer[0] for layer in outputs.cross_attentions])
    assert weights.shape[:2] == (2, 2)
    document = html.unescape(tab.result(name, SENTENCE, 3, "pieces").split('srcdoc="')[1].split('" title=')[0])
    shown = json.loads(document.split('id="data">')[1].split("</script>")[0])["weights"][0]  # [layer][choice of heads]
    for layer in range(2):
        close(torch.tensor(shown[layer][0]) / 1e4, weights[layer].mean(dim=0))
        close(torch.tensor(shown[layer][2]) / 1e4, weights[layer, 1])


def test_a_checkpoint_of_this_package_is_opened_without_its_name_saying_what_it_is(tab, models_folder, tmp_path):
    shutil.copytree(models_folder / "en-fr-none", tmp_path / "mine")
    opened, _ = tab.open(str(tmp_path / "mine"), [], "en-fr", [])
    _, page = tab.show("There are 7318 girls.", opened, 4, "words", opened)
    assert "This model has no attention to show" in page and "lost number" in page
    assert "wrong language" not in page  # nobody knows which is right


def test_no_more_than_three_are_shown(tab, theirs):
    name = str(theirs / "marian")
    three = ["en-fr-none", "en-fr-bahdanau", "en-fr-luong"]
    opened, choice = tab.open(name, [], "en-fr", three)
    assert choice.value == [*three[:2], name]
    notices, page = tab.show(SENTENCE, [*three, name], 1, "words", opened)
    assert page.count("<section>") == 3 and "first 3 models" in notices.value
    _, choice = tab.open(name, opened, "en-fr", choice.value)
    assert choice.value == [*three[:2], name] and choice.choices.count((name, name)) == 1


def test_what_one_visitor_opened_another_has_not(tab, theirs):
    name = str(theirs / "marian")
    opened, _ = tab.open(name, [], "en-fr", [])
    assert "<section>" in tab.show(SENTENCE, [name], 1, "words", opened)[1]
    for others in ([], None, [str(theirs / "bart")]):
        with pytest.raises(gr.Error, match="There is no such model") as caught:
            tab.show(SENTENCE, [name], 1, "words", others)
        assert name not in str(caught.value)


def test_what_an_opened_checkpoint_cannot_translate_gets_a_sentence(tab, tokenizer, tmp_path):
    """Its tokenizer has more pieces than its model, and the first test word is among those of both."""
    known = max(tokenizer("A").input_ids) + 1
    for part in (new_model("marian", known), tokenizer):
        part.save_pretrained(tmp_path / "<i>")
    opened, _ = tab.open(str(tmp_path / "<i>"), [], "en-fr", [])
    with pytest.raises(gr.Error, match="/&lt;i&gt;” cannot translate this: tokenizer gives a piece the id"):
        tab.show(SENTENCE, opened, 1, "words", opened)


def test_a_model_of_the_space_is_not_opened_again(tab):
    with pytest.raises(gr.Error, match="en-fr-none is one of the models of this Space"):
        tab.open("en-fr-none", [], "en-fr", [])


# what cannot be opened


def damaged(theirs, place, damage):
    """A copy of a checkpoint with something done to it."""
    folder = Path(shutil.copytree(theirs / "marian", place / "a <b>bold</b> name"))
    damage(folder)
    return str(folder)


def as_pickle(folder):
    torch.save(load_file(folder / "model.safetensors"), folder / "pytorch_model.bin")
    (folder / "model.safetensors").unlink()


def as_index(folder):
    as_pickle(folder)
    index = {"metadata": {}, "weight_map": dict.fromkeys(torch.load(folder / "pytorch_model.bin"), "pytorch_model.bin")}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))


def without(*patterns):
    return lambda folder: [file.unlink() for pattern in patterns for file in folder.glob(pattern)]


def with_config(**changes):
    def change(folder):
        config = json.loads((folder / "config.json").read_text())
        (folder / "config.json").write_text(json.dumps(config | changes))

    return change


@pytest.mark.parametrize(
    ("damage", "sentence"),
    [
        (as_pickle, "has no weights in safetensors files"),
        (as_index, "has weights outside of safetensors files"),
        (without("*.safetensors"), "has no weights in safetensors files"),
        (without("config.json"), "holds no model"),
        (without("tokenizer*"), "has no tokenizer"),
        (lambda folder: (folder / "adapter_config.json").write_text("{}"), "is an adapter"),
        (lambda folder: (folder / "config.json").write_text("{<i>"), "cannot be opened: .*not a valid JSON file"),
        (lambda folder: (folder / "model.safetensors").write_bytes(b"x" * 99), "cannot be opened: "),
        (with_config(model_type="<i>"), "cannot be opened: .*&lt;i&gt;"),
        (with_config(is_encoder_decoder=False), "cannot be opened: .*encoder-decoder model"),
        (with_config(d_model=32), "cannot be opened: "),
        (with_config(decoder_layers=3), "cannot be opened: .*weights are not in the files"),
    ],
)
def test_what_cannot_be_opened_gets_a_sentence_with_its_name(checkpoints, theirs, tmp_path, damage, sentence):
    name = damaged(theirs, tmp_path, damage)
    with pytest.raises(gr.Error, match=sentence) as caught:
        checkpoints.Checkpoints().open(name)
    message = caught.value.message
    assert message.startswith(f"“{html.escape(name)}” ") and "<" not in message and "\n" not in message
    assert not caught.value.print_exception


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("/no/such/folder", "is neither a folder here nor a Hub id"),
        ("../no/such", "is neither a folder here nor a Hub id"),
        ("~nobody/there", "is neither a folder here nor a Hub id"),
        ("<img src=x onerror=alert(1)>", "“&lt;img src=x onerror=alert"),
        ("https://huggingface.co/a/b", "is neither a folder here nor a Hub id"),
        ("/etc", "holds no model"),
        ("/dev/null", "is neither a folder here nor a Hub id"),
        ("google/flan-t5-base", "could not be fetched from the Hub"),
        ("a\0b", "is neither a folder nor a Hub id"),
        ("\ud800", "is neither a folder nor a Hub id"),
        ("/" + "x" * 290, "is neither a folder here nor a Hub id"),
        ("x" * 100_000, "“x{40}” is neither a folder nor a Hub id"),
        ("", "Type a Hub id or a folder"),
        (None, "Type a Hub id or a folder"),
        (["a/b"], "Type a Hub id or a folder"),
        ({"path": "/etc"}, "Type a Hub id or a folder"),
    ],
)
def test_what_is_no_checkpoint_gets_a_sentence(tab, name, sentence):
    with pytest.raises(gr.Error, match=sentence) as caught:
        tab.open(name, [], "en-fr", [])
    assert "<" not in caught.value.message and len(caught.value.message) < 500


def test_a_model_that_is_no_translator_gets_a_sentence(checkpoints, theirs):
    with pytest.raises(gr.Error, match="translation needs an encoder-decoder model"):
        checkpoints.Checkpoints().open(str(theirs / "bert"))


def test_what_is_too_large_is_not_read(checkpoints, theirs, monkeypatch):
    size = (theirs / "marian" / "model.safetensors").stat().st_size
    monkeypatch.setattr(checkpoints, "LARGEST", size - 1)
    monkeypatch.setattr(checkpoints, "Translator", None)
    with pytest.raises(gr.Error, match="is too large: 0.0 GB of weights"):
        checkpoints.Checkpoints().open(str(theirs / "marian"))
    monkeypatch.undo()
    monkeypatch.setattr(checkpoints, "LARGEST", size)
    checkpoints.Checkpoints().open(str(theirs / "marian"))


@pytest.fixture
def own_code(app, models_folder, tmp_path, monkeypatch):
    """A folder as this package publishes it, of a model type that nobody knows: only its own code can open it."""
    folder = tmp_path / "own-code"
    translator = Translator(models_folder / "en-fr-bahdanau")
    translator.model.save_pretrained(folder)
    translator.tokenizer.save_pretrained(folder)
    with_config(model_type="unheard-of")(folder)
    module = folder / "modeling_attn_rnn.py"
    ran = tmp_path / "ran"
    module.write_text(module.read_text() + f"\nopen({str(ran)!r}, 'w').close()\n")
    monkeypatch.setattr(transformers.dynamic_module_utils, "HF_MODULES_CACHE", str(tmp_path / "modules"))
    # other tests may have imported code of checkpoints, from another folder
    monkeypatch.setattr(sys, "path", [place for place in sys.path if not Path(place, "transformers_modules").is_dir()])
    for name in imported_code():
        monkeypatch.delitem(sys.modules, name)
    yield SimpleNamespace(folder=str(folder), ran=ran, expected=translator(SENTENCE).text)
    for name in imported_code():
        del sys.modules[name]


def imported_code():
    """The modules that were imported from checkpoints."""
    return [name for name in sys.modules if name.split(".")[0] == "transformers_modules"]


def test_code_of_a_checkpoint_runs_with_the_second_switch_alone(checkpoints, own_code):
    with pytest.raises(gr.Error, match="brings Python code of its own, which this Space does not run"):
        checkpoints.Checkpoints().open(own_code.folder)
    assert not own_code.ran.exists()
    translator = checkpoints.Checkpoints(remote_code=True).open(own_code.folder)
    assert own_code.ran.exists() and type(translator.model).__module__.startswith("transformers_modules.")
    assert translator(SENTENCE).text == own_code.expected


# from the Hub


@pytest.fixture
def hub(theirs, tmp_path, monkeypatch):
    """A stand-in for the Hub, with a checkpoint that anybody may read and one of jane's, whose token is set."""
    with run_hub() as hub:
        use_hub(monkeypatch, hub, tmp_path)
        for name, private in (("jane/marian", False), ("jane/secret", True)):
            hub.create(name, private)
            tree = {file.name: file.read_bytes() for file in (theirs / "marian").iterdir()}
            tree |= {"pytorch_model.bin": b"pickle", "run.py": b"code", "onnx/model.safetensors": b"large"}
            hub.commit(name, "main", tree, "all")
            hub.large |= {hashlib.sha256(content).hexdigest(): content for content in tree.values()}
        yield hub


def fetched(hub):
    return {path.split("/")[-1] for _, path in hub.requests if "/resolve/" in path}


def test_a_hub_id_is_fetched_without_pickles_and_code(checkpoints, hub, theirs):
    translator = checkpoints.Checkpoints().open("jane/marian")
    assert translator(SENTENCE).text == Translator(theirs / "marian")(SENTENCE).text
    there = {file.name for file in (theirs / "marian").iterdir()}
    assert fetched(hub) <= there and {"config.json", "model.safetensors", "tokenizer.json"} <= fetched(hub)
    assert not any("onnx" in path for _, path in hub.requests)


def test_what_was_fetched_is_found_again_without_a_network(checkpoints, hub, monkeypatch):
    text = checkpoints.Checkpoints().open("jane/marian")(SENTENCE).text
    hub.requests.clear()
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    assert checkpoints.Checkpoints().open("jane/marian")(SENTENCE).text == text
    assert hub.requests == []


@pytest.mark.parametrize(
    ("name", "faults", "sentence"),
    [
        ("jane/nothing", [], "no checkpoint of the Hub that anybody may read"),
        ("jane/secret", [], "no checkpoint of the Hub that anybody may read"),  # the operator's token could read it
        ("jane/marian", [("GET", "/api/", "cut")], "could not be fetched from the Hub"),
        ("jane/marian", [("HEAD", "/resolve/", 500)], "could not be fetched from the Hub"),
        ("jane/marian", [("GET", "/large/", "cut")], "could not be fetched from the Hub"),
    ],
)
def test_what_the_hub_does_not_give_gets_a_sentence(checkpoints, hub, name, faults, sentence):
    hub.faults = faults
    with pytest.raises(gr.Error, match=sentence) as caught:
        checkpoints.Checkpoints().open(name)
    assert caught.value.message.startswith(f"“{name}” ")


def test_gated_and_too_large_on_the_hub(checkpoints, hub, monkeypatch):
    monkeypatch.setattr(
        "hub.hub_stand_in.Handler.refuse", lambda self, *_: self.answer(403, {}, X_Error_Code="GatedRepo")
    )
    hub.faults = [("HEAD", "/resolve/", 403)]
    with pytest.raises(gr.Error, match="only to those who agreed to its terms"):
        checkpoints.Checkpoints().open("jane/marian")
    hub.faults, hub.requests = [], []
    monkeypatch.setattr(checkpoints, "LARGEST", 1000)
    with pytest.raises(gr.Error, match="is too large"):
        checkpoints.Checkpoints().open("jane/marian")
    assert fetched(hub) == set()


# memory, and two visitors at once


@contextmanager
def slow_download(checkpoints, monkeypatch, open_checkpoint):
    """Somebody opens a checkpoint of the Hub, whose download goes on until the end; it fails then."""
    begun, end = threading.Event(), threading.Event()

    def fetch(*_):
        begun.set()
        assert end.wait(60)
        raise checkpoints.Refused("is no folder here.")

    monkeypatch.setattr(checkpoints, "fetch", fetch)
    with ThreadPoolExecutor() as pool:
        download = pool.submit(open_checkpoint, "jane/slow")
        try:
            assert begun.wait(60)
            yield pool
        finally:
            end.set()
        with pytest.raises(gr.Error, match="is no folder here"):
            download.result(timeout=60)


def test_a_slow_download_keeps_nobody_from_a_checkpoint_that_is_held(checkpoints, theirs, monkeypatch):
    held, folder = checkpoints.Checkpoints(), str(theirs / "marian")
    first = held.open(folder)
    with slow_download(checkpoints, monkeypatch, held.open) as pool:
        assert pool.submit(held.open, folder).result(timeout=60) is first


def test_what_computes_does_not_wait_for_a_download(checkpoints, service, theirs, monkeypatch):
    space, folder = service.Space({}, checkpoints=checkpoints.Checkpoints()), str(theirs / "marian")
    with slow_download(checkpoints, monkeypatch, space.open) as pool:
        with pytest.raises(gr.Error, match="others are being opened now: try again soon"):
            pool.submit(space.translator, folder).result(timeout=60)
    assert space.translator(folder)("A", max_new_tokens=2).source == "A"


def test_a_slow_download_takes_no_place_in_which_a_model_computes(app, space_folder):
    demo = app.build(space_folder, open_checkpoints=True)
    queues = {(block.name, block.concurrency_id) for block in demo.fns.values() if block.name in ("open", "show")}
    assert queues == {("open", "open"), ("show", "model")}


def test_a_few_are_held_and_each_is_loaded_once(checkpoints, theirs, tmp_path, monkeypatch):
    loaded, translator = [], checkpoints.Translator

    def load(folder, **options):
        loaded.append(folder.name)
        time.sleep(0.1)
        return translator(folder, **options)

    monkeypatch.setattr(checkpoints, "Translator", load)
    for name in "abcd":
        shutil.copytree(theirs / "marian", tmp_path / name)
    held, answers = checkpoints.Checkpoints(), []
    threads = [threading.Thread(target=lambda: answers.append(held.open(str(tmp_path / "a")))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(answers) == 4 and len(set(map(id, answers))) == 1 and loaded == ["a"]
    monkeypatch.chdir(tmp_path)
    assert held.open("./b/../a") is answers[0] and loaded == ["a"]
    for name in "bcad":  # a was used after b
        held.open(str(tmp_path / name))
    assert loaded == [*"abcd"]
    assert held.open("a") is answers[0]
    held.open("b")
    assert loaded == [*"abcdb"] and checkpoints.MOST_HELD == 3


# the whole page


@pytest.fixture(scope="module")
def open_server(app, models_folder):
    """The address of a Space whose operator lets visitors open checkpoints."""
    threads = torch.get_num_threads()
    demo = app.build(models_folder, open_checkpoints=True)
    _, url, _ = demo.launch(prevent_thread_lock=True, quiet=True, **app.LAUNCH)
    yield SimpleNamespace(url=url, demo=demo)
    demo.close()
    torch.set_num_threads(threads)


def test_no_endpoint_opens_a_checkpoint(open_server, theirs):
    client = Client(open_server.url, verbose=False)
    named = client.view_api(return_format="dict", print_info=False)["named_endpoints"]
    assert "/translate" in named and "/open" not in named
    with pytest.raises(AppError, match="There is no such model"):
        client.predict(SENTENCE, str(theirs / "marian"), 1, api_name="/translate")


def test_a_visitor_cannot_claim_to_have_opened_a_checkpoint(open_server, theirs):
    """What a visitor has opened is kept by the server; what comes over the wire in its place counts for nothing."""
    folder, first, second = str(theirs / "marian"), Session(open_server.url), Session(open_server.url)
    ask = ("results", SENTENCE, [folder], 1, "words", [folder])
    with pytest.raises(ValueError, match="not in the list of choices|There is no such model"):
        first.press(*ask)
    opens = next(function for function in open_server.demo.fns.values() if function.name == "open")
    first.events = [(opens._id, 4, "models")]
    first.press("models", folder, None, "en-fr", [])
    first.events = second.events
    assert f"<h3>{folder}</h3>" in first.press(*ask)[1]
    with pytest.raises(ValueError, match="not in the list of choices|There is no such model"):
        second.press(*ask)


@pytest.mark.browser
def test_a_visitor_opens_a_folder_and_nobody_else_has_it(open_server, browser, theirs, tmp_path):
    folder = tmp_path / "<img src=x onerror=alert(1)>"
    shutil.copytree(theirs / "marian", folder)
    visit = Visits(browser)
    page, other = visit(open_server.url), visit(f"{open_server.url}?models={folder},en-fr-luong")
    results(page, 2)
    unfold(page, "Another checkpoint")
    box = page.get_by_label("Hub id, or folder")
    box.fill("/no/such/<b>folder</b>")
    page.get_by_role("button", name="Open", exact=True).click()
    page.get_by_text("“/no/such/<b>folder</b>” is neither a folder here nor a Hub id").first.wait_for()
    box.fill(str(folder))
    box.press("Enter")
    page.get_by_role("heading", name=str(folder)).wait_for()
    results(page, 3)
    for frame in results(page, 3):  # those that were there before, too
        height = frame.evaluate("document.body.offsetHeight")
        assert frame.frame_element().bounding_box()["height"] == pytest.approx(height, abs=1)
    assert page.get_by_label(str(folder)).is_checked()
    for name in ("Bahdanau (2015)", "Transformer (2017)"):
        page.get_by_label(name).uncheck()
    results(page, 1)
    page.get_by_role("radio", name="pieces", exact=True).check()
    page.locator("#text textarea").fill(SENTENCE)
    page.get_by_role("button", name="Translate").click()
    (frame,) = results(page, 1, SENTENCE)
    translator = Translator(folder)
    translation = translator(SENTENCE, num_beams=4, max_new_tokens=120)
    assert page.locator("#results .translation").text_content() == translation.text
    model = MarianMTModel.from_pretrained(folder, attn_implementation="eager")
    read = torch.tensor([[1, *translation.target_ids[:-1]]])
    with torch.no_grad():
        outputs = model(torch.tensor([translation.source_ids]), decoder_input_ids=read, output_attentions=True)
    frame.get_by_label("Method").select_option("weights")
    frame.get_by_label("Layer").select_option("1")
    frame.get_by_label("Heads").select_option("head 2 of 2")
    for row in range(3):
        frame.locator("#target .word").nth(row).hover()
        close(lit(frame, "source"), outputs.cross_attentions[0][0, 1, row])
    for view in ("next pieces", "beams"):
        page.get_by_role("radio", name=view, exact=True).check()
        page.locator(f"#results iframe[title^='{view.capitalize()}']").wait_for()

    results(other, 1)  # the link opened no checkpoint
    for one in (other, visit(open_server.url)):
        one.locator("#results iframe").first.wait_for()
        assert one.locator("#results h3").first.text_content() in ("Luong (2015)", "Bahdanau (2015)")
        assert "onerror" not in one.content()
    visit.reload(page)
    results(page, 2)
    assert "onerror" not in page.content()
    assert visit.end() == []
