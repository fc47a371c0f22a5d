"""`schedlab record` with stand-ins for QEMU, apt and busybox: what goes into a guest, what comes out, how it fails."""

from __future__ import annotations

import errno
import gzip
import os
import shutil
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

import traces
from schedlab.cli import main
from schedlab.errors import ArmError, InputError, RunError
from schedlab.guests import debian, initramfs, programs
from schedlab.guests.debian import Candidate
from schedlab.guests.qemu import QEMU, Machine, boot
from schedlab.record import running, text

Cli = Callable[..., tuple[int, str, str]]

# A guest that does what it should: says its steps, sends a trace.
GUEST = """\
for word; do case $word in file:*) trace=${word#file:};; esac; done
say() { printf 'schedlab: %s\\r\\n' "$*"; }
"""
GOOD = (
    GUEST + 'say setting up; say running the workload; say workload ended with 0; gzip <in.ftrace >"$trace"; say sent\n'
)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """A working directory with programs of our own, first in the path."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    (tmp_path / "image").write_text("a kernel")
    traces.write(tmp_path / "in.ftrace")

    def program(name: str, script: str) -> None:
        path = tmp_path / "bin" / name
        path.write_text("#!/bin/sh\n" + script)
        path.chmod(0o755)

    program("busybox", "printf 'sh\\nsleep\\ntrue\\n'\n")
    program("qemu-system-x86_64", GOOD)
    return program


@pytest.fixture
def cli(here: Callable[..., None], capsys: pytest.CaptureFixture[str]) -> Cli:
    pytest.importorskip("schedlab._engine", reason="the engine is not built")

    def call(*arguments: str) -> tuple[int, str, str]:
        code = main(["record", *arguments])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return call


def test_a_recording_is_a_trace_with_its_origin(cli: Cli) -> None:
    code, out, err = cli("--kernel", "./image", "--out", "t.ftrace", "--", "sh", "-c", "sleep 1; true")
    assert (code, err) == (0, "")
    assert out == f"t.ftrace: 6.1.0-1-amd64, 1 CPU, {traces.RECORDS} records, 1.196000 s\n"
    lines = Path("t.ftrace").read_text().splitlines()
    assert "# image image" in lines
    digest = next(line for line in lines if line.startswith("# image_sha256 "))
    assert len(digest.split()[-1]) == 64
    assert "# workload sh -c 'sleep 1; true'" in lines
    assert any(line.startswith("# recorded_by schedlab ") and "icount" in line for line in lines)
    assert "# hz 250" in lines
    assert main(["replay", "t.ftrace"]) == 0


@pytest.mark.parametrize(
    ("emulation", "words"),
    [
        ("counted", ["-accel tcg,thread=single -icount shift=1,sleep=off"]),
        ("turns", ["-accel tcg,thread=single -cpu"]),
        (None, ["-accel tcg,thread=multi"]),
    ],
)
def test_several_cpus_run_as_ordered(
    emulation: str | None, words: list[str], cli: Cli, here: Callable[..., None]
) -> None:
    here("qemu-system-x86_64", f'echo "$*" >arguments; {GOOD}')
    ordered = ["--emulation", emulation] if emulation else []
    smp = ["--cpus", "4", "--smp", "sockets=2,cores=1,threads=2", "--nodes", "2"]
    assert cli("--kernel", "image", *smp, *ordered, "--out", "t.ftrace", "--", "true")[0] == 0
    arguments = Path("arguments").read_text()
    for word in [*words, "-smp 4,sockets=2,cores=1,threads=2", "node,nodeid=1,memdev=m1,cpus=2-3"]:
        assert word in arguments


def test_the_suffix_chooses_the_format(cli: Cli) -> None:
    assert cli("--kernel", "image", "--out", "t.dat", "--", "true")[0] == 0
    assert Path("t.dat").read_bytes().startswith(b"\x17\x08\x44tracing")


def test_verbose_shows_the_steps(cli: Cli) -> None:
    _, _, err = cli("--kernel", "image", "-v", "--", "true")
    assert "guest: running the workload\n" in err
    assert Path("image-1cpu.ftrace.gz").exists()


def test_a_workload_that_fails_leaves_its_trace(cli: Cli, here: Callable[..., None]) -> None:
    here("qemu-system-x86_64", GOOD.replace("ended with 0", "ended with 7"))
    code, out, err = cli("--kernel", "image", "--out", "t.ftrace", "--", "true")
    assert code == 3
    assert out.startswith("t.ftrace: ")
    assert "the workload ended with exit code 7" in err


BROKEN = [
    # guest, options, words
    ("echo '[ 0.1] Kernel panic - not syncing: no init'; exit 0", (), ["guest's Kernel panic - not syncing: no init"]),
    (
        "echo 'SeaBIOS'; exec sleep 60",
        ("--time-limit", "1"),
        ["did not reach its init within", "| SeaBIOS", "ignore_loglevel"],
    ),
    ("exec sleep 60", ("--time-limit", "1"), ["did not reach its init within"]),
    ("exit 1", (), ["QEMU ended with 1 without output"]),
    ("echo 'qemu: no such machine' >&2; exit 1", (), ["| qemu: no such machine"]),
    (GUEST + "say running the workload; exec sleep 60", ("--time-limit", "1"), ["still at `running the workload`"]),
    (GUEST + "say running the workload; exit 0", (), ["stopped at `running the workload`"]),
    (GUEST + "say failed: the kernel has no tracefs", (), ["cannot go on: the kernel has no tracefs"]),
    (GOOD.replace("gzip <in.ftrace", "gzip <in.ftrace | head -c 500"), (), ["trace is incomplete"]),
    (GOOD.replace("gzip <in.ftrace", "true"), (), ["nothing was recorded"]),
]


@pytest.mark.parametrize(("guest", "options", "words"), BROKEN, ids=[words[0] for _, _, words in BROKEN])
def test_a_broken_guest_is_one_message(
    guest: str, options: tuple[str, ...], words: list[str], cli: Cli, here: Callable[..., None]
) -> None:
    here("qemu-system-x86_64", guest)
    began = time.monotonic()
    code, out, err = cli("--kernel", "image", *options, "--out", "t.ftrace", "--", "true")
    assert time.monotonic() - began < 30
    assert out == ""
    assert code in (2, 3)
    assert err.count("error: ") == 1
    for word in words:
        assert word in err
    assert not Path("t.ftrace").exists()


def test_a_boot_that_qemu_breaks_is_tried_again(cli: Cli, here: Callable[..., None]) -> None:
    panic = "echo 'Kernel panic - not syncing: x'; exit 0"
    here("qemu-system-x86_64", f"echo >>boots; [ $(wc -l <boots) -lt 3 ] && {{ {panic}; }}\n" + GOOD)
    code, _, err = cli("--kernel", "image", "--cpus", "2", "-v", "--out", "t.ftrace", "--", "true")
    assert (code, err.count("booting again")) == (0, 2)
    here("qemu-system-x86_64", f"echo >>boots; {panic}\n")
    Path("boots").unlink()
    assert cli("--kernel", "image", "--cpus", "2", "--", "true")[0] == 3
    assert Path("boots").read_text().count("\n") == 4
    here("qemu-system-x86_64", f"echo >>boots; {GUEST} say running the workload; {panic}\n")
    Path("boots").unlink()
    assert cli("--kernel", "image", "--cpus", "2", "--", "true")[0] == 3
    assert Path("boots").read_text().count("\n") == 1


BAD = [
    (["--", "true"], 2, ["--kernel"]),
    (["--kernel", "image"], 2, ["WORKLOAD"]),
    (["--kernel", "./nowhere", "--", "true"], 2, ["there is no such kernel image", "--> ./nowhere"]),
    (
        ["--kernel", "image", "--", "frobnicate", "-x"],
        2,
        ["the workload names no program that is installed here: frobnicate -x"],
    ),
    (["--kernel", "image", "--", "true 'x"], 2, ["is not a valid shell command"]),
    (["--kernel", "image", "--cpus", "0", "--", "true"], 2, ["whole number"]),
    (["--kernel", "running", "--check-points", "--", "true"], 2, ["--check-points is not supported"]),
    (["--kernel", "running", "--cpus", "2", "--", "true"], 2, ["--cpus is not supported for the running kernel"]),
    (["--kernel", "running", "--nodes", "2", "--", "true"], 2, ["--nodes is not supported for the running kernel"]),
    (["--kernel", "image", "--cpus", "4", "--nodes", "3", "--", "true"], 2, ["4 CPUs cannot be divided among 3 nodes"]),
    (["--kernel", "image", "--out", "t.nothing", "--", "true"], 2, ["no trace format has this suffix"]),
]


@pytest.mark.parametrize(("arguments", "code", "words"), BAD, ids=[" ".join(b[0]) for b in BAD])
def test_bad_orders(arguments: list[str], code: int, words: list[str], cli: Cli) -> None:
    found, out, err = cli(*arguments)
    assert (found, out) == (code, "")
    assert err.count("error: ") == 1
    for word in words:
        assert word in err


@pytest.mark.parametrize("with_what", [signal.SIGINT, signal.SIGKILL], ids=["ctrl-c", "kill"])
def test_no_guest_outlives_its_recorder(with_what: signal.Signals, cli: Cli, here: Callable[..., None]) -> None:
    here("qemu-system-x86_64", GUEST + "echo $$ >pid; say setting up; exec sleep 1000")
    process = subprocess.Popen(
        [sys.executable, "-m", "schedlab", "record", "--kernel", "image", "--", "true"],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)},
        stderr=subprocess.DEVNULL,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # a background shell job ignores it
    )
    try:
        _wait_for(lambda: Path("pid").exists() and Path("pid").read_text().endswith("\n"))
        guest = int(Path("pid").read_text())
        process.send_signal(with_what)
        process.wait(30)
    finally:
        process.kill()
    _wait_for(lambda: not Path(f"/proc/{guest}").exists())
    if with_what is signal.SIGINT:
        assert process.returncode == 130


def _wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_the_command_line_of_the_machine() -> None:
    one, two = Machine(Path("k"), 1, 512), Machine(Path("k"), 2, 512, "threadirqs")
    assert "-icount" in one.command(Path("i"), Path("t"))
    assert "-icount" not in two.command(Path("i"), Path("t"))
    assert two.command(Path("i"), Path("t"))[-1].endswith("noautogroup cryptomgr.notests threadirqs")
    assert "autogroup" not in Machine(Path("k"), 1, 512, autogroup=True).arguments()


def test_the_archive_is_one_that_cpio_reads() -> None:
    files = {"usr/bin/tool": Path(__file__)}
    packed = initramfs.build(files, {"init": "#!/bin/sh\n"})
    assert packed == initramfs.build(files, {"init": "#!/bin/sh\n"})
    entries = _entries(gzip.decompress(packed))
    assert entries["init"] == (stat.S_IFREG | 0o755, b"#!/bin/sh\n")
    assert entries["usr/bin/tool"][1] == Path(__file__).read_bytes()
    assert entries["usr/bin"][0] == stat.S_IFDIR | 0o755
    assert stat.S_ISCHR(entries["dev/console"][0])
    assert list(entries)[-1] == "TRAILER!!!"
    assert list(entries).index("usr") < list(entries).index("usr/bin") < list(entries).index("usr/bin/tool")


def _entries(archive: bytes) -> dict[str, tuple[int, bytes]]:
    """newc, read by its description: 13 hexadecimal fields, name and content padded to four bytes."""
    found, at = {}, 0
    while at < len(archive):
        assert archive[at : at + 6] == b"070701"
        fields = [int(archive[at + 6 + 8 * i : at + 14 + 8 * i], 16) for i in range(13)]
        mode, size, name_size = fields[1], fields[6], fields[11]
        name = archive[at + 110 : at + 110 + name_size - 1].decode()
        content = (at + 110 + name_size + 3) // 4 * 4
        found[name] = (mode, archive[content : content + size])
        at = (content + size + 3) // 4 * 4
    return found


def test_programs_bring_their_libraries(here: Callable[..., None], tmp_path: Path) -> None:
    (tmp_path / "tool").write_bytes(b"\x7fELF")
    listed = "\tlinux-vdso.so.1 (0x7ff0)\n\tlibx.so => /lib/libx.so (0x7f01)\n\t/lib64/ld.so.2 (0x7f02)\n"
    found = programs.with_libraries(tmp_path / "tool", lambda _: listed)
    assert list(found) == [str(tmp_path / "tool")[1:], "lib/libx.so", "lib64/ld.so.2"]
    here("script", "true\n")
    with pytest.raises(InputError, match="is not a binary"):
        programs.with_libraries(tmp_path / "bin/script")


def test_files_that_the_workload_names_are_there(here: Callable[..., None], tmp_path: Path) -> None:
    Path("job.json").write_text("{}")
    line = programs.shell_line(["sh", "job.json", str(tmp_path / "job.json")])
    found = programs.files(line, tmp_path / "bin/busybox")
    assert found["work/job.json"] == Path("job.json")
    assert found[str(tmp_path / "job.json")[1:]] == tmp_path / "job.json"
    assert programs.shell_line(["a | b"]) == "a | b"
    assert programs.shell_line(["a", "b c"]) == "a 'b c'"


def test_a_program_by_a_relative_path_is_where_the_workload_starts(here: Callable[..., None], tmp_path: Path) -> None:
    here("ldd", "echo not a dynamic executable\n")
    load = Path("load")
    load.write_bytes(b"\x7fELF")
    load.chmod(0o755)
    assert programs.files("./load fast", tmp_path / "bin/busybox")["work/load"] == load


def test_a_dynamic_busybox_is_refused(here: Callable[..., None], monkeypatch: pytest.MonkeyPatch) -> None:
    here("ldd", "echo 'libc.so.6 => /lib/libc.so.6 (0x1)'\n")
    with pytest.raises(ArmError, match="is not static"):
        programs.find_busybox()


MADISON = """\
linux-image-cloud-amd64 |   7.2.13-1 | http://x/debian sid/main amd64 Packages
linux-image-cloud-amd64 | 6.12.117-1 | http://x/debian-security trixie-security/main amd64 Packages
linux-image-cloud-amd64 | 6.12.107-1 | http://x/debian trixie/main amd64 Packages
linux-image-cloud-amd64 |  6.1.192-2 | http://x/debian-security bookworm-security/main amd64 Packages
linux-image-cloud-amd64 |  6.1.176-1 | http://x/debian bookworm/main amd64 Packages
linux-image-cloud-amd64 |  6.1.176-1 | http://x/debian bookworm/main Sources
"""


@pytest.mark.parametrize(
    ("name", "version"),
    [
        ("6.1", "6.1.192-2"),
        ("6.1.176", "6.1.176-1"),
        ("6.12", "6.12.117-1"),
        ("6.12.107-1", "6.12.107-1"),
        ("7", "7.2.13-1"),
        ("sid", "7.2.13-1"),
        ("trixie", "6.12.117-1"),
        ("bookworm", "6.1.192-2"),
        ("6", "6.12.117-1"),
        ("6.18", None),
        ("6.12.10", None),
        ("", None),
    ],
)
def test_a_kernel_by_version_or_suite(name: str, version: str | None) -> None:
    candidates = debian.parse_madison(MADISON)
    assert len(candidates) == 5
    found = debian.choose(name, candidates)
    assert (found.version if found else None) == version


@pytest.mark.parametrize(
    ("package", "version", "fits"),
    [
        ("linux-image-7.0.13+deb13-cloud-amd64", "7.0", True),
        ("linux-image-7.0.13+deb13-cloud-amd64", "7.0.13", True),
        ("linux-image-7.0.13+deb13-cloud-amd64", "7.0.1", False),
        ("linux-image-7.0.13+deb13-amd64", "7.0", False),
        ("linux-image-6.1.0-56-cloud-amd64-dbg", "6.1", False),
        ("linux-image-cloud-amd64", "7", False),
    ],
)
def test_superseded_images_go_by_their_own_names(package: str, version: str, fits: bool) -> None:
    assert debian.is_image(package, version) == fits


def test_a_version_that_no_metapackage_names_is_looked_for_by_package(
    tmp_path: Path, here: Callable[..., None]
) -> None:
    here(
        "apt-cache",
        'case "$*" in\n'
        "*pkgnames*) echo linux-image-7.0.9+deb13-cloud-amd64 linux-image-7.0.13+deb13-cloud-amd64 ;;\n"
        "*linux-image-7.0*) for v in 9 13; do\n"
        'echo "linux-image-7.0.$v+deb13-cloud-amd64 | 7.0.$v-1 |'
        ' http://x/debian trixie-backports/main amd64 Packages"\n'
        "done ;;\n"
        f"*) cat <<'END'\n{MADISON}END\n;;\nesac\n",
    )
    for tool in ("apt-get", "dpkg"):
        here(tool, "exit 0\n")
    (tmp_path / "apt").mkdir()
    (tmp_path / "apt/updated").touch()
    apt = debian.Apt(tmp_path)
    assert (apt.best("7.0").version, apt.best("6.1").version) == ("7.0.13-1", "6.1.192-2")


def test_a_kernel_by_package() -> None:
    package = Candidate("linux-image-6.1.0-56-amd64", "6.1.192-2", "bookworm")
    assert debian.choose("linux-image-6.1.0-56-amd64", [package]) == package


@pytest.mark.parametrize(
    ("name", "depends", "following"),
    [
        (
            "linux-image-cloud-amd64",
            "linux-image-6.1.0-56-cloud-amd64 (= 6.1.192-2)",
            "linux-image-6.1.0-56-cloud-amd64",
        ),
        ("linux-image-7-amd64", "linux-base-7-amd64 (= 7), linux-binary-7-amd64 (= 7)", "linux-binary-7-amd64"),
        ("linux-image-6-amd64", "kmod, linux-base (>= 4.3~)", None),
    ],
)
def test_the_image_is_found_through_dependencies(name: str, depends: str, following: str | None) -> None:
    found = debian.next_package(name, f"Package: {name}\nDepends: {depends}\n")
    assert (found[0] if found else None) == following


def test_security_updates_come_from_their_own_archive() -> None:
    rows = debian.sources(["http://x/debian/", "http://x/debian-security/"])
    assert ("http://x/debian/", "sid") in rows
    assert ("http://x/debian-security/", "bookworm-security") in rows
    assert ("http://x/debian/", "bookworm-security") not in rows
    assert not any(suite == "sid-security" for _, suite in rows)


APT = """\
case "$*" in
*indextargets*) echo http://x/debian/;;
*madison*) echo 'linux-image-cloud-amd64 | 6.1.5-1 | http://x/debian bookworm/main amd64 Packages';;
*show*cloud-amd64=*) echo 'Depends: linux-image-6.1.0-5-amd64 (= 6.1.5-1)';;
*show*) echo 'Depends: kmod';;
*download*) touch k.deb; echo >>"$XDG_CACHE_HOME/downloads";;
esac
"""


def test_a_debian_kernel_is_downloaded_once(cli: Cli, here: Callable[..., None]) -> None:
    for tool in ("apt-get", "apt-cache"):
        here(tool, APT)
    here("dpkg", "mkdir -p boot; echo kernel >boot/vmlinuz-6.1.0-5-amd64\n")
    for _ in range(2):
        code, _, err = cli("--kernel", "6.1", "--out", "t.ftrace", "--", "true")
        assert (code, err) == (0, "")
    assert Path("cache/downloads").read_text().count("\n") == 1
    assert "# image linux-image-6.1.0-5-amd64 6.1.5-1" in Path("t.ftrace").read_text().splitlines()
    code, _, err = cli("--kernel", "6.7", "--out", "t.ftrace", "--", "true")
    assert code == 2
    assert "no kernel `6.7`" in err
    assert "the archive has 6.1.5-1" in err


def test_a_trace_ends_where_the_first_buffer_was_full(tmp_path: Path) -> None:
    lines = [f"{'sh':>16}-{cpu + 1:<7} [00{cpu}] d..2.   1.00000{t}: x: y" for t in range(8) for cpu in (0, 1)]
    kept = [line for line in lines if "[001]" not in line or line.split()[3] < "1.000005"]
    raw = tmp_path / "raw"
    raw.write_text("\n".join(["# dropped 1 99", "# tracer: nop", *kept]) + "\n")
    found = text.whole(raw, tmp_path / "out", ["a b"])
    assert (found.cut, found.records) == (True, 10)
    written = found.path.read_text().splitlines()
    assert written[:3] == ["# a b", "# dropped 1 99", "# tracer: nop"]
    assert written[-1] == lines[9]
    raw.write_bytes(gzip.compress(("# tracer: nop\n" + "\n".join(lines) + "\n").encode()))
    found = text.whole(raw, tmp_path / "out", [], records=5)
    assert not found.cut
    assert found.path.read_text().splitlines() == ["# tracer: nop", *lines[:5]]


def test_the_header_says_what_the_kernel_says() -> None:
    header = running.HEADER
    done = subprocess.run(["sh", str(header)], capture_output=True, text=True, check=True)
    lines = done.stdout.splitlines()
    assert lines[0].startswith(f"# kernel {os.uname().release} cpus ")
    assert all(line.startswith("# ") for line in lines)


@pytest.mark.parametrize("through", ["tracefs", "perf sched record"])
def test_the_running_kernel(through: str, cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    if through != "tracefs":
        monkeypatch.setattr(running, "TRACEFS", ())
    code, out, err = cli("--kernel", "running", "--out", "t.ftrace.gz", "--", "sleep 0.05; sleep 0.05")
    if code == 4:
        pytest.skip(err.splitlines()[0])
    # Tracing belongs to the whole machine: a recorder of someone else may have been killed just now. Nor do all virtual
    # machines record every switch, which the command reports.
    of_the_machine = ("killed r", "records are missing without a mark of the recorder: ")
    said = [line for line in err.splitlines() if not any(part in line for part in of_the_machine)]
    assert (code, said) == (0, [])
    assert os.uname().release in out
    with gzip.open("t.ftrace.gz", "rt") as trace:
        lines = trace.read().splitlines()
    assert "# workload sleep 0.05; sleep 0.05" in lines
    ways = (f" through {through}", f" through {through} and BPF")
    assert any(line.startswith("# recorded_by schedlab ") and line.endswith(ways) for line in lines)
    assert sum(" sched_switch: " in line and "comm=sleep" in line for line in lines) >= 4
    assert not list(Path("/sys/kernel/tracing/instances").glob(f"schedlab-{os.getpid()}"))


def test_qemu_takes_the_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if not shutil.which(QEMU):
        pytest.skip(f"{QEMU} is not installed (qemu-system-x86)")
    for name in ("image", "initramfs"):
        (tmp_path / name).write_text("neither a kernel nor an archive")
    for cpus in (1, 2):
        with pytest.raises(RunError, match=r"(?i)kernel"):
            boot(Machine(tmp_path / "image", cpus, 64), tmp_path / "initramfs", tmp_path / "trace", 60, lambda _: None)


def test_a_guest_has_what_a_workload_needs() -> None:
    try:
        busybox = programs.find_busybox()
    except ArmError as e:
        pytest.skip(e.message)
    found = programs.files("/usr/bin/env | cat", busybox)
    assert any(name.startswith("lib") and "libc.so" in name for name in found)
    entries = _entries(gzip.decompress(initramfs.build(found, {"init": "#!/bin/busybox sh\n"})))
    assert entries["bin/busybox"][1] == busybox.read_bytes()
    assert "usr/bin/env" in entries


def test_a_full_trace_file_names_the_file_and_not_tracefs(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(errno.EFBIG, os.strerror(errno.EFBIG))

    monkeypatch.setattr(running, "_through_tracefs", full)
    code, _, err = cli("--kernel", "running", "--out", "t.ftrace", "--", "true")
    assert code == 3
    assert "cannot write the recorded trace: File too large" in err
    assert "ulimit -f" in err
    assert "perf" not in err


def test_the_output_of_a_workload_is_printed(capfd: pytest.CaptureFixture[str]) -> None:
    assert running._run("echo to stdout; echo to stderr >&2; exit 3") == 3
    assert capfd.readouterr() == ("to stdout\n", "to stderr\n")
