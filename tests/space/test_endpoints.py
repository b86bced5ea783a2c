# Copyright 2026 The hf_attn authors. Licensed under the Apache License, Version 2.0.
"""Every named endpoint of the Space, as programs call it: right answers, documentation, and wrong questions."""

import inspect
import json
import math
import re

import httpx
import pytest
import torch
from gradio_client import Client
from gradio_client.exceptions import AppError
from hostile import NOTHING
from PIL import Image
from space.questions import DIGIT, GOOD, RNN, SENTENCE, TRANSFORMER
from transformers import (
    AutoImageProcessor,
    AutoModelForCausalLM,
    AutoModelForImageClassification,
    AutoModelForMaskedLM,
    AutoTokenizer,
)

from hf_attn import Translator
from hf_attn.data.shapes import generate
from hf_attn.inference import Captioner
from hf_attn.inference.what_if import force_piece, hide_words, next_pieces, remove_heads

UNSURE = "We read the long red garden."  # of whose translation the beams make more than greedy search
LONGEST_SENTENCE = 120
SENTENCE_NAMING = r"(?i)(?=.*\b{}s?\b)[^\n.<>&]+\."
NO_TEXT = [None, 7, True, 1.5, [SENTENCE], [[[SENTENCE]]], {"path": "/etc/passwd"}, *NOTHING.values()]
NO_MODEL = [
    None,
    0,
    True,
    "",
    "en-de-transformer",
    "../en-fr-none",
    "/etc/passwd",
    "google/flan-t5-base",
    [RNN],
    {"a": 1},
]
NO_NUMBER = [None, True, False, -1, 1.5, math.nan, math.inf, -math.inf, 10**30, "1", "<b>", [1], [[1]], {"a": 1}, ""]
NO_NUMBERS = [None, [], [[]], 0, True, "0", {"a": 0}, {}, list(range(200)), *([value] for value in NO_NUMBER)]
WRONG = {
    "text": NO_TEXT,
    "model": NO_MODEL,
    "num_beams": [*NO_NUMBER, 0, 9],
    "count": [*NO_NUMBER, 0, 21],
    "words": [*NO_NUMBERS, [99], [0, 99]],
    "layer": [*NO_NUMBER, 2, 99],
    "heads": [*NO_NUMBERS, [2], [0, 99]],
    "kind": [None, 0, True, "", "self", "CROSS", ["cross"], [["cross"]], {"cross": 1}],
    "position": [*NO_NUMBER, 99],
    "piece": [*NO_NUMBER, 10**6],
    "reference": NO_TEXT,
    "hypothesis": NO_TEXT,
    "pieces": [*NO_NUMBER, 0, 41],
    "number": [*NO_NUMBER, 10**6],
    "pixels": [
        *(None, 0, True, "", {"a": 1}, [], [[]], [[0] * 8] * 7, [[0] * 8] * 9, [[0] * 7] * 8, [0] * 64, [[1] * 64]),
        *([[[value] + [1] * 7] * 8 for value in [*NO_NUMBER, 17]]),
    ],
}


@pytest.fixture(scope="module")
def client(server):
    """A client of the running Space, as a program would use it."""
    return Client(server, verbose=False)


@pytest.fixture(scope="module")
def wire(server):
    """A connection to the Space for JSON as it is written."""
    with httpx.Client(base_url=server, headers={"content-type": "application/json"}, timeout=60) as connection:
        yield connection


@pytest.fixture(scope="module")
def translators(models_folder):
    """Every translator, opened by the package alone."""
    return {path.name: Translator(path) for path in sorted(models_folder.iterdir())}


def ask(client, name, **changes):
    """Ask the good question of an endpoint, with some arguments changed."""
    return client.predict(**GOOD[name] | changes, api_name=f"/{name}")


def ask_in_json(wire, name, arguments):
    """Ask without gradio_client, which does not send NaN; give the kind of the answer and the answer."""
    event = wire.post(f"gradio_api/call/{name}", content=json.dumps({"data": arguments}))
    answer = wire.get(f"gradio_api/call/{name}/{event.json()['event_id']}").text
    kind, data = re.fullmatch(r"event: (\w+)\ndata: (.*)\n\n", answer).groups()
    return kind, json.loads(data)


def same(given, expected):
    """Compare a translation in an answer with one that the package gives."""
    expected = json.loads(json.dumps(expected.to_dict()))
    numbers = ("token_log_probs", "score")
    for key in expected:
        assert given[key] == (pytest.approx(expected[key], abs=1e-5) if key in numbers else expected[key])
    return True


def forced(model, translation):
    """What the model gives when it reads the translation, by the model alone."""
    read = [model.config.decoder_start_token_id, *translation.target_ids[:-1]]
    with torch.no_grad():
        return model(
            torch.tensor([translation.source_ids]), decoder_input_ids=torch.tensor([read]), output_attentions=True
        )


def translate(translator, text=SENTENCE, num_beams=2, **options):
    """Translate as the Space does: no more than so many pieces."""
    return translator(text, num_beams=num_beams, max_new_tokens=LONGEST_SENTENCE, **options)


def likeliest(candidates, logits, count):
    """Check that candidates are the likeliest pieces under these logits."""
    values, ids = logits.softmax(-1).topk(count)
    assert [one["id"] for one in candidates] == ids.tolist()
    assert [one["probability"] for one in candidates] == pytest.approx(values.tolist(), abs=1e-5)


def test_these_are_the_endpoints(app, client):
    described = client.view_api(return_format="dict", print_info=False)
    assert not described["unnamed_endpoints"]
    assert list(described["named_endpoints"]) == [
        *("/translate", "/attention", "/beams", "/next_pieces", "/hide_words", "/remove_heads", "/write_instead"),
        *("/metrics", "/fill_in", "/continue_text", "/classify_digit", "/describe_shapes"),
    ]
    assert app.NAMES == tuple(GOOD)[:8] and len(GOOD) == 12


def test_every_endpoint_and_every_argument_is_documented(app, space, client):
    described = client.view_api(return_format="dict", print_info=False)["named_endpoints"]
    methods = {f"/{method.__name__}": method for method in app.named_endpoints(space)}
    assert set(methods) == set(described) and set(methods) == {f"/{name}" for name in GOOD}
    for name, endpoint in described.items():
        parameters = inspect.signature(methods[name]).parameters
        assert [parameter["parameter_name"] for parameter in endpoint["parameters"]] == list(parameters)
        text = endpoint["description"]
        assert text == inspect.getdoc(methods[name]) and re.match(r"[A-Z][^\n]+\.\n", text)
        said = re.findall(r"(?m)^    (\w+): ", re.search(r"(?s)Args:\n(.*?)\n\n", text)[1])
        assert said == list(parameters) and re.search(r"Returns:\n    \S", text)
        for parameter in endpoint["parameters"]:
            default = parameters[parameter["parameter_name"]].default
            assert parameter["parameter_has_default"] == (default is not inspect.Parameter.empty)


def test_what_the_page_calls_is_no_endpoint(client):
    for private in ("/show", "/take_apart", "/show_step", "/begin", "/load_example", "/reopen"):
        with pytest.raises(ValueError, match="Cannot find"):
            client.predict(api_name=private)


def test_translate_gives_what_the_translator_gives(client, translators):
    assert len(translators) >= 6
    for name, translator in translators.items():
        result = client.predict(SENTENCE, name, 4, api_name="/translate")
        expected = translate(translator, num_beams=4)
        assert same(result, expected) and len(expected.text) > 5
        assert result["model"] == name and result["notices"] == [] and isinstance(result["failures"], list)
    assert re.search("[가-힣]", client.predict(SENTENCE, "en-ko-bahdanau", api_name="/translate")["text"])


def test_without_a_number_of_beams_there_are_four(client, translators):
    found = [translate(translators[TRANSFORMER], UNSURE, beams) for beams in (1, 4)]
    assert found[0].text != found[1].text
    assert same(client.predict(UNSURE, TRANSFORMER, api_name="/translate"), found[1])
    assert same(client.predict(UNSURE, TRANSFORMER, 1, api_name="/translate"), found[0])


def test_attention_gives_the_weights_of_a_forward_pass(client, translators):
    for name, translator in translators.items():
        result = client.predict(text=SENTENCE, model=name, api_name="/attention")
        translation = translate(translator, num_beams=4)
        outputs = forced(translator.model, translation)
        assert same(result, translation)
        assert (result["cross_attentions"] is None) == (result["alignment"] is None) == name.endswith("none")
        assert (result["encoder_attentions"] is None) == (not name.endswith("transformer"))
        for kind in ("cross_attentions", "encoder_attentions", "decoder_attentions"):
            layers = getattr(outputs, kind, None)
            if result[kind] is None:
                assert layers is None
                continue
            weights = torch.stack([layer[0] for layer in layers])
            torch.testing.assert_close(torch.tensor(result[kind]), weights, atol=2e-6, rtol=0)
            torch.testing.assert_close(torch.tensor(result[kind]).sum(-1), torch.ones(weights.shape[:-1]))
        if shown := result["alignment"]:
            alignment = translation.alignment()
            assert shown["source_words"] == alignment.source_words == re.findall(r"\w+|\.", SENTENCE) + ["</s>"]
            assert shown["target_words"] == alignment.target_words and shown["description"] == alignment.description
            torch.testing.assert_close(torch.tensor(shown["weights"]), alignment.weights, atol=2e-6, rtol=0)


def test_beams_are_all_outputs_of_the_search(client, translators):
    for name in (RNN, TRANSFORMER):
        for beams in (1, 5):
            result = client.predict(SENTENCE, name, beams, api_name="/beams")
            expected = translate(translators[name], num_beams=beams, num_return_sequences=beams)
            expected = expected if beams > 1 else [expected]
            assert len(result["beams"]) == beams == len(expected)
            assert all(same(given, one) for given, one in zip(result["beams"], expected, strict=True))
        assert len({tuple(one["target_tokens"]) for one in result["beams"]}) == 5
        scores = [one["score"] for one in result["beams"]]
        assert scores == sorted(scores, reverse=True)


def test_next_pieces_are_the_likeliest_of_a_forward_pass(client, translators):
    for name in (RNN, TRANSFORMER):
        result = client.predict(SENTENCE, name, 2, 4, api_name="/next_pieces")
        translator = translators[name]
        translation = translate(translator)
        assert same(result, translation) and len(result["candidates"]) == len(translation.target_ids)
        for logits, candidates in zip(
            forced(translator.model, translation).logits[0], result["candidates"], strict=True
        ):
            likeliest(candidates, logits, 4)
        assert result["candidates"][0][0]["token"] == translation.target_tokens[0]


def test_what_if_gives_what_the_package_gives(client, translators):
    translator = translators[TRANSFORMER]
    before = translate(translator)
    piece = next_pieces(translator, before, 2)[1][1].id
    search = {"num_beams": 2, "max_new_tokens": LONGEST_SENTENCE}
    for name, changes, expected in (
        ("hide_words", {}, hide_words(translator, before, [1, 2], **search)),
        ("remove_heads", {}, remove_heads(translator, before, 0, [0], "cross", **search)),
        ("remove_heads", {"kind": "encoder", "heads": [0, 1]},
         remove_heads(translator, before, 0, [0, 1], "encoder", **search)),
        ("write_instead", {"piece": piece}, force_piece(translator, before, 1, piece, **search)),
    ):  # fmt: skip
        result = ask(client, name, **changes)
        assert same(result["before"], before) and same(result["after"], expected.after)
        assert ("rescored" in result) == (expected.rescored is not None) == (name != "write_instead")
        if expected.rescored is not None:
            assert same(result["rescored"], expected.rescored)
            change = torch.tensor(result["rescored"]["token_log_probs"]) - torch.tensor(before.token_log_probs)
            assert change.abs().max() > 1e-3
        assert result["condition"].startswith("with")
    assert result["after"]["target_tokens"][1] == next_pieces(translator, before, 2)[1][1].token


def test_hidden_words_are_named(client):
    assert ask(client, "hide_words")["condition"] == "without attention to “old”, “teacher”"
    assert ask(client, "remove_heads", heads=[0, 1])["condition"].endswith("layer 1, head 1, 2")


@pytest.mark.parametrize(
    ("reference", "hypothesis"),
    [
        ("the cat sat on the mat", "the the the the the the the"),
        ("Il gatto dorme sulla sedia.", "Il gatto dorme."),
        ("나는 학교에 가는 것을 좋아한다 .", "학교에 가는 것을 좋아한다 나는 ."),
        ("a b c d e", "a b c d e"),
    ],
)
def test_metrics_are_counted_by_hand(client, reference, hypothesis):
    """Against loops that know nothing of the package."""
    result = client.predict(reference, hypothesis, api_name="/metrics")
    right, judged = result["words"]["reference"], result["words"]["hypothesis"]
    assert "".join(right) == reference.replace(" ", "") and "".join(judged) == hypothesis.replace(" ", "")
    for order, counted in enumerate(result["precisions"], start=1):
        left = [right[start : start + order] for start in range(len(right) - order + 1)]
        grams = [judged[start : start + order] for start in range(len(judged) - order + 1)]
        matches = 0
        for gram in grams:
            if gram in left:
                left.remove(gram)
                matches += 1
        assert counted == [matches, len(grams)]
    penalty = 1.0 if len(judged) >= len(right) else math.exp(1 - len(right) / len(judged))
    assert result["brevity_penalty"] == pytest.approx(penalty)
    for order in (2, 4):
        shares = [found / total if total else 0 for found, total in result["precisions"][:order]]
        product = math.prod(shares) ** (1 / order)
        assert result[f"bleu_{order}"] == pytest.approx(penalty * product)


@torch.no_grad()
def test_blanks_are_filled_from_a_forward_pass(client, others_folder):
    tokenizer = AutoTokenizer.from_pretrained(others_folder / "tiny-bert")
    model = AutoModelForMaskedLM.from_pretrained(others_folder / "tiny-bert").eval()
    ids = tokenizer(GOOD["fill_in"]["text"].replace("___", tokenizer.mask_token)).input_ids
    outputs = model(torch.tensor([ids]), output_attentions=True)
    result = ask(client, "fill_in")
    blanks = [place for place, number in enumerate(ids) if number == tokenizer.mask_token_id]
    assert len(result["pieces"]) == len(ids) and [blank["position"] for blank in result["blanks"]] == blanks
    for place, blank in zip(blanks, result["blanks"], strict=True):
        likeliest(blank["candidates"], outputs.logits[0, place], 3)
        ids[place] = int(outputs.logits[0, place].argmax())
    assert result["text"] == tokenizer.decode(ids, skip_special_tokens=True)
    torch.testing.assert_close(torch.tensor(result["attentions"]), torch.cat(outputs.attentions), atol=2e-6, rtol=0)


@torch.no_grad()
def test_a_text_goes_on_by_the_likeliest_piece(client, others_folder):
    tokenizer = AutoTokenizer.from_pretrained(others_folder / "tiny-gpt")
    model = AutoModelForCausalLM.from_pretrained(others_folder / "tiny-gpt").eval()
    result = ask(client, "continue_text")
    ids = tokenizer(GOOD["continue_text"]["text"]).input_ids
    ids = ids[:-1] if ids[-1] == tokenizer.eos_token_id else ids
    assert result["given"] == len(ids)
    while len(ids) < result["given"] + 6 and ids[-1] != tokenizer.eos_token_id:
        ids.append(int(model(torch.tensor([ids])).logits[0, -1].argmax()))
    assert result["text"] == GOOD["continue_text"]["text"] + result["written"] and len(result["pieces"]) == len(ids)
    assert result["written"] == tokenizer.decode(ids[result["given"] :], skip_special_tokens=True) != ""
    outputs = model(torch.tensor([ids]), output_attentions=True)
    for candidates, logits in zip(result["candidates"], outputs.logits[0], strict=True):
        likeliest(candidates, logits, 3)
    torch.testing.assert_close(torch.tensor(result["attentions"]), torch.cat(outputs.attentions), atol=2e-6, rtol=0)


@torch.no_grad()
def test_a_digit_is_read_by_a_forward_pass(client, others_folder):
    processor = AutoImageProcessor.from_pretrained(others_folder / "tiny-vit")
    model = AutoModelForImageClassification.from_pretrained(others_folder / "tiny-vit").eval()
    pixels = torch.tensor(DIGIT) * 255 / 16
    picture = Image.fromarray(pixels.round().byte().numpy()).convert("RGB")
    outputs = model(**processor([picture], return_tensors="pt"), output_attentions=True)
    result = ask(client, "classify_digit")
    expected = outputs.logits[0].softmax(-1)
    assert list(result["probabilities"].values()) == pytest.approx(expected.tolist(), abs=1e-5)
    assert result["digit"] == model.config.id2label[int(expected.argmax())]
    torch.testing.assert_close(torch.tensor(result["attentions"]), torch.cat(outputs.attentions), atol=2e-6, rtol=0)
    assert math.prod(result["grid"]) + 1 == outputs.attentions[0].shape[-1] == 17


def test_a_picture_of_shapes_is_described_by_the_captioner(client, others_folder):
    captioner = Captioner(others_folder / "tiny-captioner", device="cpu")
    for number in (7, 999_999):
        (scene,) = generate("compositional", 1, number)
        caption, result = captioner(scene.picture), ask(client, "describe_shapes", number=number)
        assert result["caption"] == caption.text != "" and result["right"] == scene.caption
        assert result["pieces"] == caption.tokens and len(result["pieces"]) > 3
        assert result["log_probs"] == pytest.approx(caption.token_log_probs, abs=1e-5)
        for kind in ("cross_attentions", "vision_attentions"):
            torch.testing.assert_close(torch.tensor(result[kind]), getattr(caption, kind), atol=2e-6, rtol=0)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "argument"), [(name, argument) for name in GOOD for argument in GOOD[name]], ids=lambda value: value
)
def test_a_wrong_argument_gets_a_sentence_that_names_it(app, space, client, wire, name, argument):
    (method,) = (one for one in app.named_endpoints(space) if one.__name__ == name)
    sentence = SENTENCE_NAMING.format(argument.removesuffix("s"))
    for value in WRONG[argument]:
        arguments = GOOD[name] | {argument: value}
        kind, answer = ask_in_json(wire, name, [arguments[one] for one in inspect.signature(method).parameters])
        assert kind == "error", (value, answer)
        assert re.fullmatch(sentence, answer["error"] or ""), (value, answer)
    with pytest.raises(AppError) as error:
        client.predict(**GOOD[name] | {argument: WRONG[argument][0]}, api_name=f"/{name}")
    assert re.fullmatch(sentence, str(error.value))


@pytest.mark.parametrize("name", GOOD)
def test_arguments_that_are_missing_or_unknown_are_named(client, name):
    first = next(iter(GOOD[name]))
    with pytest.raises(TypeError, match=f"No value provided for required argument: {first}"):
        client.predict(**{key: value for key, value in GOOD[name].items() if key != first}, api_name=f"/{name}")
    with pytest.raises(TypeError, match="`folder` is not a valid key-word argument"):
        client.predict(**GOOD[name], folder="/etc", api_name=f"/{name}")


def test_what_a_model_does_not_have_is_said(client):
    with pytest.raises(AppError, match=r"^this translation has no cross-attention, so no word can be hidden .*\.$"):
        ask(client, "hide_words", model="en-fr-none")
    with pytest.raises(AppError, match=r"^kind is 'cross'; .* has no multi-head attention of this kind\.$"):
        ask(client, "remove_heads", model=RNN)


def test_a_file_of_the_caller_is_not_sent(client, tmp_path):
    secret = tmp_path / "secret.txt"
    secret.write_text("secret")
    with pytest.raises(ValueError, match="exceeds the maximum file size of 0 bytes"):
        ask(client, "translate", text={"path": str(secret), "meta": {"_type": "gradio.FileData"}})
