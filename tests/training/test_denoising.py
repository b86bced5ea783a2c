"""Denoising collators: what they take away comes back exactly, by the papers' numbers, the same in every run."""

import collections
import doctest
import itertools
import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.utils.data import DataLoader
from transformers import Seq2SeqTrainer, Seq2SeqTrainingArguments

from hf_attn.data import phrasebook, train_tokenizer
from hf_attn.models.configuration_attn_transformer import AttnTransformerConfig
from hf_attn.models.modeling_attn_transformer import AttnTransformerForConditionalGeneration
from hf_attn.training import DenoisingCollator, SpanCorruptionCollator, denoising

TEXTS = [text for pair in phrasebook("en-it", "train", size=40)["translation"] for text in pair.values()]
TOKENIZER = train_tokenizer(TEXTS, 400, mask_token=True, sentinels=30)
PLAIN = train_tokenizer(TEXTS, 300)
MASK, EOS, BOS = TOKENIZER.mask_token_id, TOKENIZER.eos_token_id, TOKENIZER.bos_token_id
SENTINELS = TOKENIZER.convert_tokens_to_ids([f"<extra_id_{n}>" for n in range(30)])
WORDS = [number for number in range(4, 360) if TOKENIZER.convert_ids_to_tokens(number) != "."]
ROWS = st.lists(st.sampled_from(WORDS), max_size=40, unique=True)  # each piece once, so that its place is known


def rows_of(collator, *rows):
    """The inputs and targets of a batch, without their padding."""
    batch = collator([{"input_ids": row} for row in rows])
    assert torch.equal(batch["attention_mask"] == 0, batch["input_ids"] == TOKENIZER.pad_token_id)
    sources = [ids[mask == 1].tolist() for ids, mask in zip(batch["input_ids"], batch["attention_mask"], strict=True)]
    return sources, [label[label != -100].tolist() for label in batch["labels"]]


def gaps(source, text):
    """For each stretch between pieces that stayed: how many masks it has, and how many pieces are missing."""
    found, masks, place = [], 0, 0
    for token in [*source, None]:
        if token == MASK:
            masks += 1
            continue
        here = len(text) if token is None else text.index(token)
        assert here >= place
        found.append((masks, here - place))
        masks, place = 0, here + 1
    return found


@settings(max_examples=80, deadline=None)
@given(rows=st.lists(ROWS, min_size=1, max_size=4), ratio=st.sampled_from([0.0, 0.3, 0.5, 1.0]), seed=st.integers(0, 9))
def test_masks_filled_with_what_is_missing_give_the_text(rows, ratio, seed):
    sources, targets = rows_of(DenoisingCollator(TOKENIZER, ratio=ratio, seed=seed), *rows)
    for row, source, target in zip(rows, sources, targets, strict=True):
        assert target == [*row, EOS] and source[-1] == EOS
        found = gaps(source[:-1], row)
        assert sum(missing for _, missing in found) == math.ceil(ratio * len(row))
        assert all(masks for masks, missing in found if missing)  # nothing is gone without a mask
        assert ratio or source == target


def test_spans_have_the_lengths_of_a_poisson_distribution():
    """Lengths are seen where one mask stands alone; those between two masks only as a sum."""
    tokenizer = train_tokenizer([f"word{n}" for n in range(6000)], 6100, kind="word", mask_token=True)
    row = tokenizer(" ".join(f"word{n}" for n in range(6000))).input_ids[:-1]
    assert len(set(row)) == 6000
    (source,) = DenoisingCollator(tokenizer)([{"input_ids": row}])["input_ids"].tolist()
    source = [MASK if token == tokenizer.mask_token_id else token for token in source[:-1]]
    spans = source.count(MASK)
    assert spans == pytest.approx(1800 / 3, abs=3 * math.sqrt(600 / 3))
    lengths = collections.Counter(missing for masks, missing in gaps(source, row) if masks == 1)
    alone = sum(lengths.values())
    for length in range(8):
        share = math.exp(-3) * 3**length / math.factorial(length)
        assert lengths[length] == pytest.approx(alone * share, abs=4 * math.sqrt(alone * share))


@pytest.mark.parametrize("noise", ["masking", "deletion"])
def test_single_pieces_are_masked_or_left_out(noise):
    row = WORDS[:21]
    (source,), (target,) = rows_of(DenoisingCollator(TOKENIZER, noise=noise, permute_sentences=False), row)
    assert target == [*row, EOS]
    if noise == "masking":
        assert source.count(MASK) == 7  # 6.3, rounded up
        assert all(one in (MASK, two) for one, two in zip(source, target, strict=True))
    else:
        assert source == [token for token in target if token in source] and len(source) == 22 - 7


def test_sentences_are_shuffled_behind_their_full_stops():
    text = "The man reads. The girl sleeps now. And"
    ids = TOKENIZER(text).input_ids
    stop = TOKENIZER.convert_tokens_to_ids(".")
    first, second = (place + 1 for place, token in enumerate(ids) if token == stop)
    parts = (tuple(ids[:first]), tuple(ids[first:second]), tuple(ids[second:-1]))
    orders = {order: sum((parts[number] for number in order), ()) for order in itertools.permutations(range(3))}
    seen = set()
    for seed in range(60):
        (source,), (target,) = rows_of(DenoisingCollator(TOKENIZER, noise=None, seed=seed), ids)
        assert target == ids
        (order,) = (order for order, expected in orders.items() if [*expected, EOS] == source)
        seen.add(order)
    assert len(seen) == 6


def test_special_tokens_stay_where_they_are():
    row = [BOS, *WORDS[:10], EOS, BOS, *WORDS[10:20], EOS]
    for collator in (DenoisingCollator(TOKENIZER, ratio=1.0), SpanCorruptionCollator(TOKENIZER, noise_density=0.9)):
        (source,), _ = rows_of(collator, row)
        kept = [token for token in source if token in (BOS, EOS)]
        assert kept == [BOS, EOS, BOS, EOS] and source[0] == BOS and source[-1] == EOS
    (source,), (target,) = rows_of(SpanCorruptionCollator(TOKENIZER, noise_density=0.9), row)
    assert not {BOS} & set(target) and target.count(EOS) == 1


def restored(source, target):
    """The input with each sentinel replaced by what follows it in the target."""
    spans = collections.defaultdict(list)
    for token in target[:-1]:
        if token in SENTINELS:
            current = spans[token]
        else:
            current.append(token)
    return [one for token in source for one in (spans[token] if token in SENTINELS else [token])]


@settings(max_examples=80, deadline=None)
@given(
    rows=st.lists(ROWS, min_size=1, max_size=4), density=st.sampled_from([0.15, 0.5, 0.85]),
    mean_span=st.sampled_from([1.0, 3.0]), random_roll=st.booleans(), seed=st.integers(0, 9),
)  # fmt: skip
def test_input_and_target_together_are_the_text(rows, density, mean_span, random_roll, seed):
    collator = SpanCorruptionCollator(
        TOKENIZER, noise_density=density, mean_span=mean_span, random_roll=random_roll, seed=seed
    )
    sources, targets = rows_of(collator, *rows)
    for row, source, target in zip(rows, sources, targets, strict=True):
        assert restored(source, target) == [*row, EOS]
        spans = [token for token in source if token in SENTINELS]
        assert spans == SENTINELS[: len(spans)]  # in the order of their names
        assert [token for token in target if token in SENTINELS] == SENTINELS[: len(spans) + 1]
        assert target[-2:] == [SENTINELS[len(spans)], EOS]
        if len(row) < 2:
            assert spans == []
            continue
        # T5's arithmetic: random_spans_noise_mask of its preprocessors
        noise = min(max(int(np.round(len(row) * density)), 1), len(row) - 1)
        assert len(target) == noise + len(spans) + 2
        count = min(max(int(np.round(noise / mean_span)), 1), len(row) - noise)
        around = random_roll and SENTINELS[0] == source[0] and source[-2] == spans[-1]  # one span became two
        assert len(spans) == count + around
        assert random_roll or (source[0] == row[0] and source[-2] == spans[-1])  # from text to a span
        assert not any(one in SENTINELS and two in SENTINELS for one, two in zip(source, source[1:], strict=False))


def test_a_rolled_span_is_anywhere_and_one_that_is_not_is_the_end():
    row = WORDS[:10]  # of which two are taken
    for random_roll, expected in ((True, {(n, (n + 1) % 10) for n in range(10)}), (False, {(8, 9)})):
        taken = set()
        for seed in range(100):
            collator = SpanCorruptionCollator(TOKENIZER, random_roll=random_roll, seed=seed)
            (source,), _ = rows_of(collator, row)
            taken.add(frozenset(place for place, token in enumerate(row) if token not in source))
        assert taken == {frozenset(pair) for pair in expected}


def test_every_way_to_cut_a_length_is_as_likely():
    random = np.random.default_rng(0)
    counts = collections.Counter(tuple(SpanCorruptionCollator.cut(5, 3, random)) for _ in range(6000))
    ways = [(a, b, 5 - a - b) for a in range(1, 4) for b in range(1, 5 - a)]
    assert sorted(counts) == sorted(ways) and len(ways) == 6
    assert all(abs(count - 1000) < 5 * math.sqrt(1000 * 5 / 6) for count in counts.values())
    assert SpanCorruptionCollator.cut(4, 4, random) == [1, 1, 1, 1] and SpanCorruptionCollator.cut(4, 1, random) == [4]


def test_the_example_of_the_paper():
    """Figure 2 of T5."""
    text = "Thank you for inviting me to your party last week"
    tokenizer = train_tokenizer([text], 20, kind="word", sentinels=3)
    collator = SpanCorruptionCollator(tokenizer)
    collator.segments = lambda length, random: [(2, 2), (4, 1), (1, 0)]
    batch = collator([{"input_ids": tokenizer(text).input_ids}])
    plain = [" ".join(tokenizer.convert_ids_to_tokens(batch[name][0])) for name in ("input_ids", "labels")]
    assert plain[0].replace("▁", "") == "Thank you <extra_id_0> me to your party <extra_id_1> week </s>"
    assert plain[1].replace("▁", "") == "<extra_id_0> for inviting <extra_id_1> last <extra_id_2> </s>"


@pytest.mark.parametrize("make", [DenoisingCollator, SpanCorruptionCollator])
def test_empty_rows_and_rows_of_one_piece(make):
    sources, targets = rows_of(make(TOKENIZER), [], [EOS], [7], [7, EOS], [7, 8])
    assert sources[:2] == [[EOS], [EOS]]
    if make is DenoisingCollator:
        assert targets == [[EOS], [EOS], [7, EOS], [7, EOS], [7, 8, EOS]]
        assert MASK in sources[2] and 7 not in sources[2] + sources[3]
    else:
        assert targets[:4] == [[SENTINELS[0], EOS]] * 4 and sources[2:4] == [[7, EOS]] * 2
        assert restored(sources[4], targets[4]) == [7, 8, EOS] and len(targets[4]) == 4


@pytest.mark.parametrize("make", [DenoisingCollator, SpanCorruptionCollator])
@pytest.mark.parametrize("side", ["left", "right"])
def test_padding_of_a_row_is_neither_read_nor_written(make, side):
    rows = [TOKENIZER(text).input_ids for text in TEXTS[:4]] + [[]]
    padded = TOKENIZER.pad({"input_ids": rows}, padding="max_length", max_length=60, padding_side=side)["input_ids"]
    assert {len(row) for row in padded} == {60}
    assert rows_of(make(TOKENIZER), *padded) == rows_of(make(TOKENIZER), *rows)


@pytest.mark.parametrize("make", [DenoisingCollator, SpanCorruptionCollator])
def test_noise_depends_on_the_seed_and_the_batch_alone(make):
    rows = [{"input_ids": TOKENIZER(text).input_ids} for text in TEXTS[:12]]
    batches = [list(DataLoader(rows, batch_size=4, collate_fn=make(TOKENIZER), num_workers=n)) for n in (0, 2)]
    collator = make(TOKENIZER)
    batches.append([collator(rows[first : first + 4]) for first in (8, 4, 0)][::-1])  # as if resumed, in any order
    for some in zip(*batches, strict=True):
        for name in ("input_ids", "attention_mask", "labels"):
            assert all(torch.equal(batch[name], some[0][name]) for batch in some)
    ids = [row["input_ids"] for row in rows]
    sources, _ = rows_of(collator, *ids)
    assert rows_of(make(TOKENIZER, seed=1), *ids)[0] != sources
    assert rows_of(collator, *ids[:6])[0] != sources[:6]


@pytest.mark.parametrize("make", [DenoisingCollator, SpanCorruptionCollator])
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_a_small_transformer_learns(make, smoothing, tmp_path):
    torch.manual_seed(0)
    config = AttnTransformerConfig(
        vocab_size=len(TOKENIZER), hidden_size=32, encoder_layers=1, decoder_layers=1, encoder_attention_heads=2,
        decoder_attention_heads=2, encoder_intermediate_size=32, decoder_intermediate_size=32, dropout=0.0,
        norm_first=True,
    )  # fmt: skip
    model = AttnTransformerForConditionalGeneration(config)
    rows = [{"input_ids": TOKENIZER(text).input_ids} for text in TEXTS[:32]]
    args = Seq2SeqTrainingArguments(
        output_dir=str(tmp_path), use_cpu=True, disable_tqdm=True, save_strategy="no", report_to=[], max_steps=25,
        learning_rate=1e-2, lr_scheduler_type="constant", label_smoothing_factor=smoothing, prediction_loss_only=True,
        per_device_train_batch_size=16, per_device_eval_batch_size=32,
    )  # fmt: skip
    trainer = Seq2SeqTrainer(
        model=model, args=args, train_dataset=rows, eval_dataset=rows, data_collator=make(TOKENIZER, model)
    )
    before = trainer.evaluate()["eval_loss"]
    assert trainer.evaluate()["eval_loss"] == before  # the same noise in every evaluation
    trainer.train()
    assert trainer.evaluate()["eval_loss"] < 0.7 * before


def test_the_example_of_the_module_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = {}
    examples = doctest.DocTestParser().get_examples(denoising.__doc__)
    for example in examples[:-1]:
        exec(example.source, names)
    assert str(eval(examples[-1].source, names)) == examples[-1].want.strip()


@pytest.mark.parametrize(
    ("make", "options", "message"),
    [
        (lambda **o: DenoisingCollator(PLAIN, **o), {}, "needs a mask token: give mask_token_id"),
        (lambda **o: SpanCorruptionCollator(PLAIN, **o), {}, "sentinel_ids is missing"),
        (lambda **o: DenoisingCollator(TOKENIZER, **o), {"noise": "rotation"}, "noise must be 'infilling'"),
        (lambda **o: DenoisingCollator(TOKENIZER, **o), {"ratio": 1.1}, "ratio must be from 0 to 1, got 1.1"),
        (lambda **o: DenoisingCollator(TOKENIZER, **o), {"mean_span": 0}, "must be more than 0 and finite, got 0"),
        (lambda **o: DenoisingCollator(TOKENIZER, **o), {"mean_span": math.inf}, "more than 0 and finite, got inf"),
        (lambda **o: DenoisingCollator(TOKENIZER, **o), {"seed": -1}, "seed must be a whole number"),
        (lambda **o: SpanCorruptionCollator(TOKENIZER, **o), {"noise_density": 1.0}, "noise_density must be between"),
        (lambda **o: SpanCorruptionCollator(TOKENIZER, **o), {"mean_span": 0.5}, "mean_span must be 1 or more"),
    ],
)
def test_what_cannot_work_is_refused(make, options, message):
    with pytest.raises(ValueError, match=message):
        make(**options)


def test_ids_of_the_user_stand_in_and_too_few_sentinels_are_named():
    (source,), _ = rows_of(DenoisingCollator(PLAIN, mask_token_id=5, ratio=0.9), list(range(10, 30)))
    assert 5 in source
    collator = SpanCorruptionCollator(PLAIN, sentinel_ids=[5, 6, 7])
    _, (target,) = rows_of(collator, list(range(10, 30)))
    assert target[0] == 5 and target[-1] == EOS
    with pytest.raises(ValueError, match="a row of 61 tokens needs more than the 3 sentinels"):
        collator([{"input_ids": list(range(10, 70))}])
