"""The journal of host settings: everything is restored, and nothing but settings of the scheduler is ever written."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

import arm_stand_ins as made_up
from schedlab.arms import accelerator, doctor
from schedlab.arms.journal import SETTINGS, Journal, current, state_directory
from schedlab.errors import ArmError, OutputError, SchedlabError, UnsafeError
from schedlab.private import Directory, open_below


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    return made_up.system(tmp_path / "root")


@pytest.fixture
def journal(root: Path, tmp_path: Path) -> Journal:
    return Journal(tmp_path / "schedlab", root)


def kept(tmp_path: Path, *entries: dict[str, Any] | str, mode: int = 0o700) -> Path:
    """A journal that another process left."""
    folder = tmp_path / "schedlab"
    folder.mkdir(mode=mode)
    folder.chmod(mode)
    file = folder / "settings.jsonl"
    file.write_text("".join(f"{e if isinstance(e, str) else json.dumps(e)}\n" for e in entries))
    file.chmod(0o600)
    return file


def entry(**changes: Any) -> dict[str, Any]:
    return {"file": made_up.KNOB, "before": "7", "after": "0", "boot": "boot-1", **changes}


def saying(root: Path, file: str) -> str:
    return (root / file.lstrip("/")).read_text()


CURRENT = [
    # file, its text, what is to be written, what must be written to undo that
    (made_up.KNOB, "750000\n", "3", "750000"),
    (made_up.FEATURES, "A NO_B C\n", "NO_A", "A"),
    (made_up.FEATURES, "A NO_B C\n", "B", "NO_B"),
    (made_up.PREEMPT, "none (voluntary) full\n", "full", "voluntary"),
]


@pytest.mark.parametrize(("file", "text", "value", "before"), CURRENT)
def test_what_undoes_a_change(file: str, text: str, value: str, before: str) -> None:
    assert current(file, text, value) == before


def test_settings_are_changed_and_restored(journal: Journal, root: Path, tmp_path: Path) -> None:
    assert journal.open() == []
    journal.apply([(made_up.KNOB, "0")])
    assert saying(root, made_up.KNOB) == "0"
    file = tmp_path / "schedlab/settings.jsonl"
    assert json.loads(file.read_text()) == entry(before="1")
    assert file.stat().st_mode & 0o777 == 0o600
    assert file.parent.stat().st_mode & 0o777 == 0o700
    journal.restore()
    assert saying(root, made_up.KNOB) == "1"
    assert not file.exists()


def test_a_setting_that_the_kernel_lacks_is_no_file_afterwards(journal: Journal, root: Path) -> None:
    journal.open()
    lacking = "/proc/sys/kernel/sched_nothing"
    with pytest.raises(ArmError, match=f"cannot read {lacking}: No such file"):
        journal.apply([(made_up.KNOB, "0"), (lacking, "1")])
    journal.restore()
    assert saying(root, made_up.KNOB) == "1"
    assert not (root / lacking.lstrip("/")).exists()


def test_a_feature_that_the_kernel_lacks_is_refused(journal: Journal, root: Path) -> None:
    journal.open()
    with pytest.raises(ArmError, match="features has no D"):
        journal.apply([(made_up.FEATURES, "NO_D")])
    assert saying(root, made_up.FEATURES) == "A NO_B C\n"


def test_a_value_that_the_kernel_did_not_take_is_an_error(journal: Journal, monkeypatch: pytest.MonkeyPatch) -> None:
    journal.open()
    monkeypatch.setattr(Journal, "_write", lambda *_: None)
    with pytest.raises(ArmError, match=r"wrote 0 to .* and read back 1"):
        journal.apply([(made_up.KNOB, "0")])


def test_one_process_at_a_time(journal: Journal, root: Path, tmp_path: Path) -> None:
    second = Journal(tmp_path / "schedlab", root)
    journal.open()
    with pytest.raises(ArmError, match="another schedlab is running on this kernel"):
        second.open()
    journal.close()
    second.open()


def test_what_cannot_be_restored_stays_in_the_journal(journal: Journal, root: Path) -> None:
    journal.open()
    journal.apply([(made_up.KNOB, "0")])
    (root / made_up.KNOB.lstrip("/")).unlink()
    with pytest.raises(OutputError, match="some settings could not be restored"):
        journal.restore()
    assert len(journal.left()) == 1


def test_a_torn_last_entry_is_skipped(journal: Journal, root: Path, tmp_path: Path) -> None:
    file = kept(tmp_path, entry())
    with file.open("a") as stream:
        stream.write('{"file": "/proc/')
    assert [c.before for c in journal.open()] == ["7"]
    assert saying(root, made_up.KNOB) == "7"


def test_entries_of_another_boot_are_dropped(journal: Journal, root: Path, tmp_path: Path) -> None:
    journal.open()
    journal.apply([(made_up.KNOB, "0")])
    journal.close()  # killed
    (root / made_up.BOOT.lstrip("/")).write_text("boot-2\n")
    again = Journal(tmp_path / "schedlab", root)
    assert again.open() == []
    assert saying(root, made_up.KNOB) == "0"
    assert not (tmp_path / "schedlab/settings.jsonl").exists()


def test_a_kernel_that_does_not_identify_its_boot_keeps_its_settings(journal: Journal, root: Path) -> None:
    (root / made_up.BOOT.lstrip("/")).unlink()
    journal.open()
    with pytest.raises(ArmError, match="does not identify this boot"):
        journal.apply([(made_up.KNOB, "0")])
    assert saying(root, made_up.KNOB) == "1\n"


FOREIGN = [
    entry(file="/etc/victim"),
    entry(file="/proc/sys/kernel/core_pattern"),
    entry(file="/proc/sys/kernel/sched_autogroup_enabled/../../../../etc/victim"),
    entry(file="/sys/kernel/debug/sched/../../../../etc/victim"),
    entry(file="/sys/kernel/debug/tracing/tracing_on"),
    entry(before="x\ny"),
    entry(before="x" * 100),
    entry(before=7),
    entry(boot=""),
    entry(boot=None),
    {k: v for k, v in entry().items() if k != "boot"},
    {k: v for k, v in entry(file="/etc/victim").items() if k != "boot"},
    {**entry(), "mode": 0o777},
    "[]",
    "{",
    "null",
]


@pytest.mark.parametrize("foreign", FOREIGN)
def test_an_entry_that_schedlab_did_not_write_restores_nothing(
    foreign: dict[str, Any] | str, root: Path, tmp_path: Path
) -> None:
    victim = root / "etc/victim"
    victim.parent.mkdir()
    victim.write_text("untouched")
    file = kept(tmp_path, entry(), foreign)
    with pytest.raises(UnsafeError, match="schedlab did not write this entry") as refused:
        doctor.restore(root)
    assert (refused.value.file, refused.value.line) == (str(file), 2)
    assert victim.read_text() == "untouched"
    assert saying(root, made_up.KNOB) == "1\n"
    assert file.exists()


def test_a_setting_behind_a_symbolic_link_is_not_written(root: Path, tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("untouched")
    knob = root / made_up.KNOB.lstrip("/")
    knob.unlink()
    knob.symlink_to(victim)
    kept(tmp_path, entry())
    with pytest.raises(OutputError, match="could not be restored"):
        doctor.restore(root)
    folder = root / "sys/kernel/debug"
    folder.rename(tmp_path / "elsewhere")
    folder.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError, match="Not a directory"):
        open_below(root, made_up.FEATURES, os.O_RDONLY)
    assert victim.read_text() == "untouched"


def others_own_the_folder(file: Path) -> None:
    os.chown(file.parent, 1234, 1234)


def others_own_the_file(file: Path) -> None:
    os.chown(file, 1234, 1234)


def others_write_the_folder(file: Path) -> None:
    file.parent.chmod(0o777)


def others_write_the_file(file: Path) -> None:
    file.chmod(0o660)


def the_folder_is_a_link(file: Path) -> None:
    file.parent.rename(file.parent.with_name("elsewhere"))
    file.parent.symlink_to(file.parent.with_name("elsewhere"))


def the_file_is_a_link(file: Path) -> None:
    file.rename(file.with_name("elsewhere"))
    file.symlink_to(file.with_name("elsewhere"))


def the_file_is_a_pipe(file: Path) -> None:
    file.unlink()
    os.mkfifo(file, 0o600)


UNSAFE = [
    (others_own_the_folder, "belongs to user 1234"),
    (others_own_the_file, "belongs to user 1234"),
    (others_write_the_folder, "other users can write"),
    (others_write_the_file, "other users can write"),
    (the_folder_is_a_link, "is a symbolic link"),
    (the_file_is_a_link, "is a symbolic link"),
    (the_file_is_a_pipe, "is not a regular file"),
]


@pytest.mark.parametrize(("arrange", "says"), UNSAFE)
def test_a_journal_that_others_can_write_is_refused(arrange: Any, says: str, root: Path, tmp_path: Path) -> None:
    file = kept(tmp_path, entry())
    try:
        arrange(file)
    except PermissionError:
        pytest.skip("chown: only root gives files away")
    with pytest.raises(UnsafeError, match=says):
        doctor.restore(root)
    assert saying(root, made_up.KNOB) == "1\n"
    finding = doctor.examine_leftovers(root)
    assert not finding.there
    assert says in finding.says


def others_own_a_parent(home: Path) -> None:
    os.chown(home / "above", 1234, -1)


def others_write_a_parent(home: Path) -> None:
    (home / "above").chmod(0o757)


def a_group_writes_a_parent(home: Path) -> None:
    (home / "above").chmod(0o775)


def others_own_a_link(home: Path) -> None:
    (home / "above").rename(home / "real")
    (home / "above").symlink_to("real")
    os.chown(home / "above", 1234, -1, follow_symlinks=False)


def others_write_what_a_link_passes(home: Path) -> None:
    (home / "open").mkdir()
    (home / "open").chmod(0o777)
    (home / "above").rename(home / "open/real")
    (home / "above").symlink_to(home / "open/../open/real")


WAYS = [
    (others_own_a_parent, "above, on the way to .*/schedlab, belongs to user 1234"),
    (others_write_a_parent, "other users can write .*/above, on the way to .*/schedlab"),
    (a_group_writes_a_parent, "other users can write .*/above, on the way to .*/schedlab"),
    (others_own_a_link, "above, on the way to .*/schedlab, belongs to user 1234"),
    (others_write_what_a_link_passes, "other users can write .*/open, on the way to .*/schedlab"),
]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away, and only for root the whole way counts")
@pytest.mark.parametrize(("arrange", "says"), WAYS)
def test_a_directory_that_others_can_replace_is_refused(arrange: Any, says: str, tmp_path: Path) -> None:
    path = tmp_path / "above/state/schedlab"
    Directory.open(path, create=True).close()
    arrange(tmp_path)
    for create in (False, True):
        with pytest.raises(UnsafeError, match=says):
            Directory.open(path, create=create)
    with pytest.raises(UnsafeError, match=says):
        Directory.open(tmp_path / "above/other/schedlab", create=True)
    assert not (tmp_path / "above/other").exists()


def test_a_sticky_directory_and_links_of_our_own_are_fine(tmp_path: Path) -> None:
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared").chmod(0o1777)
    (tmp_path / "link").symlink_to("shared")
    (tmp_path / "round").symlink_to("round")
    before = os.umask(0)
    try:
        Directory.open(tmp_path / "link/a/b/schedlab", create=True).close()
    finally:
        os.umask(before)
    Directory.open(tmp_path / "shared/a/b/schedlab").close()
    assert [(tmp_path / "shared" / at).stat().st_mode & 0o777 for at in ("a", "a/b", "a/b/schedlab")] == [
        0o755,
        0o755,
        0o700,
    ]
    with pytest.raises(OSError, match="Too many levels of symbolic links"):
        Directory.open(tmp_path / "round/schedlab", create=True)


def test_the_command_refuses_with_the_line(schedlab: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    file = kept(tmp_path, {"file": "/etc/victim", "before": "x", "after": "y"})
    code, out, err = schedlab("doctor", "--restore")
    assert (code, out) == (4, "")
    assert f"{file}:1" in err


def test_what_scenarios_may_change_is_what_the_journal_restores() -> None:
    """Every knob of the newest kernels, the feature switches and the preemption model."""
    from schedlab.engine import native_engine

    try:
        engine = native_engine()
    except SchedlabError as e:
        pytest.skip(e.message)
    for kernel in ("5.13", "6.12", "7.2"):
        for knob in engine.listing("knobs", kernel):
            path = knob["path"]
            file = f"/proc/sys/{path.replace('.', '/')}" if path.startswith("kernel.") else f"/sys/kernel/debug/{path}"
            assert SETTINGS.fullmatch(file), file
    assert SETTINGS.fullmatch(made_up.FEATURES)
    assert SETTINGS.fullmatch(made_up.PREEMPT)


def test_what_is_known_about_kvm_is_believed_only_from_a_private_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setattr(accelerator, "boot_id", lambda: "boot-1")
    assert accelerator.known() is None
    accelerator.remember("works")
    assert accelerator.known() == "works"
    (tmp_path / "schedlab").chmod(0o777)
    assert accelerator.known() is None


def test_a_private_file_is_replaced_whole(tmp_path: Path) -> None:
    with Directory.open(tmp_path / "a/b", create=True) as folder:
        folder.write("f", "one")
        folder.write("f", "two")
        assert folder.read("f") == "two"
        assert folder.read("g") is None
        folder.remove("f")
        folder.remove("f")
    assert list((tmp_path / "a/b").iterdir()) == []


@pytest.mark.parametrize("tracing", ["sys/kernel/tracing", "sys/kernel/debug/tracing"])
def test_the_switch_that_a_killed_recorder_left_on_is_restored(tracing: str, root: Path, tmp_path: Path) -> None:
    switch = root / tracing / "events/bpf_trace/bpf_trace_printk/enable"
    switch.parent.mkdir(parents=True)
    switch.write_text("0\n")
    killed = Journal(state_directory(), root)
    killed.open()
    killed.apply([(f"/{tracing}/events/bpf_trace/bpf_trace_printk/enable", "1")])
    killed.close()
    assert switch.read_text() == "1"
    assert "bpf_trace_printk/enable is 1 and was 0" in doctor.examine_leftovers(root).says
    assert any("bpf_trace_printk/enable is 0 again" in line for line in doctor.restore(root))
    assert switch.read_text() == "0"
