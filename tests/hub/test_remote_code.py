# Copyright 2026 The hf_attn authors. Licensed under the Apache License, Version 2.0.
"""A saved folder opens where the package is not installed, through every Auto class that fits, and can be saved
again; code that would not open there is not saved."""

import ast
import json
import re
import shutil
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import NamedTuple

import pytest
import torch
import transformers
from contract import CLASSIFIERS, cases
from huggingface_hub import ModelCard
from transformers import Trainer, TrainingArguments

from hf_attn.models import base
from hf_attn.registry import FAMILIES, family_module

HEADS = cases(heads=True, variants=False)
EVERY_CLASS = cases(variants=False)
FAMILY_CLASSES = {family: family_module(family).AUTO_CLASSES for family in FAMILIES}

# Runs in a process of its own, in which the package cannot be imported, and forks for each stage: opens the stage's
# folders through their Auto classes, runs them on their batches, and saves them again.
OPEN_ELSEWHERE = """
import json, os, sys
sys.modules["hf_attn"] = None
import torch, transformers

def open_and_run(folder, auto_name, again, batch):
    model, info = getattr(transformers, auto_name).from_pretrained(
        folder, trust_remote_code=True, output_loading_info=True
    )
    assert type(model).__module__.startswith("transformers_modules."), type(model)
    batch = {name: torch.tensor(value) for name, value in batch.items()}
    with torch.no_grad():
        answer = {"missing": sorted(info["missing_keys"]), "unexpected": sorted(info["unexpected_keys"])}
        answer["states"] = model.base_model(**batch)[0].tolist()
        answer["output"] = model(**batch)[0].tolist()
        if model.can_generate():
            batch.pop("decoder_input_ids", None)
            answer["generated"] = [
                model.generate(**batch, num_beams=beams, max_new_tokens=6).tolist() for beams in (1, 3)
            ]
    model.save_pretrained(again)
    return answer

for number, stage in enumerate(json.load(open("plan.json"))):
    if os.fork() == 0:
        answers = {f"{opening[0]} {opening[1]}": open_and_run(*opening) for opening in stage}
        try:
            import hf_attn
        except ImportError:
            json.dump(answers, open(f"answers-{number}.json", "w"))
        sys.stderr.flush()
        os._exit(0)
    os.wait()
"""


def open_elsewhere(stages, home):
    """Run OPEN_ELSEWHERE on stages of [(folder, Auto class, folder to save again, batch)]."""
    plan = [[(str(folder), name, str(to), batch) for folder, name, to, batch in stage] for stage in stages]
    (home / "plan.json").write_text(json.dumps(plan))
    environment = {"PATH": "/usr/bin:/bin", "HF_HOME": str(home), "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-c", OPEN_ELSEWHERE]
    run = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=home, timeout=500)
    files = sorted(home.glob("answers-*.json"))
    assert run.returncode == 0 and len(files) == len(stages), run.stderr[-3000:]
    return [json.loads(file.read_text()) for file in files]


def inputs(case):
    """A ragged batch without labels, as lists."""
    return {name: value.tolist() for name, value in case.batch(labels=False).items()}


def auto_names(case):
    """The Auto classes through which a folder is opened: all that it names, but of the further heads of a family their
    own and that of the stack."""
    return ["AutoModel", case.auto_name] if case.auto_name in CLASSIFIERS else list(FAMILY_CLASSES[case.family])


def train(case, folder):
    """Train two steps with the Trainer, a checkpoint after each."""
    arguments = TrainingArguments(
        folder, max_steps=2, save_steps=1, per_device_train_batch_size=3, learning_rate=0.1, use_cpu=True,
        disable_tqdm=True, save_only_model=True,
    )  # fmt: skip
    batch = case.batch()
    rows = [{name: value[row] for name, value in batch.items()} for row in range(3)]
    trainer = Trainer(case.model(sharpness=4.0), arguments, train_dataset=rows)
    trainer.train()
    return trainer.model.eval()


@pytest.fixture(scope="module")
def elsewhere(tmp_path_factory):
    """What was saved, every class and every checkpoint of the heads' trainings, with what two processes without the
    package answer: one opens those folders and saves them again, the other opens these."""
    home = tmp_path_factory.mktemp("elsewhere")
    models, first, second = {}, [], []
    for parameter in EVERY_CLASS:
        case = parameter.values[0]
        models[home / case.id] = case.model(sharpness=4.0)
        models[home / case.id].save_pretrained(home / case.id)
        folders = [home / case.id]
        if case.is_head:
            folders += [home / "training" / case.id / f"checkpoint-{step}" for step in (1, 2)]
            models[folders[-1]] = train(case, home / "training" / case.id)
        for folder in folders:
            for auto_name in auto_names(case) if folder == folders[0] else ("AutoModel", case.auto_name):
                again = home / "again" / str(len(first))
                first.append((folder, auto_name, again, inputs(case)))
                second.append((again, auto_name, home / "thrice" / str(len(first)), inputs(case)))
    own, _ = write_family(home, RIGHT)
    own.save_pretrained(home / "own")
    first.append((home / "own", "AutoModel", home / "again" / "own", OWN_IDS))
    answers, again_answers = open_elsewhere([first, second], home)
    return Elsewhere(
        home,
        models | {home / "own": own},
        {(folder, name): answers[f"{folder} {name}"] for folder, name, _, _ in first},
        {(folder, name): (again, again_answers[f"{again} {name}"]) for (folder, name, again, _) in first[:-1]},
    )


class Elsewhere(NamedTuple):
    """Folders and models; answers by folder and Auto class; the same for what was saved again, with its folder."""

    home: Path
    models: dict
    answers: dict
    again: dict


def check_answer(answer, model, case, auto_name):
    """Compare what another process computed with what the model in memory does."""
    batch = case.batch(labels=False)
    with torch.no_grad():
        states = model.base_model(**batch)[0]
        torch.testing.assert_close(torch.tensor(answer["states"]), states, atol=1e-5, rtol=1e-5)
        if FAMILY_CLASSES[case.family][auto_name] is type(model):
            torch.testing.assert_close(torch.tensor(answer["output"]), model(**batch)[0], atol=1e-5, rtol=1e-5)
            assert answer["missing"] == answer["unexpected"] == []
        if model.can_generate() and "generated" in answer:
            batch.pop("decoder_input_ids", None)
            for beams, generated in zip((1, 3), answer["generated"], strict=True):
                assert generated == model.generate(**batch, num_beams=beams, max_new_tokens=6).tolist()


def test_the_families_are_the_expected_ones():
    assert FAMILIES == ("rnn", "convs2s", "transformer", "bert", "gpt", "vit")
    names = {family: [cls.__name__ for cls in family_module(family).AUTO_CLASSES.values()] for family in FAMILIES}
    assert names == {
        "rnn": ["AttnRnnModel", "AttnRnnForConditionalGeneration"],
        "convs2s": ["AttnConvS2SModel", "AttnConvS2SForConditionalGeneration"],
        "transformer": ["AttnTransformerModel", "AttnTransformerForConditionalGeneration"],
        "bert": [
            "AttnBertModel",
            "AttnBertForMaskedLM",
            "AttnBertForSequenceClassification",
            "AttnBertForTokenClassification",
            "AttnBertForQuestionAnswering",
            "AttnBertForReplacedTokenDetection",
        ],
        "gpt": ["AttnGptModel", "AttnGptForCausalLM", "AttnGptForSequenceClassification"],
        "vit": ["AttnVitModel", "AttnVitForImageClassification", "AttnVitForMaskedImageModeling"],
    }


@pytest.mark.slow
@pytest.mark.parametrize("case", EVERY_CLASS)
def test_a_folder_opens_through_every_auto_class_and_again_when_saved_without_the_package(case, elsewhere):
    folder = elsewhere.home / case.id
    for auto_name in auto_names(case):
        answer = elsewhere.answers[folder, auto_name]
        check_answer(answer, elsewhere.models[folder], case, auto_name)
        _, again = elsewhere.again[folder, auto_name]
        assert (again["states"], again["output"]) == (answer["states"], answer["output"])
        assert again["missing"] == again["unexpected"] == []


@pytest.mark.slow
@pytest.mark.parametrize("case", HEADS)
def test_each_checkpoint_of_a_training_opens_alone(case, elsewhere):
    last = elsewhere.home / "training" / case.id / "checkpoint-2"
    for auto_name in ("AutoModel", case.auto_name):
        answer = elsewhere.answers[last, auto_name]
        check_answer(answer, elsewhere.models[last], case, auto_name)
        assert elsewhere.answers[last.with_name("checkpoint-1"), auto_name]["states"] != answer["states"]


def needed_code(file):
    """The names of a modeling file and of what it imports from beside it, and so on."""
    names, waiting = set(), [file]
    while waiting:
        file = waiting.pop()
        names.add(file.name)
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.level and f"{node.module}.py" not in names:
                waiting.append(file.with_name(f"{node.module}.py"))
    return names


@pytest.mark.slow
@pytest.mark.parametrize("case", EVERY_CLASS)
def test_exactly_the_needed_files_are_saved(case, elsewhere, tmp_path):
    folder = elsewhere.home / case.id
    code = needed_code(Path(sys.modules[case.model_class.__module__].__file__))
    data = {"config.json", "model.safetensors"} | ({"generation_config.json"} if case.generates else set())
    again, _ = elsewhere.again[folder, case.auto_name]
    for saved in (folder, again):
        assert {path.name for path in saved.iterdir()} == code | data
        assert set(json.loads((saved / "config.json").read_text())["auto_map"]) == {
            "AutoConfig",
            *FAMILY_CLASSES[case.family],
        }
    assert all((folder / name).read_bytes() == (again / name).read_bytes() for name in code)
    if case.is_head:
        for step in (1, 2):
            saved = elsewhere.home / "training" / case.id / f"checkpoint-{step}"
            checkpoint = {path.name for path in saved.iterdir()}
            assert checkpoint >= code | data and not {name for name in checkpoint - code if name.endswith(".py")}
    model = elsewhere.models[folder]
    model.save_pretrained(tmp_path, include_code=False)
    assert {path.name for path in tmp_path.iterdir()} == data
    assert "auto_map" not in json.loads((tmp_path / "config.json").read_text())
    assert getattr(model.config, "auto_map", None) is None  # saving leaves no trace in the configuration


def test_only_the_main_process_copies_the_code(tmp_path):
    model = HEADS[0].values[0].model()
    model.save_pretrained(tmp_path / "keyword", is_main_process=False)
    model.save_pretrained(tmp_path / "positional", False)
    assert not list(tmp_path.glob("*/*.py")) and not list(tmp_path.glob("*/config.json"))


@pytest.mark.parametrize("push", ["save_pretrained", "push_to_hub"])
def test_what_is_pushed_carries_its_code(push, tmp_path, monkeypatch):
    uploads = []

    class Hub:
        """Takes what would be uploaded."""

        def create_repo(self, repo_id, **kwargs):
            return SimpleNamespace(repo_id=f"me/{repo_id}")

        def create_commit(self, repo_id, operations, **kwargs):
            uploads.append((repo_id, {operation.path_in_repo for operation in operations}))

    for module in ("modeling_utils", "utils.hub"):
        monkeypatch.setattr(f"transformers.{module}.hf_api", Hub)
    monkeypatch.setattr("transformers.utils.hub.create_and_tag_model_card", lambda *args, **kwargs: ModelCard("Card"))
    case = HEADS[0].values[0]
    model = case.model()
    if push == "push_to_hub":
        model.push_to_hub("name")
    else:
        for _ in range(2):  # the second time into a folder that has the files already
            model.save_pretrained(tmp_path / "name", push_to_hub=True)
    code = needed_code(Path(sys.modules[case.model_class.__module__].__file__))
    assert uploads and {repo_id for repo_id, _ in uploads} == {"me/name"}
    for _, files in uploads:
        assert files >= code | {"config.json", "generation_config.json", "model.safetensors"}


def test_a_class_that_its_file_does_not_list_is_saved_without_code(tmp_path):
    listed = HEADS[0].values[0].model_class

    class Mine(listed):
        """A user's own, in a file that cannot travel."""

    torch.manual_seed(0)
    model = Mine(HEADS[0].values[0].config())
    model.save_pretrained(tmp_path)
    assert not list(tmp_path.glob("*.py")) and "auto_map" not in json.loads((tmp_path / "config.json").read_text())
    opened = transformers.AutoModelForSeq2SeqLM.from_pretrained(tmp_path)
    assert type(opened) is listed and torch.equal(opened.lm_head.weight, model.lm_head.weight)


# A family of its own, in a package that holds more than the family; PLACE is for a line.
CONFIGURATION = """
from transformers import PreTrainedConfig
PLACE


class OwnConfig(PreTrainedConfig):
    model_type = "own-of-tests"
    hidden_size: int = 4
"""
MODELING = """
from typing import TYPE_CHECKING

from torch import nn

from .base import AttnPreTrainedModel
from .configuration_own import OwnConfig
from .helper import VALUE
PLACE


class OwnModel(AttnPreTrainedModel):
    config: OwnConfig

    def __init__(self, config: OwnConfig):
        super().__init__(config)
        self.layer = nn.Linear(config.hidden_size, config.hidden_size)
        self.post_init()

    def forward(self, input_ids, decoder_input_ids=None, **kwargs):
        return (self.layer.weight.sum() * VALUE * input_ids,)


AUTO_CLASSES = {"AutoModel": OwnModel}
"""
HELPER = "VALUE = 3\nPLACE\n"
OWN_IDS = {"input_ids": [[1, 2]]}


def write_family(folder, line="", place="modeling_own"):
    """Write the family, with a line at one place, and import it; gives a model and the file of the line."""
    name = f"package_{abs(hash((folder, line, place)))}"
    models = folder / name / "models"
    (models / "sub").mkdir(parents=True)
    (folder / name / "__init__.py").touch()
    (folder / name / "outside.py").write_text("VALUE = 5\n")
    for package in (models, models / "sub"):
        (package / "__init__.py").write_text("VALUE = 6\n")
    (models / "sub" / "part.py").write_text("VALUE = 7\n")
    (models / "other.py").write_text("VALUE = 8\n")
    shutil.copy(base.__file__, models / "base.py")
    lines = {"configuration_own": "", "modeling_own": "", "helper": ""} | {place: line.replace("PACKAGE", name)}
    for file, text in (("configuration_own", CONFIGURATION), ("modeling_own", MODELING), ("helper", HELPER)):
        (models / f"{file}.py").write_text(text.replace("PLACE", lines[file]))
    sys.path.insert(0, str(folder))
    try:
        module = import_module(f"{name}.models.modeling_own")
    finally:
        sys.path.remove(str(folder))
    return module.OwnModel(module.OwnConfig()), models / f"{place}.py"


WRONG = [
    "from . import other",
    "from . import sub",
    "from .. import outside",
    "from ..outside import VALUE as THEIRS",
    "from ..models.other import VALUE as THEIRS",
    "from .sub import VALUE as THEIRS",
    "from .sub.part import VALUE as THEIRS",
    "import PACKAGE.outside",
    "import json, PACKAGE.models.other",
    "from PACKAGE.models.other import VALUE as THEIRS",
    "import hf_attn",
    "import hf_attn.models.masks as masks",
    "from hf_attn.models.masks import AttentionMask",
    "SIX = 6; from .other import VALUE as THEIRS",
    "from .other import VALUE as THEIRS; from .sub import part",
    "from . other import VALUE as THEIRS",
    "def late():\n    from . import other",
    "if True:\n    from .sub.part import VALUE as THEIRS",
    "try:\n    import hf_attn\nexcept ImportError:\n    hf_attn = None",
    '"""It has nothing\nfrom .nowhere import thing\n"""',
    '"""\n    import .nowhere\n"""',
    "'''\n    from .sub.nowhere import (a, b)'''",
]
RIGHT = '''
from .other import VALUE as THEIRS
from .other import (
    VALUE as AGAIN,
)
import json, os.path as path
import torch.nn.functional as F
if TYPE_CHECKING:
    from .other import VALUE as TYPE
def late():
    from .other import VALUE
    return VALUE
# from .nowhere import thing
"""Numbers
from .5 to .7, where nothing is to import
"""
text = "from .nowhere import thing"
'''


@pytest.mark.parametrize("place", ["modeling_own", "configuration_own", "helper"])
@pytest.mark.parametrize("line", WRONG)
def test_an_import_that_would_not_travel_is_refused_with_its_file_and_line(line, place, tmp_path):
    model, file = write_family(tmp_path, line, place)
    with pytest.raises(ValueError) as refused:
        model.save_pretrained(tmp_path / "saved")
    # the line that starts with the import, or else the only one
    wrong = [part.strip() for part in line.split("\n") if re.match(r"\s*(from|import)\b", part)] or [line]
    number, shown = re.match(rf"{file}, line (\d+): `(.*?)` ", str(refused.value)).groups()
    assert file.read_text().split("\n")[int(number) - 1].strip() == shown
    assert shown == wrong[0].replace("PACKAGE", file.parent.parent.name)
    assert not (tmp_path / "saved").exists() and getattr(model.config, "auto_map", None) is None
    model.save_pretrained(tmp_path / "plain", include_code=False)
    assert {path.name for path in (tmp_path / "plain").iterdir()} == {"config.json", "model.safetensors"}


@pytest.mark.slow
def test_imports_that_travel_are_saved_and_open(elsewhere):
    folder = elsewhere.home / "own"
    code = {"base.py", "configuration_own.py", "modeling_own.py", "helper.py", "other.py"}
    assert {path.name for path in folder.iterdir()} == code | {"config.json", "model.safetensors"}
    assert json.loads((folder / "config.json").read_text())["auto_map"] == {
        "AutoConfig": "configuration_own.OwnConfig", "AutoModel": "modeling_own.OwnModel",
    }  # fmt: skip
    (expected,) = elsewhere.models[folder](torch.tensor(OWN_IDS["input_ids"]))
    answer = elsewhere.answers[folder, "AutoModel"]
    torch.testing.assert_close(torch.tensor(answer["output"]), expected)
    assert answer["missing"] == answer["unexpected"] == []


def test_a_class_whose_file_would_be_missing_is_refused(tmp_path):
    model, file = write_family(tmp_path)
    outside = import_module(f"{file.parent.parent.name}.models.sub")
    strange = type("Strange", (type(model),), {"__module__": outside.__name__})
    sys.modules[type(model).__module__].AUTO_CLASSES["AutoModelForSeq2SeqLM"] = strange
    with pytest.raises(
        ValueError, match=r"Strange is defined in __init__\.py, which .*modeling_own\.py does not import"
    ):
        model.save_pretrained(tmp_path / "saved")
    assert not (tmp_path / "saved").exists()


def test_a_family_in_main_is_refused(tmp_path, monkeypatch):
    model, _ = write_family(tmp_path)
    monkeypatch.setattr(sys.modules["__main__"], "AUTO_CLASSES", {"AutoModel": type(model)}, raising=False)
    monkeypatch.setattr(type(model), "__module__", "__main__")
    with pytest.raises(ValueError, match="OwnModel is defined in __main__.*include_code=False"):
        model.save_pretrained(tmp_path / "saved")
