"""Scripts of the repository as modules, for tests that call their functions."""

import importlib.util
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def load_script(path):
    """Import a file that is in no package, by its path in the repository: "scripts/translate.py", "space/app.py"."""
    spec = importlib.util.spec_from_file_location(f"{Path(path).stem}_script", ROOT / path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module
