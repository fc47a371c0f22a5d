"""Builds a wheel for x86_64 and one for aarch64 in `dist`, each with engine and agent, and tries them.

The engine of this machine's wheel is optimised by a profile (tools/profile_guided.py) where the compiler's
llvm-profdata exists. The wheel is installed into a fresh environment, where the command and the agent run. Of the other
one the files are looked at, and its agent runs where qemu-user is installed. Needs `rustup target add` for the other
machine and its C linker (Debian: gcc-aarch64-linux-gnu or gcc-x86-64-linux-gnu); what is missing is named first.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Sequence
from pathlib import Path

import backend
import profile_guided

ROOT = Path(__file__).parents[1]
OUT = ROOT / "dist"
MACHINES = {"x86_64": 62, "aarch64": 183}
"""Names, and `e_machine` of their ELF files."""
LINUX = "unknown-linux-gnu"


def main(machines: Sequence[str]) -> int:
    """Exit code 0, or 2 if something is missing."""
    here = backend.host()
    missing = [words for machine in machines for words in lacking(machine, here)]
    for words in missing:
        print(f"missing: {words}", file=sys.stderr)
    if missing:
        return 2
    # The agent of this machine comes last, so that it is the one that stays in the source tree.
    for machine in sorted(machines, key=lambda machine: here.startswith(machine)):
        wheel = build(machine, here)
        examine(wheel, machine)
        tried = try_here(wheel) if here.startswith(machine) else try_agent(wheel, machine)
        print(f"{wheel.relative_to(ROOT)}: {wheel.stat().st_size / 1e6:.1f} MB; {tried}", flush=True)
    return 0


def lacking(machine: str, here: str) -> list[str]:
    """What is missing to build for a machine."""
    if here.startswith(machine):
        return []
    installed = subprocess.run(["rustc", "--print", "target-libdir", "--target", f"{machine}-{LINUX}"],
                               capture_output=True, text=True)  # fmt: skip
    found = []
    if installed.returncode or not Path(installed.stdout.strip()).is_dir():
        found.append(f"Rust's library for {machine}: rustup target add {machine}-{LINUX}")
    if not shutil.which(linker(machine)):
        found.append(f"{linker(machine)}: apt-get install gcc-{machine.replace('_', '-')}-linux-gnu")
    return found


def linker(machine: str) -> str:
    return f"{machine}-linux-gnu-gcc"


def build(machine: str, here: str) -> Path:
    """One wheel; another of the same machine is replaced."""
    target = f"{machine}-{LINUX}"
    cross = (
        {} if here.startswith(machine) else {f"CARGO_TARGET_{target.upper().replace('-', '_')}_LINKER": linker(machine)}
    )
    backend.build_agent(target, cross)
    for old in OUT.glob(f"schedlab-*{machine}.whl"):
        old.unlink()
    command = ["maturin", "build", "--release", "--target", target, "--interpreter", "python3.11", "--out"]
    environment = {**os.environ, **cross}
    with tempfile.TemporaryDirectory() as folder:
        if why := unprofiled(machine, here):
            print(f"skipped: profile-guided optimisation of the wheel for {machine}: {why}", flush=True)
        elif merge := profile_guided.merger(here):
            environment = profile_guided.profile(merge, command, environment, Path(folder))
        subprocess.run([*command, str(OUT)], cwd=ROOT, env=environment, check=True, stdout=sys.stderr)
    (wheel,) = OUT.glob(f"schedlab-*{machine}.whl")
    return wheel


def unprofiled(machine: str, here: str) -> str | None:
    """Why the engine cannot be profiled."""
    if not here.startswith(machine):
        return "it does not run on this machine"
    if not profile_guided.merger(here):
        return "llvm-profdata of the compiler is missing (rustup component add llvm-tools)"
    return None


def examine(wheel: Path, machine: str) -> None:
    """Engine and agent are in it, both for that machine, and the agent may be executed."""
    with zipfile.ZipFile(wheel) as archive:
        agent = archive.getinfo("schedlab/schedlab-agent")
        engine = next(i for i in archive.infolist() if "_engine" in i.filename and i.filename.endswith(".so"))
        for file in (agent, engine):
            head = archive.read(file)[:20]
            assert head[:4] == b"\x7fELF", f"{file.filename} is no program"
            assert int.from_bytes(head[18:20], "little") == MACHINES[machine], f"{file.filename} is not for {machine}"
        assert agent.external_attr >> 16 & 0o111, "the agent cannot be executed"


def try_here(wheel: Path) -> str:
    """Install it where nothing else is, with its dependencies, and run what a user would."""
    with tempfile.TemporaryDirectory() as folder:
        environment = Path(folder) / "env"
        call(sys.executable, "-m", "venv", environment)
        call(environment / "bin/pip", "install", "--quiet", wheel)
        call(environment / "bin/schedlab", "run", ROOT / "scenarios/custom-program.toml", "--variant", "eevdf", "-q")
        found = output(environment / "bin/python", "-c", "from schedlab.arms import agent; print(agent.find())")
        assert found.startswith(str(environment)), f"the agent of {found} is not the wheel's"
        call(found, "--version")
    return "installed, the command and the agent run"


def try_agent(wheel: Path, machine: str) -> str:
    """Run the agent of another machine, where qemu-user can."""
    emulator = shutil.which(f"qemu-{machine}-static") or shutil.which(f"qemu-{machine}")
    if not emulator:
        return f"examined; its agent was not run: qemu-{machine} is not installed (apt-get install qemu-user-static)"
    with tempfile.TemporaryDirectory() as folder:
        agent = Path(zipfile.ZipFile(wheel).extract("schedlab/schedlab-agent", folder))
        agent.chmod(0o755)
        call(emulator, agent, "--version")
    return "examined, its agent runs under qemu-user"


def call(*command: str | Path) -> None:
    subprocess.run([str(c) for c in command], check=True, cwd="/", stdout=subprocess.DEVNULL)


def output(*command: str | Path) -> str:
    return subprocess.run([str(c) for c in command], check=True, cwd="/", capture_output=True, text=True).stdout.strip()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:] or list(MACHINES)))
