"""The alignment loss against explicit loops, links of words and pieces, and the Trainer that adds it to the loss."""

import math

import pytest
import torch
from datasets import Dataset
from transformers import DataCollatorForSeq2Seq, MarianConfig, Seq2SeqTrainingArguments

from hf_attn.data import piece_spans, split_words, tokenize_pairs, train_tokenizer
from hf_attn.models.configuration_attn_rnn import AttnRnnConfig
from hf_attn.models.configuration_attn_transformer import AttnTransformerConfig
from hf_attn.models.modeling_attn_rnn import AttnRnnForConditionalGeneration
from hf_attn.models.modeling_attn_transformer import AttnTransformerForConditionalGeneration
from hf_attn.training import AlignmentTrainer, add_links, supervise_alignment
from hf_attn.training.objectives import AlignmentCollator, AlignmentSupervision, alignment_loss

PAIRS = [  # links: [source word, target word]
    ("The cat sleeps.", "Il gatto dorme.", [[0, 0], [1, 1], [2, 2], [3, 3]]),
    ("I don't see the red house.", "Non vedo la casa rossa.", [[1, 0], [2, 1], [3, 2], [5, 3], [4, 4], [6, 5]]),
    ("We go to school.", "우리는 학교에 간다.", [[0, 0], [3, 1], [2, 1], [1, 2], [4, 3]]),
    ("Yes!", "Sì!", []),
]


@pytest.mark.parametrize("shifted", [False, True])
def test_loss_is_the_sum_over_linked_pieces(shifted):
    torch.manual_seed(0)
    attention = torch.rand(2, 4, 3).softmax(dim=-1)
    links = torch.zeros(2, 4, 3)
    links[0, 0, 1], links[0, 2, 0], links[0, 2, 2], links[1, 1, 2] = 1.0, 0.5, 0.5, 1.0
    expected = 0.0
    for sentence in range(2):
        for target in range(4):
            for source in range(3):
                share = float(links[sentence, target, source])
                if share:
                    row = target + 1 if shifted else target
                    expected -= share * math.log(float(attention[sentence, row, source]))
    assert float(alignment_loss(attention, links, shifted)) == pytest.approx(expected, rel=1e-5)
    attention[0, 0] = torch.tensor([1.0, 0.0, 0.0])
    attention[0, 1] = torch.tensor([1.0, 0.0, 0.0])
    assert math.isfinite(float(alignment_loss(attention.bfloat16(), links, shifted)))


def linked_dataset(tokenizer, rows=PAIRS, **options):
    pairs = Dataset.from_list([{"translation": {"en": source, "xx": target}} for source, target, _ in rows])
    tokenized = tokenize_pairs(pairs, tokenizer, "en", "xx", **options)
    return add_links(tokenized, [row[:2] for row in rows], [row[2] for row in rows], tokenizer)


@pytest.mark.parametrize(("kind", "longest"), [("bpe", None), ("bpe", 8), ("word", None), ("word", 5)])
def test_pieces_are_linked_where_their_words_are(kind, longest):
    tokenizer = train_tokenizer([text for row in PAIRS for text in row[:2]], 420, kind=kind)
    if longest:
        with pytest.warns(UserWarning, match="were cut"):
            dataset = linked_dataset(tokenizer, max_source_length=longest, max_target_length=longest)
    else:
        dataset = linked_dataset(tokenizer)
    several = 0
    for row, (source, target, links) in zip(dataset, PAIRS, strict=True):
        words = {}
        for name, text, ids in (("source", source, row["input_ids"]), ("target", target, row["labels"])):
            spans = piece_spans(tokenizer, text, ids[:-1])  # all but "</s>"
            # a piece lies in the word of its last character; a lone "▁" in the word that follows
            ends = [end for _, end in split_words(text)]
            words[name] = [next(word for word, end in enumerate(ends) if last <= end) for _, last in spans]
        expected = [
            [i, j]
            for i, of_target in enumerate(words["target"])
            for j, of_source in enumerate(words["source"])
            if [of_source, of_target] in links
        ]
        assert row["alignment"] == expected
        several += len(expected) > len(links)
    assert dataset[3]["alignment"] == []
    assert (several > 0) == (kind == "bpe")


def test_collator_spreads_a_link_over_the_pieces_of_a_word():
    tokenizer = train_tokenizer([text for row in PAIRS for text in row[:2]], 300)
    dataset = linked_dataset(tokenizer)
    batch = AlignmentCollator(DataCollatorForSeq2Seq(tokenizer))([dataset[number] for number in range(4)])
    assert batch["alignment"].shape == (4, batch["labels"].shape[1], batch["input_ids"].shape[1])
    for number in range(4):
        for target in range(batch["labels"].shape[1]):
            linked = [source for row, source in dataset[number]["alignment"] if row == target]
            for source in range(batch["input_ids"].shape[1]):
                expected = 1 / len(linked) if source in linked else 0.0
                assert float(batch["alignment"][number, target, source]) == pytest.approx(expected)
    plain = dataset.remove_columns("alignment")
    without = AlignmentCollator(DataCollatorForSeq2Seq(tokenizer))([plain[number] for number in range(4)])
    assert "alignment" not in without and torch.equal(without["labels"], batch["labels"])


def make_model(name, vocab_size, **options):
    torch.manual_seed(1)
    if name == "transformer":
        config = AttnTransformerConfig(
            vocab_size=vocab_size, hidden_size=16, encoder_layers=1, decoder_layers=3, encoder_attention_heads=2,
            decoder_attention_heads=2, encoder_intermediate_size=16, decoder_intermediate_size=16, dropout=0.0,
            attn_implementation="sdpa", **options,
        )  # fmt: skip
        return AttnTransformerForConditionalGeneration(config)
    config = AttnRnnConfig(vocab_size=vocab_size, hidden_size=16, dropout=0.0, attention_type=name, **options)
    return AttnRnnForConditionalGeneration(config)


def make_trainer(folder, model, dataset, tokenizer, supervision, **arguments):
    args = Seq2SeqTrainingArguments(
        output_dir=str(folder), use_cpu=True, disable_tqdm=True, save_strategy="no", report_to=[], **arguments
    )
    return AlignmentTrainer(
        model=model, args=args, train_dataset=dataset, eval_dataset=dataset.remove_columns("alignment"),
        data_collator=DataCollatorForSeq2Seq(tokenizer, model=model), processing_class=tokenizer, tokens_per_batch=40,
        supervision=supervision,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("name", "options", "smoothing"),
    [
        ("transformer", {"alignment_method": "weights"}, 0.1),
        ("transformer", {"alignment_method": "shifted", "alignment_layer": 2, "alignment_heads": [1]}, 0.0),
        ("bahdanau", {}, 0.1),
        ("luong", {"alignment_method": "shifted"}, 0.0),
    ],
)
def test_accumulated_steps_equal_the_gradient_of_the_whole_loss(tmp_path, name, options, smoothing):
    tokenizer = train_tokenizer([text for row in PAIRS for text in row[:2]], 300)
    dataset = linked_dataset(tokenizer, PAIRS * 3)
    model = make_model(name, len(tokenizer), **options)
    weights = {key: tensor.clone() for key, tensor in model.state_dict().items()}
    supervision = supervise_alignment(model.config, weight=0.7)
    trainer = make_trainer(
        tmp_path, model, dataset, tokenizer, supervision, max_steps=1, gradient_accumulation_steps=3, optim="sgd",
        label_smoothing_factor=smoothing, learning_rate=1.0, max_grad_norm=0.0, lr_scheduler_type="constant",
    )  # fmt: skip
    batches = [batch for batch, _ in zip(trainer.get_train_dataloader(), range(3), strict=False)]
    assert len({int((batch["labels"] != -100).sum()) for batch in batches}) > 1  # unequal: a mean of means would differ
    trainer.train()

    reference = make_model(name, len(tokenizer), **options)
    reference.load_state_dict(weights)
    total, tokens = 0.0, 0
    for batch in batches:
        links = batch.pop("alignment")
        out = reference(**batch, output_attentions=True)
        total = total + torch.nn.functional.cross_entropy(
            out.logits.transpose(1, 2), batch["labels"], label_smoothing=smoothing, reduction="sum"
        )
        attention = out.cross_attentions[supervision.layer][:, supervision.head]
        for sentence, target, source in links.nonzero().tolist():
            weight = attention[sentence, target + supervision.shifted, source]
            total = total - 0.7 * links[sentence, target, source] * weight.log()
        tokens += int((batch["labels"] != -100).sum())
    (total / tokens).backward()
    for (key, parameter), actual in zip(reference.named_parameters(), model.parameters(), strict=True):
        if parameter.grad is not None:
            assert torch.allclose(actual, parameter.detach() - parameter.grad, rtol=1e-4, atol=1e-5), key


def test_the_head_learns_the_links_and_evaluation_measures_translation_alone(tmp_path):
    tokenizer = train_tokenizer([text for row in PAIRS for text in row[:2]], 300)
    dataset = linked_dataset(tokenizer, PAIRS)
    model = make_model("transformer", len(tokenizer), alignment_method="shifted")
    supervision = supervise_alignment(model.config, weight=1.0)
    trainer = make_trainer(
        tmp_path,
        model,
        dataset,
        tokenizer,
        supervision,
        max_steps=60,
        learning_rate=1e-2,
        per_device_eval_batch_size=1,
        lr_scheduler_type="constant",
    )

    def share_on_links():
        batch = trainer.data_collator([dataset[number] for number in range(4)])
        links = batch.pop("alignment") > 0
        attention = model.eval()(**batch, output_attentions=True).cross_attentions[1][:, 0]
        return float(attention[:, 1:][links[:, :-1]].detach().sum() / links.any(dim=-1).sum())

    before = share_on_links()
    trainer.train()
    assert before + 0.3 < share_on_links()
    rows = trainer.eval_dataset
    losses = []
    for row in rows:
        labels = torch.tensor([row["labels"]])
        losses.append(float(model(input_ids=torch.tensor([row["input_ids"]]), labels=labels).loss.detach()))
    assert trainer.evaluate()["eval_loss"] == pytest.approx(sum(losses) / len(losses), rel=1e-4)


def test_which_head_is_taught_is_written_into_the_config():
    config = AttnTransformerConfig(decoder_layers=6, alignment_method="weights")
    assert supervise_alignment(config, 0.1) == AlignmentSupervision(4, 0, False, 0.1)
    assert (config.alignment_layer, config.alignment_heads) == (4, [0])
    config = AttnTransformerConfig(decoder_layers=1, alignment_heads=[2], alignment_method="shifted")
    assert supervise_alignment(config) == AlignmentSupervision(0, 2, True, 0.05)
    assert supervise_alignment(AttnRnnConfig()) == AlignmentSupervision(0, 0, False, 0.05)
    assert supervise_alignment(AttnRnnConfig(decoder_layers=3)).layer == 0


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (AttnRnnConfig(attention_type="none"), "needs a model of this package with attention"),
        (MarianConfig(), "needs a model of this package with attention"),
        (AttnTransformerConfig(alignment_method="value_norm"), "alignment_method='value_norm' cannot be supervised"),
        (AttnTransformerConfig(alignment_heads=[0, 1]), r"alignment_heads=\[0, 1\] has several heads"),
    ],
)
def test_what_cannot_be_taught_is_refused(config, message):
    with pytest.raises(ValueError, match=message):
        supervise_alignment(config)
