# Copyright 2026 The hf_attn authors. Licensed under the Apache License, Version 2.0.
"""The Space without a browser: what it computes, its endpoints, and that nothing leaves the machine."""

import html
import os
import re
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import gradio as gr
import httpx
import pytest
import torch
import yaml
from gradio_client import Client
from gradio_client.exceptions import AppError
from hostile import NOTHING, Tags
from transformers import MarianConfig, MarianMTModel

from hf_attn import Translator

LONGEST_TEXT = 400
ROOT = Path(__file__).parents[2]
SENTENCE = "The old teacher reads a long letter in the garden."


@pytest.fixture(scope="module")
def client(server):
    """A client of the running Space, as a program would use it."""
    return Client(server, verbose=False)


def forced(models_folder, name, result):
    """The weights of a teacher-forced forward pass, by the model alone."""
    translator = Translator(models_folder / name)
    read = [translator.model.config.decoder_start_token_id]
    translation = translator(result["source"], num_beams=4)
    with torch.no_grad():
        return translation, translator.model(
            torch.tensor([translation.source_ids]),
            decoder_input_ids=torch.tensor([read + translation.target_ids[:-1]]),
            output_attentions=True,
        )


def test_a_model_whose_steps_are_not_known_translates_and_is_not_taken_apart(app, models_folder, tmp_path):
    tokenizer = Translator(models_folder / "en-fr-bahdanau").tokenizer
    ids = {"pad_token_id": 0, "decoder_start_token_id": 1, "eos_token_id": 2, "forced_eos_token_id": 2}
    sizes = {"d_model": 16, "encoder_layers": 1, "decoder_layers": 2, "encoder_ffn_dim": 8, "decoder_ffn_dim": 8}
    heads = {"encoder_attention_heads": 2, "decoder_attention_heads": 2}
    config = MarianConfig(vocab_size=len(tokenizer), **ids, **sizes, **heads)
    for part in (MarianMTModel(config), tokenizer):
        part.save_pretrained(tmp_path / "en-fr-transformer")

    def tabs(folder):
        return [block.label for block in app.build(folder).blocks.values() if isinstance(block, gr.Tab)]

    assert (tabs(tmp_path), tabs(models_folder)) == (
        ["Translate", "What if", "Metrics lab"],
        ["Translate", "Step by step", "History", "What if", "Metrics lab"],
    )
    space = app.Space(app.load_models(tmp_path))
    assert list(space.models) == ["en-fr-transformer"]
    weights = app.Endpoints(space).attention(SENTENCE, "en-fr-transformer")["cross_attentions"]
    assert len(weights) == 2 and len(weights[0]) == 2  # layers, heads


def test_models_are_found_by_their_names(app, models_folder, tmp_path):
    assert list(app.load_models(models_folder)) == [
        "en-fr-none",
        "en-fr-bahdanau",
        "en-fr-luong",
        "en-fr-convs2s",
        "en-fr-transformer",
        "en-ko-none",
        "en-ko-bahdanau",
    ]
    (tmp_path / "notes").mkdir()
    assert app.load_models(tmp_path) == {} and app.load_models(tmp_path / "missing") == {}
    shutil.copytree(models_folder / "en-fr-none", tmp_path / "mymodel")
    with pytest.raises(ValueError, match="'mymodel'.*en-fr-bahdanau"):
        app.load_models(tmp_path)


def test_what_is_said_about_the_text(app):
    assert app.clean("  The  girl\treads. ") == ("The girl reads.", [])
    line, (notice,) = app.clean("The girl\nreads.\n")
    assert line == "The girl reads." and "one sentence at a time" in notice
    line, (notice,) = app.clean("the girl reads " * 7000)
    assert len(line) <= LONGEST_TEXT and line.endswith(" girl") or line.endswith(" reads") or line.endswith(" the")
    assert f"first {len(line)} of 105,000 characters" in notice and f"“{line[-20:]}”" in notice
    line, (notice,) = app.clean("x" * 100_000)
    assert line == "x" * LONGEST_TEXT and "100,000" in notice
    assert app.clean("x" * LONGEST_TEXT)[1] == []


def test_translate_gives_what_the_translator_gives(client, models_folder):
    for name in ("en-fr-none", "en-fr-bahdanau", "en-fr-transformer", "en-ko-bahdanau"):
        result = client.predict(SENTENCE, name, 4, api_name="/translate")
        expected = Translator(models_folder / name)(SENTENCE, num_beams=4)
        assert result["text"] == expected.text and len(expected.text) > 5
        assert result["source_tokens"] == expected.source_tokens and result["target_tokens"] == expected.target_tokens
        assert result["token_log_probs"] == pytest.approx(expected.token_log_probs, abs=1e-5)
        assert result["model"] == name and result["notices"] == [] and isinstance(result["failures"], list)
    assert re.search("[가-힣]", result["text"])


def test_attention_gives_the_weights_of_a_forward_pass(client, models_folder):
    for name in ("en-fr-luong", "en-fr-transformer", "en-ko-bahdanau"):
        result = client.predict(text=SENTENCE, model=name, api_name="/attention")
        translation, outputs = forced(models_folder, name, result)
        assert result["text"] == translation.text
        for kind in ("cross_attentions", "encoder_attentions", "decoder_attentions"):
            layers = getattr(outputs, kind, None)
            if layers is None:
                assert result[kind] is None and (name, kind) != ("en-fr-transformer", "cross_attentions")
                continue
            weights = torch.stack([layer[0] for layer in layers])
            torch.testing.assert_close(torch.tensor(result[kind]), weights, atol=2e-6, rtol=0)
        alignment = translation.alignment()
        shown = result["alignment"]
        assert shown["source_words"] == alignment.source_words and shown["target_words"] == alignment.target_words
        assert shown["description"] == alignment.description
        torch.testing.assert_close(torch.tensor(shown["weights"]), alignment.weights, atol=2e-6, rtol=0)
    result = client.predict(SENTENCE, "en-fr-none", api_name="/attention")
    assert result["cross_attentions"] is None and result["alignment"] is None


def test_the_two_endpoints_are_documented_and_alone(endpoints, client):
    endpoints = client.view_api(return_format="dict", print_info=False)
    assert set(endpoints["named_endpoints"]) == {"/translate", "/attention"} and not endpoints["unnamed_endpoints"]
    for endpoint in endpoints["named_endpoints"].values():
        assert [parameter["parameter_name"] for parameter in endpoint["parameters"]] == ["text", "model", "num_beams"]
        assert endpoint["description"].startswith("Translate one sentence")
        for argument in (
            "text: the sentence",
            "model: one of the models",
            "num_beams: width of the beam search, 1 to 8",
        ):
            assert argument in endpoint["description"]
    for private in ("/show_translations", "/take_apart", "/show_step", "/load_example"):
        with pytest.raises(ValueError, match="Cannot find"):
            client.predict(api_name=private)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((SENTENCE, "en-de-transformer", 4), "There is no such model"),
        ((SENTENCE, "../en-fr-none", 4), "There is no such model"),
        ((SENTENCE, "google/flan-t5-base", 4), "There is no such model"),
        ((SENTENCE, ["en-fr-none"], 4), "There is no such model"),
        ((SENTENCE, None, 4), "There is no such model"),
        ((SENTENCE, "en-fr-none", 0), "whole number from 1 to 8"),
        ((SENTENCE, "en-fr-none", 9), "whole number from 1 to 8"),
        ((SENTENCE, "en-fr-none", 10**30), "whole number from 1 to 8"),
        ((SENTENCE, "en-fr-none", 1.5), "whole number from 1 to 8"),
        ((SENTENCE, "en-fr-none", True), "whole number from 1 to 8"),
        ((SENTENCE, "en-fr-none", "<b>"), "whole number from 1 to 8"),
        ((["a"], "en-fr-none", 1), "must be a string"),
        (({"path": "/etc/passwd"}, "en-fr-none", 1), "must be a string"),
        ((None, "en-fr-none", 1), "must be a string"),
        ((7, "en-fr-none", 1), "must be a string"),
        *((("" + text, "en-fr-none", 1), "nothing to translate") for text in NOTHING.values()),
    ],
)
def test_what_is_no_question_gets_a_sentence(endpoints, client, arguments, message):
    for method in (endpoints.translate, endpoints.attention):
        with pytest.raises(gr.Error, match=message):
            method(*arguments)
    if arguments[0] is not None:
        with pytest.raises(AppError, match=message):
            client.predict(*arguments, api_name="/attention")


def test_side_by_side(endpoints, translate_tab):
    names = ["en-fr-none", "en-fr-bahdanau", "en-fr-transformer", "en-fr-luong"]
    notices, page = translate_tab.show(SENTENCE, names, 1, "words")
    assert "first 3 models" in notices.value
    titles = re.findall(r"<h3>(.*?)</h3>", page)
    assert titles == ["No attention (2014)", "Bahdanau (2015)", "Transformer (2017)"]
    assert len(Tags(page).frames) == 2 and "no attention to show" in page
    assert len(set(re.findall(r'title="(.*?)"', page))) == 2, "each frame has a name of its own"
    for name in names[:3]:
        assert html.escape(endpoints.translate(SENTENCE, name, 1)["text"]) in page
    with pytest.raises(gr.Error, match="at least one model"):
        translate_tab.show(SENTENCE, [], 1, "words")


def test_what_a_model_does_not_read_is_said(endpoints, translate_tab, steps_tab):
    """A language that the tokenizer spells in bytes reaches the limit of pieces before that of characters."""
    text = "한국어로 쓴 아주 긴 문장은 바이트로 나뉘어 읽힙니다. " * 4
    result = endpoints.attention(text, "en-fr-bahdanau")
    (notice,) = result["notices"]
    assert len(result["source_tokens"]) == 120 and result["truncated"]
    read = re.search("up to “(.*)”", notice)[1]
    assert len(read) == 20 and read in text and not result["source"].endswith(read)
    _, page = translate_tab.show(text, ["en-fr-bahdanau"], 4, "words")
    assert notice in page and notice in steps_tab.take_apart(text, "en-fr-bahdanau")[0].value
    assert len(page.encode("utf-8")) < 1_500_000


def test_failures_are_flagged(endpoints, translate_tab, space, monkeypatch):
    class Flag:
        kind, detail = "lost_number", "<3>"

    monkeypatch.setattr(space, "failures", lambda name, translation: [Flag])
    _, page = translate_tab.show(SENTENCE, ["en-fr-none"], 1, "words")
    assert "<li>lost number: &lt;3&gt;</li>" in page
    assert endpoints.translate(SENTENCE, "en-fr-none", 1)["failures"] == [{"kind": "lost_number", "detail": "<3>"}]


def test_a_number_that_is_lost(endpoints):
    """A model of 4 sentences cannot write 7318."""
    failures = endpoints.translate("There are 7318 girls.", "en-fr-bahdanau", 1)["failures"]
    assert "lost_number" in [flag["kind"] for flag in failures]


def test_steps_of_every_model(endpoints, steps_tab, space):
    for name in space.models:
        *_, kind, layer, head, steps = steps_tab.take_apart(SENTENCE, name)
        transformer = name.endswith("transformer")
        layers = transformer or name.endswith("convs2s")
        assert (kind.visible, layer.visible, head.visible) == (transformer, layers, transformer)
        (document,) = Tags(steps).frames
        assert html.escape(endpoints.translate(SENTENCE, name)["target_tokens"][0]) in document
    shown = {"model": "en-fr-transformer", "line": SENTENCE}
    first = steps_tab.show_step(shown, 1, "cross", 0, 0)
    assert first != steps_tab.show_step(shown, 1, "cross", 0, 1) != steps_tab.show_step(shown, 1, "decoder", 0, 1)


def test_many_visitors_at_once(client, server):
    """Parallel calls give what serial ones give: nobody gets another's sentence."""
    questions = [(text, name) for text in ("The girl reads.", "Where is the girl?", SENTENCE)
                 for name in ("en-fr-bahdanau", "en-fr-transformer")]  # fmt: skip
    expected = [client.predict(text, name, 2, api_name="/translate") for text, name in questions]
    clients = [Client(server, verbose=False) for _ in range(3)]

    def ask(number):
        text, name = questions[number % len(questions)]
        return clients[number % 3].predict(text, name, 2, api_name="/translate")

    with ThreadPoolExecutor(6) as pool:
        answers = list(pool.map(ask, range(12)))
    assert answers == expected * 2


def test_no_more_than_so_many_at_once(app, models_folder):
    demo = app.build(models_folder)
    functions = [function for function in demo.fns.values() if function.fn is not None]
    working = [function for function in functions if function.concurrency_id == "model"]
    assert {function.concurrency_limit for function in working} == {app.AT_ONCE}
    assert {function.name for function in functions} - {function.name for function in working} <= {
        "offer",
        "load_example",
    }
    assert demo.max_size == 64 if hasattr(demo, "max_size") else demo._queue.max_size == 64


def test_no_file_goes_in_or_out(server, tmp_path):
    secret = tmp_path / "secret.txt"
    secret.write_text("secret")
    answer = httpx.post(f"{server}gradio_api/upload", files={"files": ("a.txt", b"hello")})
    assert answer.status_code == 413
    for path in (secret, ROOT / "space" / "app.py", "/etc/passwd"):
        assert httpx.get(f"{server}gradio_api/file={path}").status_code in (403, 404)
    assert httpx.get(f"{server}monitoring/summary").status_code != 200
    assert httpx.get(f"{server}gradio_api/runs").status_code != 200


WATCH = """
import ipaddress, runpy, sys

def watch(event, arguments):
    if event == "socket.connect":
        address = arguments[1]
        if isinstance(address, tuple) and not ipaddress.ip_address(address[0].split("%")[0]).is_loopback:
            print("REQUEST", address, flush=True)
    elif event == "socket.getaddrinfo" and arguments[0] not in ("127.0.0.1", "localhost", "0.0.0.0", "::1", None):
        print("REQUEST", arguments[0], flush=True)

sys.addaudithook(watch)
sys.argv = [sys.argv[1]]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


@pytest.mark.slow
@pytest.mark.parametrize("models", [True, False])
def test_starting_and_translating_asks_nobody_for_anything(models, models_folder, tmp_path):
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("HF_", "GRADIO_"))}
    environment |= {"SPACE_MODELS": str(models_folder if models else tmp_path), "PYTHONUNBUFFERED": "1"}
    command = [sys.executable, "-c", WATCH, str(ROOT / "space" / "app.py")]
    log = tmp_path / "log.txt"
    with open(log, "w") as output:
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, env=environment, cwd=tmp_path)
    try:
        url = None
        for _ in range(600):
            found = re.search(r"Running on local URL: +(http://\S+)", log.read_text())
            if found or process.poll() is not None:
                url = found and found[1]
                break
            time.sleep(0.2)
        assert url, log.read_text()
        page = httpx.get(url)
        assert page.status_code == 200 and "Attention you can see" in page.text
        assert ("There are no models here yet" in page.text) == (not models)
        client = Client(url, verbose=False)
        if models:
            assert client.predict(SENTENCE, "en-fr-none", 1, api_name="/attention")["text"]
        else:
            with pytest.raises(AppError, match="there are: none"):
                client.predict(SENTENCE, "en-fr-none", 1, api_name="/attention")
    finally:
        process.terminate()
        process.wait()
    assert "REQUEST" not in log.read_text(), log.read_text()


def test_the_space_runs_what_is_tested():
    _, front, _ = (ROOT / "space" / "README.md").read_text(encoding="utf-8").split("---\n", 2)
    card = yaml.safe_load(front)
    assert card["sdk"] == "gradio" and card["app_file"] == "app.py" and len(card["short_description"]) <= 60
    assert (ROOT / "space" / card["app_file"]).is_file()
    pinned, required = (
        dict(re.findall(r"(?m)^([\w-]+)==(.*)$", (ROOT / file).read_text(encoding="utf-8")))
        for file in ("scripts/constraints.txt", "space/requirements.txt")
    )
    assert set(required) == {"gradio", "torch", "transformers"} and required.items() <= pinned.items()
    assert card["sdk_version"] == required["gradio"]
