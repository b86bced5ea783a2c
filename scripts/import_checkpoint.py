"""Make a checkpoint of transformers' own models one of ours, or the other way round: Marian, BART, mBART, T5 (v1.0,
v1.1); BERT, RoBERTa, ALBERT, ELECTRA, DistilBERT; GPT-2, Llama, Mistral.

    python scripts/import_checkpoint.py --checkpoint Helsinki-NLP/opus-mt-en-fr --output_dir out/opus

    python scripts/translate.py --model_name_or_path out/opus --text "Where is the station?" --num_beams 4

    python scripts/import_checkpoint.py --export --checkpoint out/opus --output_dir out/opus-back

    python scripts/import_checkpoint.py --checkpoint my-mbart --output_dir out/mbart --decoder_start_token_id ko_KR

    python scripts/import_checkpoint.py --checkpoint openai-community/gpt2 --output_dir out/gpt2

takes some seconds beside the download; a folder is read without the network. Only weights in safetensors are read, and
no code that a checkpoint brings along. It prints each setting under both names. A checkpoint with a tensor or a setting
that has no counterpart is refused, and nothing is written: what is written gives the same numbers.
"""

import sys
from dataclasses import dataclass, field
from typing import Any

from transformers import HfArgumentParser, PreTrainedConfig, PreTrainedModel

from hf_attn.hub import export_checkpoint, import_checkpoint
from hf_attn.hub.conversion import TWINS


@dataclass
class ImportArguments:
    """What is converted, and where to."""

    checkpoint: str = field(metadata={"help": "Folder or Hub id of the model."})
    output_dir: str = field(metadata={"help": "New or empty folder for the converted model and its tokenizer."})
    export: bool = field(default=False, metadata={"help": "Make a model of ours one of transformers' classes."})
    model_type: str | None = field(
        default=None, metadata={"help": f"With export: {', '.join(TWINS)}; the one that fits if not given."}
    )
    decoder_start_token_id: str | None = field(
        default=None,
        metadata={"help": "With import: id or token that every output starts from, for an mBART that names none."},
    )

    def __post_init__(self):
        if self.model_type is not None and not self.export:
            raise ValueError(f"model_type={self.model_type!r} goes with export; an import reads it from the checkpoint")
        if self.decoder_start_token_id is not None and self.export:
            raise ValueError(f"decoder_start_token_id={self.decoder_start_token_id!r} goes with an import alone")


def setting_lines(model: PreTrainedModel, model_type: str) -> list[str]:
    """Show the settings of the new model, each beside its name in the configuration that it comes from."""
    twin = TWINS[model_type]
    pairs = [*twin.fields.items(), *twin.converted.items()]
    if model.config.model_type == model_type:  # exported: theirs from ours
        pairs = [(theirs, ours) for ours, theirs in pairs]
    width = max(len(name) for name, _ in pairs)
    values = dict.fromkeys(name for name, _ in pairs)  # two of ours may be one of theirs
    for name in values:
        values[name] = getattr(model.config, name, None)
    return [f"  {name:<{width}} = {values[name]!s:<10} <- {other}" for name, other in pairs]


def main(args: ImportArguments) -> None:
    """Convert, and print what became of what."""
    if args.export:
        model, tokenizer = export_checkpoint(args.checkpoint, args.output_dir, model_type=args.model_type)
        model_type = model.config.model_type
    else:
        start: Any = args.decoder_start_token_id
        if start is not None and start.isdecimal():
            start = int(start)
        model, tokenizer = import_checkpoint(args.checkpoint, args.output_dir, decoder_start_token_id=start)
        model_type = PreTrainedConfig.get_config_dict(args.checkpoint)[0]["model_type"]
    print("\n".join(setting_lines(model, model_type)))
    names = [type(one).__name__ for one in (tokenizer if isinstance(tokenizer, tuple) else (tokenizer,)) if one]
    print(f"  tokenizer: {' and '.join(names) or 'none'}")
    dtype = str(model.dtype).removeprefix("torch.")
    print(f"{args.output_dir}: {type(model).__name__}, {model.num_parameters():,} parameters, {dtype}")


if __name__ == "__main__":
    try:
        (arguments,) = HfArgumentParser(ImportArguments).parse_args_into_dataclasses()  # type: ignore[arg-type]
        main(arguments)
    except (OSError, ValueError) as error:  # a mistake of the user needs a sentence, no traceback
        sys.exit(f"error: {error}")
