"""Native rows without a kernel: sources, tools, stubs, loads, records, comparison, and the command's errors."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from schedlab.compiled import build, check, child, draw, records, rows, source, stubs, tools, traced, verify
from schedlab.compiled.load import Group, Load, Task, Topology, only
from schedlab.engine import native_engine
from schedlab.errors import ArmError, InputError

HOG = (("r", 1_000_000),)


def tree(folder: Path, **changes: str) -> Path:
    """A directory that looks like the source of a kernel."""
    texts = (
        dict.fromkeys(source.TREE_FILES, "") | {"Makefile": "VERSION = 6\nPATCHLEVEL = 12\nSUBLEVEL = 3\n"} | changes
    )
    for name, text in texts.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


def test_a_tree_has_the_version_of_its_makefile(tmp_path: Path) -> None:
    assert source.find(str(tree(tmp_path)), tmp_path).release == "6.12.3"


@pytest.mark.parametrize(
    ("made", "message"),
    [
        ("nothing", "no such tree or package"),
        ("empty", "it has no Makefile"),
        ("file", "this is no directory"),
        ("configured", "configured or built in place"),
        ("no version", "states no version"),
    ],
)
def test_what_is_no_tree_is_refused(made: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "tree"
    if made == "empty":
        path.mkdir()
    if made == "file":
        path.write_text("")
    if made == "configured":
        tree(path, **{".config": "CONFIG_SMP=y\n"})
    if made == "no version":
        tree(path, Makefile="all:\n")
    with pytest.raises(InputError, match=message):
        source.find(str(path), tmp_path)


def test_other_machines_are_refused() -> None:
    with pytest.raises(ArmError, match="x86_64 only; this machine is aarch64"):
        tools.require("aarch64")


def test_every_missing_tool_is_named_with_its_package(tmp_path: Path) -> None:
    found = tools.missing(lambda name: None if name in ("flex", "bison") else name, tmp_path)
    assert found == {
        "flex": "flex",
        "bison": "bison",
        "/usr/include/gelf.h": "libelf-dev",
        "/usr/include/stdio.h": "libc6-dev",
    }


def test_stubs_are_functions_if_they_are_called_and_objects_otherwise() -> None:
    relocations = """
000000000010  000600000004 R_X86_64_PLT32    0000000000000000 called - 4
000000000020  000700000002 R_X86_64_PC32     0000000000000000 object - 4
"""
    functions = stubs.called(relocations)
    assert functions == {"called"}
    text = stubs.assembly(stubs.undefined("  U called\n  U object\n  U memcpy\n  U sl_trace_pelt\n"), functions)
    assert "called:\n\tincq sl_stub_calls+0(%rip)" in text
    assert f"object:\n\t.zero {stubs.DATA_SIZE}" in text
    assert "sl_trace_pelt:\n\txorl" in text
    assert "memcpy" not in text
    assert '\t.quad 1\n.Lname0:\n\t.asciz "called"' in text


def test_the_compilers_lines_are_shown() -> None:
    said = """make[1]: Entering directory '/x'
kernel/sched/fair.c: In function 'place_entity':
kernel/sched/fair.c:5200:9: error: 'lagg' undeclared
 5200 |         lagg = 0;
make[3]: *** [scripts/Makefile.build:229: kernel/sched/fair.o] Error 1
"""
    assert build.essential(said) == [
        "kernel/sched/fair.c:5200:9: error: 'lagg' undeclared",
        " 5200 |         lagg = 0;",
    ]


def test_a_configuration_gives_only_what_a_build_carries_over(tmp_path: Path) -> None:
    config = tmp_path / "config"
    config.write_text(
        "CONFIG_HZ_1000=y\nCONFIG_EXT4_FS=y\n# CONFIG_SCHED_CLUSTER is not set\n# CONFIG_FOO is not set\n"
    )
    assert build.carried(config) == "CONFIG_HZ_1000=y\nCONFIG_SCHED_CLUSTER=n\n"
    config.write_text("hello\n")
    with pytest.raises(InputError, match="no configuration of a kernel"):
        build.carried(config)


def test_the_shim_is_compiled_as_core_c_is() -> None:
    recorded = (
        "savedcmd_kernel/sched/core.o := gcc -Wp,-MMD,kernel/sched/.core.o.d -I./include -O2 "
        "-DKBUILD_BASENAME='\"core\"' -mcmodel=small -c -o kernel/sched/core.o core.c\n\nsource_x := core.c\n"
    )
    assert build.shim_command(recorded) == ["gcc", "-I./include", "-O2", "-mcmodel=small"]


def test_cpus_are_numbered_with_the_first_threads_first() -> None:
    topology = Topology(nodes=2, llcs_per_node=2, cores_per_llc=2, threads_per_core=2)
    assert [topology.cpu(cpu) for cpu in (0, 3, 7, 8, 15)] == [(0, 0, 0), (3, 1, 0), (7, 3, 1), (0, 0, 0), (7, 3, 1)]


@pytest.mark.parametrize("cpus", [1, 4, 16, 64])
@pytest.mark.parametrize("seed", range(4))
def test_a_drawn_load_is_a_scenario(seed: int, cpus: int) -> None:
    load = draw.draw(seed, cpus, 1_000_000, draw.FEATURES)
    assert load == draw.draw(seed, cpus, 1_000_000, draw.FEATURES)
    scenario = native_engine().loads(load.scenario("6.12"), "load.toml")
    assert [variant.name for variant in scenario.variants] == ["row"]
    lines = load.native().splitlines()
    assert lines[0] == "schedlab-native 1"
    assert sum(line.startswith("task ") for line in lines) == len(load.tasks)


def record(time: int, cpu: int, kind: int, a: int, b: int) -> bytes:
    return struct.pack("<QHHIII", time, cpu, kind, a, b, 0)


def test_decisions_are_read_from_a_trace() -> None:
    lines = b"""# tracer: nop
  <idle>-0  [000] d..2.     0.000000005: sched_process_fork: comm=swapper/0 pid=0 child_comm=t1 child_pid=1
  <idle>-0  [000] d..2.     0.000000005: sched_wakeup_new: comm=t1 pid=1 prio=120 target_cpu=003
  <idle>-0  [003] d..2.     0.000000005: sched_switch: prev_comm=a prev_pid=0 prev_prio=120 prev_state=R ==> \
next_comm=t1 next_pid=1 next_prio=120
  t1-1  [003] d..2.     1.000000007: sched_migrate_task: comm=t1 pid=1 prio=120 orig_cpu=3 dest_cpu=2
  t1-1  [003] d..2.     1.000000009: sched_wakeup: comm=t1 pid=1 prio=120 target_cpu=002
"""
    parsed = records.parse(b"".join(traced._records(lines.splitlines())))
    assert parsed.switches.tolist() == [[5, 3, 0, 1]]
    assert parsed.wakeups.tolist() == [[5, 1, 3], [1_000_000_009, 1, 2]]
    assert parsed.migrations.tolist() == [[1_000_000_007, 1, 3, 2]]


def test_the_stopper_is_left_out_of_the_switches() -> None:
    data = b"".join(
        [
            record(1, 0, records.SWITCH, 0, 5),
            record(2, 0, records.SWITCH | records.TO_STOPPER, 5, 0),
            record(2, 0, records.SWITCH | records.FROM_STOPPER, 0, 6),
            record(3, 1, records.SWITCH | records.TO_STOPPER, 7, 0),
            record(3, 1, records.SWITCH | records.FROM_STOPPER, 0, 7),
        ]
    )
    assert records.parse(data).switches.tolist() == [[1, 0, 0, 5], [2, 0, 5, 6]]


def test_the_cpu_of_a_new_task_is_no_migration() -> None:
    data = record(1, 0, records.MIGRATE, 5, 0 << 16 | 3) + record(1, 0, records.WAKEUP_NEW, 5, 3)
    parsed = records.parse(data + record(9, 0, records.MIGRATE, 5, 3 << 16 | 1))
    assert parsed.migrations.tolist() == [[9, 5, 3, 1]]
    assert parsed.wakeups.tolist() == [[1, 5, 3]]


def test_the_first_difference_is_the_earliest_of_all_kinds() -> None:
    ours = records.parse(record(1, 0, records.SWITCH, 0, 5) + record(9, 0, records.SWITCH, 5, 0))
    theirs = records.parse(record(1, 0, records.SWITCH, 0, 5) + record(4, 1, records.MIGRATE, 5, 1))
    until, found = verify.first_difference(ours, theirs)
    assert until == 4
    assert found is not None
    assert found.kind == "migrations"
    assert found.native == "task 5 moves from CPU 0 to CPU 1"
    assert verify.first_difference(ours, ours) == (verify.NEVER, None)


def test_shrinking_keeps_what_matters() -> None:
    tasks = tuple(Task(0, nice=nice) for nice in range(9))

    def differs(load: Load) -> verify.Difference | None:
        return (
            verify.Difference(5_000_000, "switches", "a", "b") if any(task.nice == 7 for task in load.tasks) else None
        )

    load = Load(Topology(), 10**9, (HOG,), tasks, (Group(),))
    smallest = verify.shrink(differs, load, lambda _: None)
    assert smallest.tasks == (Task(0, nice=7),)
    assert smallest.duration_ns == 6_000_000
    assert only(load, [2]).tasks == (Task(0, nice=2),)


def test_an_unknown_row_is_refused_with_the_nearest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    folder = rows.opened() / "mine"
    folder.mkdir()
    row = rows.Row("mine", "6.12.3", "/src/mine", "0" * 64, "gcc", 250, str(folder))
    row.program.write_text("")
    rows.keep(row)
    assert rows.every() == [row]
    assert rows.find("mine") == row
    with pytest.raises(InputError) as caught:
        rows.find("mien")
    assert caught.value.hint == "did you mean mine?"
    row.program.unlink()
    with pytest.raises(InputError, match="is gone"):
        rows.find("mine")


@pytest.mark.parametrize("name", ["", "../x", "a/b", ".hidden"])
def test_names_are_no_paths(name: str) -> None:
    with pytest.raises(InputError, match="no name of a native row"):
        rows.check_name(name)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["build"], "needs a source tree or package"),
        (["check", "nothing"], 'no native row is called "nothing"'),
        (["list", "x"], "takes no name"),
        (["check", "x", "--seed", "1"], "--seed has no effect on `kernel check`"),
        (["build", "/nonexistent/tree"], "no such tree or package"),
    ],
)
def test_the_command_refuses(arguments: list[str], message: str, schedlab, tmp_path, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(tools, "require", lambda: None)
    code, _, err = schedlab("kernel", *arguments)
    assert code == 2
    assert message in err


def package() -> rows.Row:
    """The scheduler of Debian's package, if it and the tools are there; built once, it stays in the user's cache."""
    name = "linux-source-6.12"
    if not Path(f"/usr/src/{name}.tar.xz").is_file():
        pytest.skip(f"skipped: a real build: the package {name} is not installed")
    try:
        tools.require()
        return build.build(name, lambda _: None)
    except ArmError as e:
        pytest.skip(f"skipped: a real build: {e.message}")


def test_a_real_build() -> None:
    """One test, because two workers cannot build the same row at once."""
    row = package()
    checked = check.check(row.program)
    assert checked.passed, checked.checks
    rows.keep(row)
    for seed in range(3):
        load = draw.draw(seed, 1, 500_000_000, draw.FEATURES)
        found = verify.compare(native_engine(), row.program, "6.12.107", load)
        assert found.difference is None
        assert not found.failure
        assert found.compared["switches"] > 20
    wrong = Load(Topology(), 10**6, (HOG,), (Task(0, group=9),))
    assert "no group 9" in child.execute(row.program, wrong).failure
