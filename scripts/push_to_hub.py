"""Publish a trained model: as a repository of the Hugging Face Hub, or as a folder that is like one.

    python scripts/push_to_hub.py --trained_dir out/it --license apache-2.0 --output_dir out/published

    python scripts/push_to_hub.py --trained_dir out/fr --license cc-by-4.0 --data_name "Tatoeba English-French" \
        --data_license cc-by-2.0 --attribution "Sentences by the contributors of https://tatoeba.org." \
        --repo_id you/en-fr-bahdanau --dry_run

takes a folder as ``train_translation.py`` wrote it and publishes weights, code, tokenizers and a model card, which says
on what the model was trained, how, and with which scores; a few seconds. What it writes opens with
``trust_remote_code=True`` where this package is not installed. ``--dry_run`` lists the files and prints the card. Only
``--repo_id`` uses the network; the token is that of ``hf auth login`` or HF_TOKEN. A new repository is private unless
``--no_private`` is given.
"""

import sys
from dataclasses import asdict, dataclass, field

from transformers import HfArgumentParser

from hf_attn.hub import About, Publication, publish


@dataclass
class PushArguments:
    """What is published, and where."""

    trained_dir: str = field(metadata={"help": "Folder of a finished training run."})
    repo_id: str | None = field(default=None, metadata={"help": "owner/name on the Hub; made if it does not exist."})
    output_dir: str | None = field(default=None, metadata={"help": "Folder to write instead of a repository."})
    private: bool = field(default=True, metadata={"help": "Whether a new repository is private."})
    revision: str | None = field(default=None, metadata={"help": "Branch of the repository; main if not given."})
    commit_message: str | None = field(default=None, metadata={"help": "Message of the commit."})
    overwrite: bool = field(
        default=False, metadata={"help": "Replace a folder, or add to a repository, that holds something else."}
    )
    dry_run: bool = field(default=False, metadata={"help": "List the files and print the card; write nothing."})

    def __post_init__(self):
        if self.repo_id and self.output_dir:
            raise ValueError(
                f"repo_id={self.repo_id} and output_dir={self.output_dir} were both given; give one of them"
            )
        if not (self.repo_id or self.output_dir or self.dry_run):
            raise ValueError("give repo_id, output_dir or dry_run")


def report(publication: Publication) -> None:
    """Print what was published and where, or the files and the card."""
    for path, size in publication.files.items():
        print(f"{size:>12,}  {path}")
    if publication.location is None:
        print(f"\n{publication.card}")
    for note in publication.notes:
        print(f"note: {note}")
    together = f"{len(publication.files)} files, {sum(publication.files.values()) / 1e6:.1f} MB"
    print(f"{together}: {publication.location or 'nothing was written (dry run)'}")


def main(args: PushArguments, about: About) -> Publication:
    """Publish, and say what."""
    publication = publish(
        args.trained_dir,
        repo_id=args.repo_id,
        local_dir=args.output_dir,
        private=args.private,
        revision=args.revision,
        commit_message=args.commit_message,
        overwrite=args.overwrite,
        dry_run=args.dry_run,
        **asdict(about),
    )
    report(publication)
    return publication


if __name__ == "__main__":
    try:
        main(*HfArgumentParser((PushArguments, About)).parse_args_into_dataclasses())  # type: ignore[arg-type]
    except (OSError, ValueError) as error:  # a mistake of the user needs a sentence, no traceback
        sys.exit(f"error: {error}")
