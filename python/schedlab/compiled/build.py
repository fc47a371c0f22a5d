"""Compiles the scheduler of a kernel's source tree for user space and links it with the shim."""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Callable, Iterable, Mapping
from importlib.resources import as_file, files
from pathlib import Path

from schedlab.compiled import rows, source, stubs, tools
from schedlab.compiled.rows import Row
from schedlab.compiled.source import Tree
from schedlab.errors import InputError, OutputError, RunError, not_written

Report = Callable[[str], None]

OBJECTS = [
    *(f"kernel/sched/{name}.o" for name in ("core", "fair", "build_policy", "build_utility")),
    "init/init_task.o",
    *(f"lib/{name}.o" for name in ("rbtree", "find_bit", "cpumask", "bitmap", "timerqueue", "plist", "llist")),
    *(f"lib/{name}.o" for name in ("list_sort", "ctype", "math/int_sqrt")),
]
"""What is compiled of the kernel."""

SHIM = (
    *("clock", "topology", "memory", "timers", "interrupts", "locks", "groups", "tasks"),
    *("boot", "events", "load", "driver"),
)
"""The shim's files that include headers of the kernel."""

HASHED = ("kernel/sched", "include", "arch/x86/include", "init/init_task.c", "lib", "Makefile", "kernel/Makefile")
FLAGS = "-mcmodel=small"
CARRIED = re.compile(r"CONFIG_(HZ_\d+|RT_GROUP_SCHED|SCHED_CLUSTER|SCHED_MC|SCHED_SMT|CFS_BANDWIDTH)")
"""Options that are taken from the user's configuration; the others are those of minimal.config."""
REQUIRED = ("64BIT", "SMP", "NUMA", "FAIR_GROUP_SCHED", "HIGH_RES_TIMERS", "NO_HZ_IDLE", "BUG", "DEBUG_BUGVERBOSE")


def build(text: str, report: Report, *, config: Path | None = None, name: str | None = None) -> Row:
    """Build the native row of a tree or package, unless the same one is there already. It is not checked yet.

    Raises:
        InputError: the source is no tree, is not configured, or does not compile (with the compiler's lines).
        ArmError: another architecture, or tools are missing.
        OutputError: the cache can't be written.
    """
    tools.require()
    cache = rows.opened()
    tree = source.find(text, cache / "sources")
    row_name = rows.check_name(name or tree.origin.split()[0].rpartition("/")[2])
    folder = cache / row_name
    _refuse_other_origin(row_name, tree)
    with rows.locked(folder), as_file(files("schedlab.compiled")) as data:
        fragment = minimal(data) + carried(config)
        key = key_of(tree.path, data, fragment)
        kept = next((row for row in rows.every() if row.name == row_name and row.key == key), None)
        if kept and kept.program.is_file():
            report(f"{row_name} is up to date")
            return kept
        work = folder / "build"
        _configure(tree, work, fragment, report)
        _compile(tree, work, data, report)
        program = _link(work, data, key, folder)
    row = Row(row_name, tree.release, tree.origin, key, compiler(), hz_of(work), str(folder))
    assert row.program == program
    return row


def _refuse_other_origin(name: str, tree: Tree) -> None:
    for row in rows.every():
        if row.name == name and row.origin.split()[0] != tree.origin.split()[0]:
            hint = "`--name NAME` gives this one another name"
            raise InputError(f"{name} is already the native row of {row.origin}", hint=hint)


def minimal(data: Path) -> str:
    """The fragment that every build adds to tinyconfig."""
    return (data / "minimal.config").read_text()


def carried(config: Path | None) -> str:
    """The options of the user's configuration that a build takes over, as a fragment."""
    if config is None:
        return ""
    try:
        lines = config.read_text(errors="replace").splitlines()
    except OSError as e:
        raise InputError(f"cannot read the configuration: {e.strerror}", file=str(config)) from None
    if not any(line.startswith("CONFIG_") for line in lines):
        raise InputError("this is no configuration of a kernel", file=str(config), hint="such as /boot/config-*")
    wanted = [line for line in lines if CARRIED.fullmatch(line.partition("=")[0])]
    unset = [
        m[1] for line in lines if (m := re.fullmatch(r"# (CONFIG_\w+) is not set", line)) and CARRIED.fullmatch(m[1])
    ]
    return "\n".join([*wanted, *(f"{option}=n" for option in unset)]) + "\n"


def key_of(tree: Path, data: Path, fragment: str) -> str:
    """The hash of everything that the program depends on."""
    digest = hashlib.sha256(f"{compiler()}\0{fragment}\0{FLAGS}".encode())
    for root, places in ((tree, [tree / name for name in HASHED]), (data, [data / "shim"])):
        for path in _files(places):
            digest.update(f"\0{path.relative_to(root)}\0".encode())
            digest.update(path.read_bytes())
    return digest.hexdigest()


def _files(places: Iterable[Path]) -> Iterable[Path]:
    for place in places:
        if place.is_file():
            yield place
        else:
            yield from (path for path in sorted([*place.rglob("*.[chS]"), *place.rglob("*.ld")]) if path.is_file())


def compiler() -> str:
    """The compiler's version."""
    return _output(["gcc", "--version"]).splitlines()[0]


def hz_of(work: Path) -> int:
    """The timer frequency of the configuration."""
    return int(_config(work).get("HZ", "0"))


def _config(work: Path) -> Mapping[str, str]:
    lines = (work / ".config").read_text().splitlines()
    return {line[7:].partition("=")[0]: line.partition("=")[2] for line in lines if line.startswith("CONFIG_")}


def _configure(tree: Tree, work: Path, fragment: str, report: Report) -> None:
    stamp = work / "schedlab.config"
    if stamp.is_file() and stamp.read_text() == f"{tree.path}\n{fragment}":
        return
    report(f"configuring {tree.release}")
    try:
        shutil.rmtree(work, ignore_errors=True)
        work.mkdir(parents=True)
        _make(tree, work, ["tinyconfig"], "configure")
        with (work / ".config").open("a") as config:
            config.write(fragment)
        _make(tree, work, ["olddefconfig"], "configure")
        found = _config(work)
        lacks = [option for option in REQUIRED if found.get(option) != "y"]
        if lacks:
            raise InputError(
                f"this tree can't be configured: it has no CONFIG_{lacks[0]}",
                file=str(tree.path),
                hint="kernels of x86-64 from 6.1 on are supported",
            )
        report("preparing the headers, which takes about 20 s")
        _make(tree, work, ["prepare"], "prepare")
        stamp.write_text(f"{tree.path}\n{fragment}")
    except OSError as e:
        raise not_written("cannot configure the kernel", e, file=str(work)) from None


def _compile(tree: Tree, work: Path, data: Path, report: Report) -> None:
    report("compiling kernel/sched")
    flags = f"KCFLAGS={FLAGS} -include {data / 'shim' / 'force.h'}"
    _make(tree, work, [flags, *OBJECTS], "compile")
    report("compiling the shim")
    command = shim_command((work / "kernel/sched/.core.o.cmd").read_text())
    for name in SHIM:
        own = [f"-DKBUILD_{what}={json_string(value)}" for what, value in _kbuild(name)]
        includes = [f"-I{tree.path}/kernel/sched", f"-I{data / 'shim'}"]
        output = ["-c", "-o", f"schedlab-{name}.o", str(data / "shim" / f"{name}.c")]
        _checked(
            [*command, *own, "-Wno-missing-declarations", *includes, *output], work, f"compile the shim's {name}.c"
        )


def _kbuild(name: str) -> list[tuple[str, str]]:
    return [("MODNAME", "schedlab"), ("MODFILE", "schedlab"), ("BASENAME", name)]


def json_string(text: str) -> str:
    """A C string."""
    return f'"{text}"'


def shim_command(recorded: str) -> list[str]:
    """The compiler's command for core.c, as make has recorded it, without its input and output."""
    line = next((line for line in recorded.splitlines() if re.match(r"(saved)?cmd_\S+ :=", line)), "")
    words = shlex.split(line.partition(":=")[2].partition(";")[0].replace("\\#", "#"))
    if not words:
        raise InputError("make has not recorded how it compiles kernel/sched/core.c")
    kept = list[str]()
    for word in words:
        if word == "-c":
            break
        if not word.startswith(("-Wp,-MMD", "-Wp,-MD", "-DKBUILD_")):
            kept.append(word)
    return kept


def _link(work: Path, data: Path, key: str, folder: Path) -> Path:
    """The program, from the objects of the kernel, the shim, the stubs of what is missing, and host.c."""
    objects = [*OBJECTS, *(f"schedlab-{name}.o" for name in SHIM)]
    _checked(["ld", "-r", "-o", "schedlab-all.o", *objects], work, "link the kernel's objects with the shim")
    undefined = stubs.undefined(_output(["nm", "--undefined-only", "schedlab-all.o"], work))
    functions = stubs.called(_output(["readelf", "--relocs", "--wide", "schedlab-all.o"], work))
    try:
        (work / "schedlab-stubs.s").write_text(stubs.assembly(undefined, functions))
    except OSError as e:
        raise not_written("cannot link the kernel", e, file=str(work)) from None
    _checked(["gcc", "-c", "-o", "schedlab-stubs.o", "schedlab-stubs.s"], work, "assemble the stubs")
    _checked(["ld", "-r", "-o", "schedlab-kernel.o", "schedlab-all.o", "schedlab-stubs.o"], work, "link the stubs")
    exported = [f"--keep-global-symbol={name}" for name in stubs.EXPORTED]
    renamed = [f"--redefine-sym={name}={new}" for name, new in stubs.HOST.items()]
    _checked(["objcopy", *exported, *renamed, "schedlab-kernel.o", "schedlab-hidden.o"], work, "hide the symbols")
    host = ["gcc", "-O2", "-fno-pie", "-mstackrealign", "-c", "-o", "schedlab-host.o", str(data / "shim" / "host.c")]
    _checked(host, work, "compile the shim's host.c")
    script = data / "shim" / "link.ld"
    linked = ["-Wl,--no-warn-rwx-segments", f"-Wl,-T,{script}", "-z", "noexecstack", "-o", "schedlab-program"]
    _checked(["gcc", "-static", "-no-pie", *linked, "schedlab-host.o", "schedlab-hidden.o"], work, "link the program")
    program = folder / f"{rows.PROGRAM}-{key[:16]}"
    try:
        os.replace(work / "schedlab-program", program)
    except OSError as e:
        raise not_written("cannot store the program", e, file=str(program)) from None
    return program


def _make(tree: Tree, work: Path, goals: list[str], what: str) -> None:
    jobs = str(len(os.sched_getaffinity(0)))
    command = ["make", "--silent", "-j", jobs, "-C", str(tree.path), f"O={work}", "ARCH=x86_64", *goals]
    _checked(command, work, f"{what} the kernel")


def _checked(command: list[str], work: Path, what: str) -> None:
    """Execute a step of the build.

    Raises:
        InputError: it fails; the message ends with the compiler's own lines.
        OutputError: there is no room.
    """
    environment = {**os.environ, "LC_ALL": "C"}
    environment.pop("MAKEFLAGS", None)
    try:
        done = subprocess.run(
            command,
            cwd=work,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
        )
    except OSError as e:
        raise RunError(f"cannot {what}: {e.strerror}") from None
    if done.returncode == 0:
        return
    said = done.stderr + done.stdout
    if "No space left on device" in said:
        raise OutputError(f"cannot {what}: no space left on the device", file=str(work))
    lines = essential(said)
    raise InputError(f"cannot {what}:\n" + "\n".join(f"  {line}" for line in lines))


def essential(said: str, most: int = 20) -> list[str]:
    """The lines of a failed step that name its cause: the compiler's errors with what it shows of the source."""
    lines = said.splitlines()
    first = next((i for i, line in enumerate(lines) if re.search(r"\berror\b:|undefined reference", line)), None)
    if first is None:
        return [line for line in lines if line.strip()][-most:]
    picked = list[str]()
    for line in lines[first:]:
        if line.startswith("make"):
            break
        picked.append(line)
    return picked[:most]


def _output(command: list[str], work: Path | None = None) -> str:
    try:
        done = subprocess.run(command, cwd=work, capture_output=True, text=True, check=False)
    except OSError as e:
        raise RunError(f"cannot run {command[0]}: {e.strerror}") from None
    if done.returncode:
        raise RunError(f"{command[0]} failed: {done.stderr.strip()[-500:]}")
    return done.stdout
