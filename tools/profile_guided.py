"""Profile-guided optimisation of the engine in a wheel.

The engine is built once with counters, runs the shipped scenarios, and is built again with what was counted. The loads
of tools/instructions.py are not among them. It needs the `llvm-profdata` of the compiler: `rustup component add
llvm-tools`. The plain build (`make optimised`) does without.
"""

from __future__ import annotations

import subprocess
import sys
import zipfile
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).parents[1]

TRAINING = """
import json, sys
from importlib.util import module_from_spec, spec_from_file_location
spec = spec_from_file_location("_engine", sys.argv[1])
engine = module_from_spec(spec)
spec.loader.exec_module(engine)
for file in sys.argv[2:]:
    scenario = engine.load(file)
    for variant in json.loads(scenario.describe())["variants"]:
        try:
            engine.run(scenario, variant["name"], 1)
        except engine.RunError as error:
            # Some scenarios show what stops a run.
            print(f"{file}: {error}")
"""


def merger(host: str) -> Path | None:
    """The compiler's own `llvm-profdata`; one of another LLVM may not read its counters."""
    root = subprocess.run(["rustc", "--print", "sysroot"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    tool = Path(root.strip()) / "lib/rustlib" / host / "bin/llvm-profdata"
    return tool if tool.exists() else None


def profile(merge: Path, command: list[str], environment: Mapping[str, str], folder: Path) -> dict[str, str]:
    """The environment of a build that uses a profile. `command` builds a wheel; the folder for it is its last word."""
    counts, wheels = folder / "counts", folder / "wheels"
    built = {**environment, "RUSTFLAGS": flags(environment, f"-Cprofile-generate={counts}")}
    subprocess.run([*command, str(wheels)], cwd=ROOT, env=built, check=True, stdout=sys.stderr)
    (wheel,) = wheels.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        member = next(name for name in archive.namelist() if "_engine" in name and name.endswith(".so"))
        engine = archive.extract(member, folder)
    scenarios = sorted(str(file) for file in (ROOT / "scenarios").glob("*.toml"))
    subprocess.run([sys.executable, "-c", TRAINING, engine, *scenarios], check=True, stdout=sys.stderr)
    merged = folder / "merged.profdata"
    subprocess.run([str(merge), "merge", "-o", str(merged), str(counts)], check=True)
    return {**environment, "RUSTFLAGS": flags(environment, f"-Cprofile-use={merged}")}


def flags(environment: Mapping[str, str], more: str) -> str:
    """RUSTFLAGS with one more flag."""
    return f"{environment.get('RUSTFLAGS', '')} {more}".strip()
