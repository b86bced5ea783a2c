"""transformers' BERT, RoBERTa, ALBERT, ELECTRA and DistilBERT against our encoder: imported weights, equal outputs,
equal training, and the way back."""

import dataclasses
import random
import warnings
from functools import partial

import pytest
import torch
import transformers

from hf_attn.hub import export_checkpoint, import_checkpoint
from hf_attn.hub.conversion import option_values, place_of
from hf_attn.hub.encoder_twins import ENCODER_TWINS
from hf_attn.models import modeling_attn_bert
from hf_attn.models.modeling_attn_bert import AttnBertConfig, AttnBertForMaskedLM, AttnBertModel

CLOSE = {"atol": 1e-5, "rtol": 1e-5}
VOCABULARY = 47
BERT = {
    "hidden_size": (16, 24),
    "num_hidden_layers": (1, 2, 3),
    "num_attention_heads": (1, 2, 8),
    "intermediate_size": (20, 32),
    "max_position_embeddings": (24, 40),
    "type_vocab_size": (2, 3),
    "layer_norm_eps": (1e-12, 1e-5),
    "hidden_act": ("gelu", "relu", "gelu_new"),
    "tie_word_embeddings": (True, False),
    "pad_token_id": (0, 3),
}
NARROW = BERT | {"embedding_size": (8, 12), "hidden_act": ("gelu",)}
CHOICES = {
    "bert": BERT,
    "roberta": BERT | {"type_vocab_size": (1,), "hidden_act": ("gelu",), "pad_token_id": (1, 3)},
    "albert": NARROW | {"hidden_act": ("gelu_new", "relu"), "pad_token_id": (0, 4)},
    "electra": NARROW,
    "distilbert": {
        "dim": (16, 24),
        "n_layers": (1, 2),
        "n_heads": (2, 4),
        "hidden_dim": (20, 32),
        "max_position_embeddings": (24, 40),
        "activation": ("gelu", "relu"),
        "tie_word_embeddings": (True, False),
    },
}
# theirs drop out what a classifier reads with numbers of their own, ours with `dropout`
CLASSIFIER_DROPOUTS = {"classifier_dropout_prob", "seq_classif_dropout", "qa_dropout"}
CASES = [
    (kind, our_class, seed)
    for kind, twin in ENCODER_TWINS.items()
    for our_class in twin.heads
    for seed in range(6 if our_class == "AttnBertForMaskedLM" else 2)
]


def random_model(kind, our_class, seed, **options):
    """A model of transformers in evaluation mode, of which every tensor is random."""
    model_class = getattr(transformers, ENCODER_TWINS[kind].heads[our_class][0])
    drawn = {name: random.Random(f"{name}{seed}").choice(choices) for name, choices in CHOICES[kind].items()}
    config = model_class.config_class(**{"vocab_size": VOCABULARY} | drawn | options)
    model = model_class._from_config(config, attn_implementation="eager").eval()
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, tensor in model.named_parameters():
            tensor.normal_(std=0.3, generator=generator)
            if "norm" in name.lower() and name.endswith("weight"):
                tensor.add_(1.0)
    return model


def imported(theirs):
    """Ours of a model of theirs, without the warning that a classifier's dropout is now that of all."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".* becomes dropout=")
        return import_checkpoint(theirs)[0]


def text_of(model, seed=0, batch=4, length=9):
    """Ids, mask and segments of rows that grow shorter, padded on the right."""
    generator = torch.Generator().manual_seed(seed)
    ids = torch.randint(5, VOCABULARY, (batch, length), generator=generator)
    mask = torch.ones_like(ids)
    for row in range(1, batch):
        mask[row, length - 2 * row :] = 0
    text = {"input_ids": ids.masked_fill(mask == 0, model.config.pad_token_id), "attention_mask": mask}
    segments = getattr(model.config, "type_vocab_size", 0)
    if segments:
        text["token_type_ids"] = torch.randint(segments, ids.shape, generator=generator)
    return text


def labels_of(our_class, text, classes, seed=0):
    """Labels for a text; answers in it begin and end at its first tokens."""
    generator = torch.Generator().manual_seed(seed)
    real, rows = text["attention_mask"].bool(), len(text["input_ids"])
    if our_class == "AttnBertForQuestionAnswering":
        return {"start_positions": torch.tensor([0, 1, 2, 0]), "end_positions": torch.tensor([4, 2, 2, 1])}
    if our_class == "AttnBertForSequenceClassification":
        return {"labels": torch.randint(classes, (rows,), generator=generator)}
    size = {"AttnBertForMaskedLM": VOCABULARY, "AttnBertForReplacedTokenDetection": 2}.get(our_class, classes)
    labels = torch.randint(size, real.shape, generator=generator)
    if our_class == "AttnBertForReplacedTokenDetection":
        return {"labels": labels}  # theirs leave padding out by the mask
    return {"labels": labels.masked_fill(~real, -100)}


@pytest.mark.parametrize("implementation", ["eager", "sdpa"])
@pytest.mark.parametrize(("kind", "our_class", "seed"), CASES)
def test_states_logits_weights_loss_and_gradients_are_equal(kind, our_class, seed, implementation):
    classes = 2 if our_class == "AttnBertForQuestionAnswering" else 3
    theirs = random_model(kind, our_class, seed, num_labels=classes)
    ours = imported(theirs)
    assert type(ours).__name__ == our_class
    ours.set_attn_implementation(implementation)
    text = text_of(theirs, seed)
    real = text["attention_mask"].bool()
    wanted = {"output_attentions": True, "output_hidden_states": True}
    expected, got = theirs(**text, **wanted), ours(**text, **wanted)
    for one, other in zip(got.hidden_states, expected.hidden_states, strict=True):
        torch.testing.assert_close(one[real], other[real], **CLOSE)
    for one, other in zip(got.attentions, expected.attentions, strict=True):
        torch.testing.assert_close(one.transpose(1, 2)[real], other.transpose(1, 2)[real], **CLOSE)
    assert got.attentions[0].max() > 0.3, "the weights are all alike"
    for name in ("pooler_output", "logits", "start_logits", "end_logits"):
        one, other = getattr(got, name, None), getattr(expected, name, None)
        assert (one is None) == (other is None), name
        if one is not None:
            at_tokens = one.shape[:2] == real.shape
            torch.testing.assert_close(one[real] if at_tokens else one, other[real] if at_tokens else other, **CLOSE)

    # a loss without labels: every real state, and the pooled vector
    if our_class == "AttnBertModel":
        losses = [(out[0][real].square().mean(), out.get("pooler_output")) for out in (theirs(**text), ours(**text))]
        losses = [loss if pooled is None else loss + pooled.square().mean() for loss, pooled in losses]
    else:
        if our_class == "AttnBertForQuestionAnswering":  # ours choose among real tokens alone
            text = {name: tensor[:1] for name, tensor in text.items()}
        labels = labels_of(our_class, text, 3, seed)
        labels = {name: tensor[: len(text["input_ids"])] for name, tensor in labels.items()}
        losses = [model(**text, **labels).loss for model in (theirs, ours)]
    torch.testing.assert_close(*losses, **CLOSE)
    for loss in losses:
        loss.backward()
    gradients = dict(theirs.named_parameters(remove_duplicate=False))
    for name, parameter in ours.named_parameters():
        other = gradients[place_of(ENCODER_TWINS[kind], our_class, name, gradients).name].grad
        mine = parameter.grad
        if other is None or mine is None:
            assert mine is None or not mine.any(), name
            continue
        torch.testing.assert_close(mine, other, atol=1e-5, rtol=1e-4, msg=partial("{}: {}".format, name))


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("kind", ENCODER_TWINS)
def test_padding_on_the_left_changes_nothing_if_theirs_is_told_the_positions(kind, seed):
    theirs = random_model(kind, "AttnBertForMaskedLM", seed)
    ours, _ = import_checkpoint(theirs)
    text = {name: tensor.flip(1) for name, tensor in text_of(theirs, seed).items()}
    labels = labels_of("AttnBertForMaskedLM", text, 3, seed)
    real, wanted = text["attention_mask"].bool(), {"output_attentions": True}
    positions = (text["attention_mask"].cumsum(dim=1) - 1).clamp(min=0) + ours.config.position_offset
    expected = theirs(**text, **labels, **wanted, position_ids=positions)
    for implementation in ("eager", "sdpa"):
        ours.set_attn_implementation(implementation)
        got = ours(**text, **labels, **wanted)
        torch.testing.assert_close(got.logits[real], expected.logits[real], **CLOSE)
        torch.testing.assert_close(got.loss, expected.loss, **CLOSE)
        for one, other in zip(got.attentions, expected.attentions, strict=True):
            torch.testing.assert_close(one.transpose(1, 2)[real], other.transpose(1, 2)[real], **CLOSE)


@pytest.mark.parametrize("kind", ENCODER_TWINS)
def test_two_hundred_updates_are_equal(kind):
    still = {"dropout": 0.0, "attention_dropout": 0.0} if kind == "distilbert" else {}
    still = still or {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    theirs = random_model(kind, "AttnBertForMaskedLM", 1, **still).double()
    ours, _ = import_checkpoint(theirs)
    batches = [text_of(theirs, seed) for seed in range(4)]
    batches = [text | labels_of("AttnBertForMaskedLM", text, 3, seed) for seed, text in enumerate(batches)]
    optimizers = [torch.optim.Adam(model.train().parameters(), lr=1e-3) for model in (theirs, ours)]
    losses = []
    for step in range(200):
        losses.append([])
        for model, optimizer in zip((theirs, ours), optimizers, strict=True):
            loss = model(**batches[step % 4]).loss
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses[-1].append(loss.item())
    losses = torch.tensor(losses)
    assert losses[-1, 0] < 0.7 * losses[0, 0]  # it learned something
    assert (losses[:, 0] - losses[:, 1]).abs().max() < 1e-4
    state = theirs.state_dict()
    for name, tensor in ours.state_dict().items():
        other = state[place_of(ENCODER_TWINS[kind], "AttnBertForMaskedLM", name, state).name]
        torch.testing.assert_close(tensor, other, atol=1e-4, rtol=0, msg=partial("{}: {}".format, name))


@pytest.mark.parametrize(("kind", "our_class", "seed"), CASES)
def test_there_and_back_nothing_changes(kind, our_class, seed, tmp_path):
    labels = {"id2label": {0: "no", 1: "yes"}, "problem_type": "single_label_classification"}
    theirs = random_model(kind, our_class, seed, **labels)
    ours = imported(theirs)
    back, _ = export_checkpoint(ours, tmp_path, model_type=None if seed else kind)
    assert type(back) is type(theirs)
    opened = type(theirs).from_pretrained(tmp_path)
    state, twin = theirs.state_dict(), ENCODER_TWINS[kind]
    assert opened.state_dict().keys() == state.keys()
    for name, tensor in opened.state_dict().items():
        assert torch.equal(tensor, state[twin.copies.get(name, name)]), name  # a copy that is untied, nothing reads
    for field in dataclasses.fields(theirs.config):
        if field.name not in {"dtype", "transformers_version", "architectures"} | CLASSIFIER_DROPOUTS:
            assert getattr(opened.config, field.name) == getattr(theirs.config, field.name), field.name
    again = imported(opened)
    assert option_values(again.config) == option_values(ours.config)
    assert again.config.id2label == ours.config.id2label == labels["id2label"]
    for name, tensor in ours.state_dict().items():
        assert torch.equal(again.state_dict()[name], tensor), name


@pytest.mark.parametrize("kind", ENCODER_TWINS)
def test_a_table_has_every_field_of_the_configuration(kind):
    twin = ENCODER_TWINS[kind]
    theirs = {field.name for field in dataclasses.fields(transformers.AutoConfig.for_model(kind))}
    theirs -= {field.name for field in dataclasses.fields(transformers.PreTrainedConfig)}
    said = {*twin.fields.values(), *twin.converted.values(), *twin.required, *twin.ignored}
    assert theirs - said <= {"use_cache", *twin.classifier_dropout.values(), "classifier_dropout_prob"}
    assert {*twin.fields, *twin.fixed, *twin.converted} <= option_values(AttnBertConfig()).keys()


@pytest.mark.parametrize("kind", ["bert", "roberta", "albert"])
def test_a_model_without_a_pooler_stays_without(kind, tmp_path):
    config = random_model(kind, "AttnBertModel", 0).config
    theirs = getattr(transformers, ENCODER_TWINS[kind].heads["AttnBertModel"][0])(config, add_pooling_layer=False)
    theirs.save_pretrained(tmp_path / "theirs")
    for source in (theirs, tmp_path / "theirs"):
        ours, _ = import_checkpoint(source, tokenizer=())
        assert ours.pooler is None and not ours.config.use_pooler
    back, _ = export_checkpoint(ours)
    assert back.state_dict().keys() == theirs.state_dict().keys()
    assert all(torch.equal(back.state_dict()[name], tensor) for name, tensor in theirs.state_dict().items())


SMALL = {"vocab_size": 43, "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 20}


@pytest.mark.parametrize(
    ("kind", "our_class", "options"),
    [
        ("bert", "AttnBertForMaskedLM", {"layer_norm_eps": None, "pooler_activation": "relu", "use_pooler": False}),
        ("roberta", "AttnBertForSequenceClassification", {"position_offset": 1, "type_vocab_size": 1}),
        ("albert", "AttnBertModel", {"share_layers": True, "embedding_size": 8}),
        ("electra", "AttnBertForReplacedTokenDetection", {"use_pooler": False}),
        ("electra", "AttnBertForMaskedLM", {"embedding_size": 8, "use_pooler": False}),
        ("distilbert", "AttnBertForTokenClassification", {"type_vocab_size": 0, "use_pooler": False}),
        ("distilbert", "AttnBertModel", {"type_vocab_size": 0, "use_pooler": False}),
    ],
)
def test_the_class_is_chosen_by_the_configuration(kind, our_class, options, tmp_path):
    ours = getattr(modeling_attn_bert, our_class)(AttnBertConfig(**SMALL | options)).eval()
    theirs, _ = export_checkpoint(ours, tmp_path)
    assert type(theirs).__name__ == ENCODER_TWINS[kind].heads[our_class][0]
    text = {"input_ids": torch.tensor([[5, 6, 7, 2]])}
    torch.testing.assert_close(theirs(**text)[0], ours(**text)[0], **CLOSE)
    again = imported(theirs)
    assert all(torch.equal(again.state_dict()[name], tensor) for name, tensor in ours.state_dict().items())


@pytest.mark.parametrize(
    ("kind", "options", "obstacle"),
    [
        ("bert", {"position_type": "rotary"}, r"position_type='rotary' \(it must be 'learned'\)"),
        ("bert", {"norm_first": True}, r"norm_first=True \(it must be False\)"),
        ("bert", {"embedding_size": 8, "activation_function": "relu"}, r"embedding_size=8 \(it must be None\)"),
        ("roberta", {"position_offset": 3}, r"position_offset=3 \(it must be pad_token_id \+ 1 = 1\)"),
        (
            "roberta",
            {"position_offset": 1, "activation_function": "relu"},
            r"activation_function='relu' \(it must be 'g",
        ),
        ("albert", {"share_layers": True}, r"embedding_size=None \(it must differ from hidden_size\)"),
        ("electra", {"embedding_size": 8, "norm_type": "rms"}, r"norm_type='rms' \(it must be 'layer'\)"),
        ("distilbert", {"type_vocab_size": 0, "layer_norm_eps": 1e-5}, "layer_norm_eps=None"),
    ],
)
def test_an_option_without_a_twin_is_named(kind, options, obstacle, tmp_path):
    ours = AttnBertForMaskedLM(AttnBertConfig(**SMALL | options))
    with pytest.raises(ValueError, match=f"no model of transformers does what this one does; .*{obstacle}"):
        export_checkpoint(ours, tmp_path / "theirs")
    with pytest.raises(ValueError, match=f"in the way of {kind}: [^;]*{obstacle}[^;]*$"):
        export_checkpoint(ours, tmp_path / "theirs", model_type=kind)
    assert not (tmp_path / "theirs").exists()
    headless = AttnBertModel(AttnBertConfig(**SMALL, pooler_activation="relu"))
    with pytest.raises(ValueError, match=r"in the way of bert: pooler_activation='relu' \(it must be 'tanh'\)"):
        export_checkpoint(headless)


def test_a_dropout_of_a_classifier_alone_is_named():
    theirs = random_model("bert", "AttnBertForSequenceClassification", 0, classifier_dropout=0.4)
    with pytest.warns(UserWarning, match="classifier_dropout=0.4 becomes dropout=0.1, as elsewhere"):
        import_checkpoint(theirs)


@pytest.mark.parametrize("kind", ENCODER_TWINS)
def test_a_saved_checkpoint_is_imported_with_its_own_class_and_dtype(kind, tmp_path):
    for our_class in ("AttnBertModel", "AttnBertForMaskedLM"):
        theirs = random_model(kind, our_class, 0).to(torch.bfloat16)
        theirs.save_pretrained(tmp_path / our_class)
        with pytest.warns(UserWarning, match="has no tokenizer"):
            ours, tokenizer = import_checkpoint(tmp_path / our_class, tmp_path / f"ours-{our_class}")
        assert type(ours).__name__ == our_class and tokenizer is None and ours.dtype == torch.bfloat16
        again = type(ours).from_pretrained(tmp_path / f"ours-{our_class}")
        text = text_of(theirs)
        assert torch.equal(again(**text)[0], ours(**text)[0])


def test_what_a_checkpoint_brings_along_for_other_tasks_is_left_out_by_name(tmp_path):
    config = random_model("bert", "AttnBertModel", 0).config
    theirs = transformers.BertForPreTraining(config)
    theirs.save_pretrained(tmp_path)
    with pytest.warns(UserWarning) as warned:
        ours, _ = import_checkpoint(tmp_path)
    assert any("left out: bert.pooler.dense.bias" in str(one.message) for one in warned)
    text = text_of(theirs)
    real = text["attention_mask"].bool()
    expected = theirs.eval()(**text).prediction_logits[real]
    torch.testing.assert_close(ours(**text).logits[real], expected, **CLOSE)


@pytest.mark.parametrize(
    ("kind", "our_class", "options", "message"),
    [
        ("bert", "AttnBertModel", {"is_decoder": True}, r"is_decoder=True \(it must be False\)"),
        ("roberta", "AttnBertForMaskedLM", {"hidden_act": "relu"}, r"hidden_act='relu' \(it must be 'gelu'\)"),
        ("albert", "AttnBertModel", {"num_hidden_groups": 2}, r"num_hidden_groups=2 \(it must be 1\)"),
        ("albert", "AttnBertModel", {"embedding_size": 16, "hidden_size": 16}, "unknown: encoder.embedding_hidden"),
        ("distilbert", "AttnBertModel", {"sinusoidal_pos_embds": True}, r"sinusoidal_pos_embds=True \(it must"),
    ],
)
def test_what_has_no_counterpart_is_named(kind, our_class, options, message):
    with pytest.raises(ValueError, match=message):
        import_checkpoint(random_model(kind, our_class, 0, **options))
    with pytest.raises(ValueError, match="BertForNextSentencePrediction, which has no twin here; .*BertModel"):
        import_checkpoint(transformers.BertForNextSentencePrediction(random_model("bert", "AttnBertModel", 0).config))
