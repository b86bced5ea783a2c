# Copyright 2026 The hf_attn authors. Licensed under the Apache License, Version 2.0.
"""Put a folder into a repository of the Hub: all its files in one commit, or none."""

import json
import tempfile
from pathlib import Path

from huggingface_hub import CommitOperationAdd, CommitOperationDelete, HfApi, get_token
from huggingface_hub.errors import HfHubHTTPError, OfflineModeIsEnabled


def check_token() -> None:
    """Refuse to start without a token.

    Raises:
        ValueError: huggingface_hub finds none.
    """
    if not get_token():
        raise ValueError("there is no token of the Hub: run `hf auth login`, or set HF_TOKEN")


def upload(
    folder: Path, files: list[str], repo_id: str, private: bool, revision: str | None, message: str, overwrite: bool
) -> tuple[str, list[str]]:
    """Commit a publication, and remove what an earlier publication left that this one does not have.

    Args:
        folder: of the publication.
        files: their paths in it; one is `results.json`, whose `files` lists them all.
        repo_id: owner/name, made if it does not exist.
        private: whether a new repository is private.
        revision: a branch, made if it does not exist; None: main.
        message: of the commit.
        overwrite: whether the repository may hold another model.

    Returns:
        The link to the repository, and what its owner should know about it.

    Raises:
        ValueError: the repository holds a model that was not published like this.
        OSError: the Hub refused, or could not be reached.
    """
    api = HfApi()
    try:
        link = api.create_repo(repo_id, private=private, exist_ok=True)
        if revision:
            api.create_branch(repo_id, branch=revision, exist_ok=True)
        info = api.model_info(repo_id, revision=revision)
        present = {file.rfilename for file in info.siblings or []}
        before = _published(api, repo_id, revision) if "results.json" in present else []
    except Exception as error:  # of many kinds: HTTP, transport, offline mode
        raise OSError(f"nothing was uploaded to {repo_id}: {_reason(error)}") from error
    if "config.json" in present and not before and not overwrite:
        raise ValueError(f"{repo_id} holds another model: choose a new name, or give overwrite to write over it")
    operations: list[CommitOperationAdd | CommitOperationDelete] = [
        CommitOperationAdd(path, str(folder / path)) for path in files
    ]
    operations += [CommitOperationDelete(path) for path in sorted(present & set(before) - set(files))]
    try:
        api.create_commit(repo_id, operations, commit_message=message, revision=revision)
    except Exception as error:
        raise OSError(
            f"the upload to {repo_id} did not finish: {_reason(error)}; the Hub takes all files or none, so the same "
            "command can be run again"
        ) from error
    notes = [f"{repo_id} was there before, and is public"] if private and not info.private else []
    return f"{link}/tree/{revision}" if revision else str(link), notes


def _published(api: HfApi, repo_id: str, revision: str | None) -> list[str]:
    """List the files of the publication that the repository holds; none if it holds none."""
    with tempfile.TemporaryDirectory() as place:
        path = api.hf_hub_download(repo_id, "results.json", revision=revision, local_dir=place)
        try:
            return json.loads(Path(path).read_text(encoding="utf-8"))["files"]
        except (ValueError, KeyError, TypeError):
            return []


def _reason(error: BaseException) -> str:
    """Say in a few words why the Hub refused, or could not be reached."""
    if isinstance(error, HfHubHTTPError):
        status = error.response.status_code
        if status == 401:
            return "the Hub does not know the token (401): run `hf auth login`, or set HF_TOKEN"
        if status == 403:
            return "the token may not write there (403): it needs the right to write to this repository"
        return f"the Hub answered {status}, {' '.join((error.server_message or str(error)).split())[:200]}"
    if isinstance(error, OfflineModeIsEnabled):
        return "HF_HUB_OFFLINE is set"
    if error.__cause__ is not None and isinstance(error, RuntimeError):  # of a large file, whose cause says more
        return f"{error} {_reason(error.__cause__)}"
    return f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
