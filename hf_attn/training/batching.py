"""Batches of sentence pairs of similar length, cut by a budget of padded tokens instead of a number of sentences.

A batch of ``n`` pairs costs ``n * max(longest source, longest target)`` padded tokens; a batch takes pairs as long as
its cost stays within the budget. Short sentences come in large batches, long ones in small batches, and little of
either is padding.

Vaswani et al. 2017 (arXiv 1706.03762, section 5.1) batch by approximate sequence length in the same way.
Next: ``hf_attn/training/recipes.py``, which says how many tokens each paper's batch has.
"""

import copy
import shutil
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import safe_open
from torch.utils.data import DataLoader, Sampler
from transformers import PreTrainedModel, PreTrainedTokenizerBase, Seq2SeqTrainer, Trainer
from transformers.trainer_utils import rotate_checkpoints, seed_worker
from transformers.utils import SAFE_WEIGHTS_NAME

from .checkpoints import last_complete_checkpoint


class TokenBatchSampler(Sampler[list[int]]):
    """Yield lists of example numbers of similar length, each list within a budget of padded tokens.

    The order depends on ``seed`` and the epoch alone. Pairs are sorted by length, in an order drawn anew every epoch
    among pairs of equal length, cut into batches, and the batches are shuffled. The sorted lengths are the same in
    every epoch, and so are the places of the cuts: every epoch has the same number of batches, which the Trainer needs
    to plan its steps. Every pair appears exactly once per epoch; a pair longer than the budget is a batch of its own.

    Args:
        source_lengths: Tokens of each source, one number per example.
        target_lengths: Tokens of each target, one number per example.
        tokens_per_batch: The budget: ``sentences * max(longest source, longest target)``.
        seed: Seed of the order.

    Raises:
        ValueError: If there are no examples, the two lengths disagree, or the budget is not positive.
    """

    # No `batch_size` attribute on purpose: accelerate takes its absence to mean batches of varying size.

    def __init__(
        self,
        source_lengths: Sequence[int] | np.ndarray,
        target_lengths: Sequence[int] | np.ndarray,
        tokens_per_batch: int,
        seed: int = 0,
    ):
        source = np.asarray(source_lengths, dtype=np.int64)
        target = np.asarray(target_lengths, dtype=np.int64)
        if len(source) == 0 or source.shape != target.shape:
            raise ValueError(
                f"source_lengths and target_lengths must have one number per example, got {len(source)} and "
                f"{len(target)}; at least one example is needed"
            )
        if tokens_per_batch < 1:
            raise ValueError(f"tokens_per_batch must be 1 or more, got {tokens_per_batch}")
        self.seed = seed
        self.epoch = 0
        self._longer = np.maximum(source, target)
        self._difference = source - target
        self._cuts = _cut(np.sort(self._longer), tokens_per_batch)

    def set_epoch(self, epoch: int) -> None:
        """Choose the epoch whose order the next iteration follows."""
        self.epoch = epoch

    def __len__(self) -> int:
        return len(self._cuts) - 1

    def __iter__(self) -> Iterator[list[int]]:
        generator = np.random.default_rng([self.seed, self.epoch])
        order = generator.permutation(len(self._longer))
        # lexsort is stable and its last key counts most: the longer side first, then which side that is and by how
        # much, so that neither side of a batch is padded in vain.
        order = order[np.lexsort((self._difference[order], self._longer[order]))]
        for batch in generator.permutation(len(self)):
            yield order[self._cuts[batch] : self._cuts[batch + 1]].tolist()


def _cut(sorted_lengths: np.ndarray, budget: int) -> list[int]:
    """Return the positions, first and last included, that cut ascending lengths into batches within the budget."""
    cuts = [0]
    for position, length in enumerate(sorted_lengths.tolist()):
        if position > cuts[-1] and (position + 1 - cuts[-1]) * length > budget:
            cuts.append(position)
    return [*cuts, len(sorted_lengths)]


def pair_lengths(dataset: Any) -> tuple[np.ndarray, np.ndarray]:
    """Count the tokens of every example's ``input_ids`` and ``labels``.

    Args:
        dataset: A tokenized ``datasets.Dataset``, or any sequence of dictionaries with these two keys. A dataset may
            lack labels that a collator makes, one of each token.

    Returns:
        Source lengths and target lengths, each of shape (examples,).
    """
    columns = ("input_ids", "labels")
    if hasattr(dataset, "with_format"):  # datasets.Dataset: counted inside arrow, without making a list per example
        import pyarrow.compute

        columns = columns if "labels" in dataset.column_names else ("input_ids", "input_ids")
        table = dataset.select_columns(list(dict.fromkeys(columns))).with_format("arrow")[:]
        lengths = [pyarrow.compute.call_function("list_value_length", [table[name]]).to_numpy() for name in columns]
    else:
        examples = [dataset[index] for index in range(len(dataset))]
        lengths = [np.array([len(example[name]) for example in examples]) for name in columns]
    return lengths[0], lengths[1]


class ResumableTrainer(Trainer):
    """A ``Trainer`` that survives being killed: how it differs from the base class for a run that was interrupted.

    ``train(resume_from_checkpoint=True)`` takes the last complete checkpoint, nothing of an older checkpoint of the
    same name is left in a new one, and a run that resumes at its end takes no step beyond it. Weights that a model of
    transformers saves under other names than its own (ViT does) are read back, where the base class passes them over.
    """

    def train(self, resume_from_checkpoint: str | bool | None = None, *args: Any, **kwargs: Any) -> Any:
        """Train; arguments and result as in the base class.

        Raises:
            ValueError: If ``resume_from_checkpoint`` is True and there is no complete checkpoint.
        """
        if resume_from_checkpoint is True:
            folder = last_complete_checkpoint(str(self.args.output_dir))
            if folder is None:
                raise ValueError(f"resume_from_checkpoint=True: {self.args.output_dir} holds no complete checkpoint")
            resume_from_checkpoint = str(folder)
        return super().train(resume_from_checkpoint, *args, **kwargs)

    def _run_epoch(self, *args: Any, **kwargs: Any) -> None:
        """Train for an epoch, unless training was at its end when its last checkpoint was written."""
        if self.state.global_step >= self.state.max_steps:
            self.control.should_training_stop = True
        if not self.control.should_training_stop:
            super()._run_epoch(*args, **kwargs)
        elif self.args.should_save:  # the older checkpoints may not have been deleted yet when the run was killed
            rotate_checkpoints(
                output_dir=str(self.args.output_dir),
                save_total_limit=self.args.save_total_limit,
                best_model_checkpoint=self.state.best_model_checkpoint,
                use_mtime=True,
            )

    def _load_from_checkpoint(self, resume_from_checkpoint: str, model: Any = None) -> None:
        """Load the weights to go on with."""
        super()._load_from_checkpoint(resume_from_checkpoint, model)
        self._load_renamed(resume_from_checkpoint)

    def _load_best_model(self) -> None:
        """Load the weights that were measured as the best."""
        super()._load_best_model()
        self._load_renamed(str(self.state.best_model_checkpoint))

    def _load_renamed(self, folder: str) -> None:
        """Load weights through the model's own loader if the file has names that the model has not."""
        model, file = self.accelerator.unwrap_model(self.model), Path(folder, SAFE_WEIGHTS_NAME)
        if isinstance(model, PreTrainedModel) and file.is_file():
            with safe_open(file, framework="pt") as weights:
                renamed = set(weights.keys()) - set(model.state_dict())
            if renamed:
                loaded: Any = type(model).from_pretrained(folder, config=model.config, dtype=model.dtype)
                model.load_state_dict(loaded.state_dict())

    def save_model(self, output_dir: str | None = None, _internal_call: bool = False) -> None:
        """Save the model, into a checkpoint that is empty."""
        if _internal_call:  # what is written last, trainer_state.json, tells that a checkpoint is complete
            if self.args.should_save:
                shutil.rmtree(str(output_dir), ignore_errors=True)
            self.accelerator.wait_for_everyone()
        super().save_model(output_dir, _internal_call)


class TokenBatchTrainer(ResumableTrainer, Seq2SeqTrainer):
    """A ``Seq2SeqTrainer`` that trains on batches of ``tokens_per_batch`` padded tokens, and survives being killed.

    ``per_device_train_batch_size`` is not used. Gradient accumulation, ``max_steps``, ``dataloader_num_workers`` and
    resuming in the middle of an epoch work as in the base class. With several processes each takes every n-th batch of
    the same order, and the first batches of the epoch are repeated where their number is not a multiple of n; the
    budget holds per process.

    Args:
        *args: As for ``Seq2SeqTrainer``.
        tokens_per_batch: The budget of one batch, see ``TokenBatchSampler``.
        target_tokenizer: The tokenizer of the target where the vocabularies are separate; saved with every checkpoint
            and the model, in the subfolder ``target_tokenizer``.
        **kwargs: As for ``Seq2SeqTrainer``.
    """

    def __init__(
        self,
        *args: Any,
        tokens_per_batch: int,
        target_tokenizer: PreTrainedTokenizerBase | None = None,
        **kwargs: Any,
    ):
        super().__init__(*args, **kwargs)
        self.tokens_per_batch = tokens_per_batch
        self.target_tokenizer = target_tokenizer

    def save_model(self, output_dir: str | None = None, _internal_call: bool = False) -> None:
        """Save model and tokenizers."""
        model: Any = self.model
        generates = getattr(model, "generation_config", None)
        if generates is not None:  # the Trainer turns the cache off for training; whoever loads the model wants it
            model.config.use_cache = generates.use_cache is not False
        super().save_model(output_dir, _internal_call)
        if generates is not None:
            model.config.use_cache = self.args.use_cache
        if self.target_tokenizer is not None and self.args.should_save:
            folder = Path(str(self.args.output_dir) if output_dir is None else output_dir)
            self.target_tokenizer.save_pretrained(str(folder / "target_tokenizer"))

    def prediction_step(self, *args: Any, **kwargs: Any) -> Any:
        """Evaluate a batch; arguments and result as in the base class, which fills the model's generation config with
        the library's defaults. Here it stays as it is, since it is saved with the model."""
        config = getattr(self.model, "generation_config", None)
        before = copy.deepcopy(vars(config)) if config is not None else {}
        result = super().prediction_step(*args, **kwargs)
        if config is not None:
            vars(config).clear()
            vars(config).update(before)
        return result

    def evaluation_loop(self, *args: Any, **kwargs: Any) -> Any:
        """Evaluate; arguments and result as in the base class, which counts the rows twice that several processes
        repeat so that all get as many."""
        self.gather_function = self.accelerator.gather_for_metrics
        return super().evaluation_loop(*args, **kwargs)

    def get_train_dataloader(self) -> DataLoader:
        """Return the loader of the training batches.

        Raises:
            ValueError: If there is no training set, or it has no length.
        """
        args, collator = self.args, self.data_collator
        dataset: Any = self.train_dataset
        if not hasattr(dataset, "__len__"):
            raise ValueError(f"train_dataset must be a dataset with a length, got {type(dataset).__name__}")
        seed = args.seed if args.data_seed is None else args.data_seed
        sampler = TokenBatchSampler(*pair_lengths(dataset), self.tokens_per_batch, seed=seed)
        if hasattr(dataset, "column_names"):
            dataset = self._remove_unused_columns(dataset, description="training")
        else:
            collator = self._get_collator_with_removed_columns(collator, description="training")
        loader = DataLoader(
            dataset,
            batch_sampler=sampler,
            collate_fn=collator,
            num_workers=args.dataloader_num_workers,
            pin_memory=args.dataloader_pin_memory,
            persistent_workers=args.dataloader_persistent_workers,
            prefetch_factor=args.dataloader_prefetch_factor,
            worker_init_fn=partial(seed_worker, num_workers=args.dataloader_num_workers, rank=args.process_index),
        )
        loader = self.accelerator.prepare(loader)
        if loader.batch_sampler is not sampler:
            # Several processes: accelerate's shard does not pass the epoch on when a run resumes inside an epoch.
            loader.batch_sampler.set_epoch = sampler.set_epoch
        return loader
