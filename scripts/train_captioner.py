"""Train a model that describes pictures of shapes: attn-vit reads, attn-gpt writes, with cross-attention between them.

    python scripts/train_captioner.py --output_dir out/captioner

    python scripts/train_captioner.py --train_samples 2000 --max_steps 200 --output_dir out/quick

The pictures come from ``hf_attn.data.shapes``. The first command takes about half an hour on one core and gets 99.6% of
the captions right, 96.0% where a colour and a shape never came together in training; the second, half a minute and too
short to learn more than how captions read. The output folder then holds transformers' ``VisionEncoderDecoderModel``,
tokenizer and image processor (open it with ``hf_attn.inference.Captioner``), and ``all_results.json``: how many
captions are right to the last word, and BLEU, on pictures like those of training (``test``) and on others with colours
and shapes that never came together in training (``compositional``); and how much of the cross-attention of the words
for an object is on the patches that it touches, beside what evenly spread attention would have there. The layer and
head that are best at this are chosen on the validation pictures. Run the same command again to resume from the last
checkpoint.
"""

import json
import sys
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
from datasets import Dataset
from torch.nn.utils.rnn import pad_sequence
from transformers import (
    AutoConfig,
    AutoModel,
    AutoModelForCausalLM,
    AutoTokenizer,
    EvalPrediction,
    HfArgumentParser,
    TrainingArguments,
    ViTImageProcessorPil,
    set_seed,
)

import hf_attn  # noqa: F401  registers the package's models with the Auto classes
from hf_attn.data import shapes, train_tokenizer
from hf_attn.data.shapes import SIDE, SPLITS
from hf_attn.evaluation import bleu_scores
from hf_attn.evaluation.pointing import attention_inside
from hf_attn.inference import Captioner
from hf_attn.models.captioning import AttnCaptioner
from hf_attn.training import ClockCallback, TimeLimitCallback, find_checkpoint
from hf_attn.training.batching import ResumableTrainer
from hf_attn.training.record import write_run

LONGEST = 24  # pieces of a caption, with start and end
DEFAULTS: dict[str, Any] = {
    "do_train": True,
    "do_predict": True,
    "per_device_train_batch_size": 64,
    "per_device_eval_batch_size": 100,
    "learning_rate": 1e-3,
    "lr_scheduler_type": "cosine",
    "warmup_steps": 200,
    "weight_decay": 0.05,
    "num_train_epochs": 3,
    "eval_strategy": "steps",
    "eval_steps": 500,
    "save_steps": 500,
    "save_total_limit": 2,
    "logging_steps": 50,
    "remove_unused_columns": False,
    "label_names": ["labels"],
}


@dataclass
class CaptionerArguments:
    """How large the model is, and on how many pictures it is trained and measured."""

    model_name_or_path: str | None = field(
        default=None,
        metadata={"help": "With --do_train false: trained model to measure; that in output_dir by default."},
    )
    hidden_size: int = field(default=96, metadata={"help": "Width of the states of both parts."})
    encoder_layers: int = field(default=3, metadata={"help": "Layers that read the patches."})
    decoder_layers: int = field(default=2, metadata={"help": "Layers that write the caption."})
    attention_heads: int = field(default=4, metadata={"help": "Heads in each layer."})
    patch_size: int = field(default=8, metadata={"help": "Pixels of a side of a patch."})
    dropout: float = field(default=0.0, metadata={"help": "Dropout of both parts."})
    train_samples: int = field(default=120_000, metadata={"help": "Pictures to train on."})
    validation_samples: int | None = field(
        default=None, metadata={"help": "Pictures to measure on in training; else 500."}
    )
    test_samples: int | None = field(default=None, metadata={"help": "Pictures of each test; else 1,000."})
    num_beams: int = field(default=1, metadata={"help": "Width of the beam search of the tests; 1 is greedy."})
    max_minutes: float | None = field(default=None, metadata={"help": "Stop, evaluate and save after so many minutes."})

    def __post_init__(self):
        for name in ("train_samples", "validation_samples", "test_samples"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise ValueError(f"{name}={value} must be at least 1")


class Collator:
    """Turn rows of pictures and captions into a batch."""

    def __init__(self, tokenizer: Any, image_processor: Any):
        self.tokenizer = tokenizer
        self.image_processor = image_processor

    def __call__(self, rows: list[dict[str, Any]]) -> dict[str, torch.Tensor]:
        ids = self.tokenizer([row["caption"] for row in rows])["input_ids"]
        return {
            "pixel_values": self.image_processor([row["image"] for row in rows], return_tensors="pt")["pixel_values"],
            "labels": pad_sequence([torch.tensor(some) for some in ids], batch_first=True, padding_value=-100),
        }


def make_model(args: CaptionerArguments, tokenizer: Any) -> AttnCaptioner:
    """Join a new encoder of pictures and a new decoder of text."""
    sizes = {
        "hidden_size": args.hidden_size,
        "num_attention_heads": args.attention_heads,
        "intermediate_size": 4 * args.hidden_size,
        "dropout": args.dropout,
    }
    encoder = AutoConfig.for_model(
        "attn-vit",
        image_size=SIDE,
        patch_size=args.patch_size,
        num_hidden_layers=args.encoder_layers,
        position_type="sinusoidal",
        use_pooler=False,
        **sizes,
    )
    decoder = AutoConfig.for_model(
        "attn-gpt",
        vocab_size=len(tokenizer),
        num_hidden_layers=args.decoder_layers,
        max_position_embeddings=LONGEST,
        add_cross_attention=True,
        attention_dropout=0.0,
        **sizes,
    )
    model = AttnCaptioner(encoder=AutoModel.from_config(encoder), decoder=AutoModelForCausalLM.from_config(decoder))
    special = {"decoder_start_token_id": 1, "pad_token_id": 0, "eos_token_id": 2}  # those of our tokenizers
    for name, value in special.items():
        setattr(model.config, name, value)
        setattr(model.generation_config, name, value)
    model.generation_config.max_length = LONGEST  # type: ignore[union-attr]
    return model


def exact_match(prediction: EvalPrediction) -> dict[str, float]:
    """Count captions of which every piece is the most probable one after those before it: those that greedy search
    writes to the last word."""
    chosen, labels = np.asarray(prediction.predictions), np.asarray(prediction.label_ids)
    return {"exact_match": float(((chosen == labels) | (labels < 0)).all(axis=1).mean())}


def describe(captioner: Captioner, pictures: Dataset, num_beams: int) -> dict[str, Any]:
    """Let the model describe pictures, and compare with the right captions."""
    captions = captioner(list(pictures["image"]), num_beams=num_beams)
    texts, right = [caption.text for caption in captions], list(pictures["caption"])
    return {
        "exact_match": sum(one == other for one, other in zip(texts, right, strict=True)) / len(right),
        "bleu": bleu_scores(texts, right, lang="en")["score"],
        "texts": texts,
    }


def look(captioner: Captioner, pictures: Dataset) -> dict[str, Any]:
    """Measure how much of the attention of the words for an object is on it, while the model reads right captions."""
    captions = captioner.score(list(pictures["image"]), list(pictures["caption"]))
    weights = [caption.cross_attentions.numpy() for caption in captions]
    boxes = [[thing["box"] for thing in things] for things in pictures["objects"]]
    return attention_inside(weights, list(pictures["links"]), boxes, side=(SIDE, SIDE), grid=captions[0].grid)


def measure(captioner: Captioner, data: dict[str, Dataset], args: CaptionerArguments, output: Path) -> dict[str, Any]:
    """Measure on both test splits, print what is found, and write the captions beside the right ones."""
    found = {split: look(captioner, data[split]) for split in ("validation", "test", "compositional")}
    best = np.unravel_index(found["validation"]["inside"].argmax(), found["validation"]["inside"].shape)
    layer, head = (int(number) for number in best)
    results: dict[str, Any] = {"attention_layer": layer, "attention_head": head}
    for split in ("test", "compositional"):
        numbers = describe(captioner, data[split], args.num_beams)
        pairs = zip(numbers.pop("texts"), data[split]["caption"], strict=True)
        lines = [f"{text}\t{right}\n" for text, right in pairs]
        output.joinpath(f"{split}_predictions.tsv").write_text("".join(lines), encoding="utf-8", newline="\n")
        numbers |= {"samples": len(lines), "attention_inside": float(found[split]["inside"][best])}
        numbers |= {"attention_chance": found[split]["chance"]}
        results |= {f"{split}_{name}": value for name, value in numbers.items()}
        print(f"{split}: share of attention on the patches of the object, {found[split]['words']} words")
        for number, row in enumerate(found[split]["inside"]):
            print(f"  layer {number + 1}: " + "  ".join(f"head {at + 1} {share:.3f}" for at, share in enumerate(row)))
        print(f"  evenly spread: {found[split]['chance']:.3f}; chosen: layer {layer + 1}, head {head + 1}")
    return results


def main(argv: list[str] | None = None) -> dict[str, Any]:
    """Train and measure; return the measured numbers."""
    parser = HfArgumentParser(cast(Any, (CaptionerArguments, TrainingArguments)), allow_abbrev=False)
    parser.set_defaults(**DEFAULTS)
    args, training_args = parser.parse_args_into_dataclasses(argv, look_for_args_file=False)
    if parser.parse_known_args(argv)[0].output_dir is None:
        raise ValueError("output_dir is missing: give the folder for checkpoints and results (--output_dir)")
    set_seed(training_args.seed)
    output = Path(training_args.output_dir)
    checkpoint = find_checkpoint(training_args) if training_args.do_train else None
    limits = {"train": args.train_samples, "validation": args.validation_samples}
    splits = [split for split in SPLITS if training_args.do_train or split != "train"]
    data = {split: shapes(split, limits.get(split, args.test_samples)) for split in splits}
    mean = [0.5, 0.5, 0.5]
    image_processor = ViTImageProcessorPil(size={"height": SIDE, "width": SIDE}, image_mean=mean, image_std=mean)
    if training_args.do_train:
        if args.model_name_or_path:
            raise ValueError(f"model_name_or_path={args.model_name_or_path!r} goes with --do_train false")
        tokenizer = train_tokenizer(data["train"]["caption"], 100, kind="word")
        model = make_model(args, tokenizer)
    else:
        saved = args.model_name_or_path or output
        model = AttnCaptioner.from_pretrained(saved, dtype=torch.float32)
        tokenizer = AutoTokenizer.from_pretrained(saved)
    print(f"{model.num_parameters():,} parameters, {len(tokenizer)} words")
    limit = [] if args.max_minutes is None else [TimeLimitCallback(args.max_minutes)]
    trainer = ResumableTrainer(
        model=model,
        args=training_args,
        train_dataset=data.get("train"),
        eval_dataset=data["validation"],
        data_collator=Collator(tokenizer, image_processor),
        processing_class=tokenizer,
        compute_metrics=exact_match,
        preprocess_logits_for_metrics=lambda logits, _: logits[0].argmax(dim=-1),
        callbacks=[*limit, ClockCallback()],
    )
    trainer.model_accepts_loss_kwargs = False  # this model takes the mean of a batch, whatever it is told
    if training_args.do_train:
        trainer.train(resume_from_checkpoint=checkpoint)
        trainer.save_model()
        trainer.save_state()
        image_processor.save_pretrained(output)
        settings = {name: getattr(training_args, name) for name in DEFAULTS if not name.startswith("do_")}
        write_run(output, {"task": "captioning", "data": "shapes"}, asdict(args) | settings)
    results: dict[str, Any] = {}
    if training_args.do_predict:
        results = measure(Captioner(model, tokenizer, image_processor), data, args, output)
        if training_args.do_train:  # for `Caption.over_picture`
            model.config.alignment_layer = results["attention_layer"]
            model.config.alignment_heads = [results["attention_head"]]
            trainer.save_model()
        output.joinpath("all_results.json").write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")
        print(json.dumps(results, indent=2))
    return results


if __name__ == "__main__":
    try:
        main()
    except (OSError, ValueError) as error:  # a mistake of the user needs a sentence, no traceback
        sys.exit(f"error: {error}")
