"""Builds the wheel as `pip install .` does and checks that a fresh environment gets the command and the typed API."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import tempfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
EXPECTED = (
    "schedlab/__init__.py",
    "schedlab/py.typed",
    "schedlab/_engine.pyi",
    "schedlab/render/page.css",
    "schedlab/render/page.js",
    "schedlab/compiled/shim/driver.c",
    "schedlab/compiled/minimal.config",
    "schedlab/schedlab-agent",
)
PROGRAM = """
import schedlab
scenario = schedlab.load("scenarios/eevdf-vs-cfs.toml")
print(scenario.name, [v.name for v in scenario.variants], schedlab.listing("machines")[0]["id"])
"""

AGENT = """
import subprocess
from schedlab.arms import agent
subprocess.run([agent.find(), "--version"], check=True)
"""


def main() -> int:
    """Each check is a test of its own; the first that fails ends the script."""
    with tempfile.TemporaryDirectory() as folder:
        wheel = build(Path(folder))
        names = zipfile.ZipFile(wheel).namelist()
        missing = [name for name in EXPECTED if name not in names]
        assert not missing, f"{wheel.name} lacks {missing}"
        assert any("_engine" in name and name.endswith(".so") for name in names), "the engine is not in the wheel"
        assert not any("tests" in Path(name).parts for name in names), "tests are in the wheel"
        assert any(name.endswith("LICENSE") for name in names), "the licence is not in the wheel"
        python = install(wheel, Path(folder) / "env")
        call(python.with_name("schedlab"), "list", "kernels")
        call(python, "-c", PROGRAM)
        call(python, "-c", AGENT)
    print("7 passed, 0 failed")
    return 0


def build(folder: Path) -> Path:
    """With the build tools that are here: a second download would test the registry."""
    call(
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "--quiet",
        "--no-deps",
        "--no-build-isolation",
        "-w",
        str(folder),
        str(ROOT),
    )
    (wheel,) = folder.glob("schedlab-*.whl")
    return wheel


def install(wheel: Path, environment: Path) -> Path:
    """A new environment that borrows the dependencies of this one, so that they are not downloaded again."""
    call(sys.executable, "-m", "venv", "--without-pip", str(environment))
    python = environment / "bin" / "python"
    site = Path(
        subprocess.check_output(
            [python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"], text=True
        ).strip()
    )
    call(sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet", "--no-deps", str(wheel))
    borrowed = Path(sysconfig.get_path("purelib"))
    (site / "borrowed.pth").write_text(f"{borrowed}\n")
    found = subprocess.check_output(
        [python, "-c", "import schedlab; print(schedlab.__file__)"], text=True, cwd="/"
    ).strip()
    assert found.startswith(str(environment)), f"the wheel is shadowed by {found}"
    return python


def call(*command: str | Path) -> None:
    subprocess.run([str(c) for c in command], check=True, cwd=ROOT, env={**os.environ, "PYTHONPATH": ""})


if __name__ == "__main__":
    sys.exit(main())
