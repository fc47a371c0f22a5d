"""`schedlab scx check` as a user meets it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

pytest.importorskip("schedlab._engine", reason="the engine is not built")

from schedlab.cli import main
from schedlab.guests import btf, debian
from schedlab.guests.debian import Package

Cli = Callable[..., tuple[int, str, str]]
OBJECTS = Path(__file__).resolve().parents[2] / "crates/schedlab-bpf/schedulers"
OLD, NEW = (str(OBJECTS / f"lab_kernel_{age}.bpf.o") for age in ("old", "new"))
NEWEST = str(OBJECTS / "lab_newest.bpf.o")


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str]) -> Cli:
    def call(*arguments: str) -> tuple[int, str, str]:
        try:
            code = main(arguments)
        except SystemExit as e:
            code = int(e.code or 0)
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return call


def test_each_kernel_has_a_line_and_what_it_lacks_has_a_place(cli: Cli) -> None:
    code, out, err = cli("scx", "check", NEWEST, "--kernel", f"{OLD},{NEW}")
    assert (code, err) == (1, "")
    assert "lab_kernel_old.bpf.o  no     1 kfunc, 1 field, 1 constant, 1 operation, 1 map" in out
    assert "lab_kernel_new.bpf.o  yes    nothing" in out
    needed = out.split("lacks:")[1].split("not in lab_kernel_old.bpf.o")[0]
    assert "field struct task_struct.lab_new_field\n    used by newest_enqueue, instruction 2 (lab_newest" in needed
    assert "lab_bpf_changed_function" not in needed
    assert "kfunc lab_bpf_changed_function (its parameters or result differ)" in out


def test_every_object_is_answered_and_a_kernel_with_everything_is_no_failure(cli: Cli) -> None:
    code, out, _ = cli("scx", "check", NEWEST, NEWEST, "--kernel", NEW, "--json", "-")
    document = json.loads(out)
    assert (code, document["schema"]) == (0, "schedlab.scx-check/1")
    assert [one["scheduler"] for one in document["objects"]] == ["newest_ops", "newest_ops"]
    (kernel,) = document["objects"][0]["lacks"]
    assert (kernel["kernel"], kernel["runs"]) == ("lab_kernel_new.bpf.o", True)
    assert {lack["needed"] for lack in kernel["lacks"]} == {False}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((str(OBJECTS / "lab.h"), "--kernel", NEW), "this is not a BPF object, and none is embedded in it"),
        ((OLD, "--kernel", NEW), "the BPF object is no scheduler"),
        ((str(OBJECTS / "absent.o"), "--kernel", NEW), "cannot read the file: No such file or directory"),
        ((NEWEST, "--kernel", str(OBJECTS / "lab.h")), "this is no kernel"),
        ((NEWEST, "--kernel", str(OBJECTS / "absent")), "there is no such file"),
        ((NEWEST, "--kernel", ","), "names no kernel; for example 6.12,7.2"),
    ],
)
def test_what_cannot_be_read_is_one_error_with_a_hint_or_a_file(
    cli: Cli, arguments: tuple[str, ...], message: str
) -> None:
    code, out, err = cli("scx", "check", *arguments)
    assert (code, out) == (2, "")
    assert message in err
    assert "Traceback" not in err


def test_the_types_of_an_image_are_extracted_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    package = Package("linux-image-test", "6.12.1-1", tmp_path / "vmlinuz", "0" * 64)
    monkeypatch.setattr(debian, "kernel", lambda name: package)
    extracted = []

    def extract(image: str) -> bytes:
        extracted.append(image)
        return b"types"

    found = [btf.find("6.12", extract) for _ in range(2)]
    assert extracted == [str(package.image)]
    assert found[0] == found[1]
    assert (found[0].kernel, found[0].file.read_bytes()) == ("6.12.1-1", b"types")


EXT = str(OBJECTS / "lab_kernel_ext.bpf.o")


def test_a_stall_is_reported_with_its_seed_and_a_sound_scheduler_is_not(cli: Cli) -> None:
    flags = ("--kernel", EXT, "--seeds", "3,4", "--duration", "8s", "--cpus", "2", "--tasks", "6")
    code, out, err = cli("scx", "stress", str(OBJECTS / "lab_stall.bpf.o"), *flags)
    assert (code, err) == (1, "")
    assert "lab_stall.bpf.o (stall_ops), types of lab_kernel_ext.bpf.o:" in out
    assert "2 loads of 8 s with 6 tasks on 2 CPUs" in out
    assert "the scheduler fails under 2 of 2" in out
    assert "seed 4 ends after" in out
    assert "SCX_EXIT_ERROR_STALL" in out
    code, out, err = cli("scx", "stress", str(OBJECTS / "lab_vtime.bpf.o"), *flags, "--rodata", "slice=3000000")
    assert (code, err) == (0, "")
    assert "no failure" in out


def test_the_document_of_loads_has_every_seed(cli: Cli) -> None:
    bad = str(OBJECTS / "lab_bad_pointer.bpf.o")
    code, out, _ = cli("scx", "stress", bad, "--kernel", EXT, "--seeds", "2", "--json", "-")
    document = json.loads(out)
    assert (code, document["schema"]) == (1, "schedlab.scx-stress/1")
    runs = document["objects"][0]["runs"]
    assert [run["seed"] for run in runs] == [1, 2]
    assert runs[0]["exit"]["kind"] == "SCX_EXIT_ERROR"
    assert runs[0]["exit"]["place"] == "ops.enqueue() in note, instruction 7 (lab_bad_pointer.bpf.c:16)"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("stress", NEWEST, "--kernel", NEW), "map arena: its kind 33 is not modelled"),
        (("stress", NEWEST, "--kernel", OLD), "it lacks constant enum lab_flags.LAB_NEW_FLAG"),
        (
            ("stress", str(OBJECTS / "lab_fifo.bpf.o"), "--kernel", EXT, "--rodata", "slice=1"),
            "has no variable `slice`",
        ),
        (("stress", NEWEST, "--kernel", EXT, "--rodata", "slice"), "is no variable and whole number"),
        (("stress", NEWEST, "--kernel", EXT, "--cpus", "65"), "is not a whole number from 1 to 64"),
        (("stress", NEWEST, "--kernel", EXT, "--duration", "0ms"), "is not a duration from 1ms to 3600s"),
        (("check", NEWEST, "--kernel", EXT, "--seeds", "3"), "--seeds has no effect on scx check"),
    ],
)
def test_loads_that_cannot_run_are_one_error(cli: Cli, arguments: tuple[str, ...], message: str) -> None:
    code, out, err = cli("scx", *arguments)
    assert (code, out) == (2, "")
    assert message in err
    assert "Traceback" not in err
