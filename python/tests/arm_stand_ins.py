"""What the tests of the arms stand on: an agent that is a shell script, and a made-up /proc and /sys."""

from __future__ import annotations

from pathlib import Path
from typing import Any

AGENT = """\
#!/bin/sh
# Writes the report of a run; a variant called after a failing has it.
[ "$1" = programs ] && { echo '{"probe": ["no-such-program"]}'; exit; }
shift 2
while [ $# -gt 0 ]; do
    case $1 in --variant) variant=$2 ;; --seed) seed=$2 ;; --out) out=$2 ;; esac
    shift 2
done
case $variant in
slow) sleep 60 ;;
broken) echo 'error: no futex left' >&2; echo '  hint: reboot' >&2; exit 3 ;;
silent) exit 7 ;;
killed) mkdir "$TMPDIR/schedlab-rt-app-$$-0"; echo log >"$TMPDIR/schedlab-rt-app-$$-0/t.log"; kill -9 $$ ;;
esac
sleep "${AGENT_SLEEP:-0}"
[ -z "$AGENT_LOG" ] || { echo "$variant $seed $(cat "$AGENT_KNOB")" >>"$AGENT_LOG"; }
cat >"$out" <<END
{"variant": "$variant", "seed": $seed, "kernel": "6.1", "engine": "stand-in", "digest": "$variant$seed", "events": 1,
 "handled": 0, "switches": $seed, "sim_s": 1.0, "ended": "completed", "series": {},
 "tasks": [{"name": "t", "pid": 1, "cpu_ns": 5, "wait_ns": 6, "switches": 3, "migrations": 0}],
 "metrics": {"probe.latency.p50": $seed.5, "sched.switches": $seed}, "drivers": {"probe": "agent"}}
END
"""
KNOB = "/proc/sys/kernel/sched_autogroup_enabled"
FEATURES = "/sys/kernel/debug/sched/features"
PREEMPT = "/sys/kernel/debug/sched/preempt"
BOOT = "/proc/sys/kernel/random/boot_id"
STAT = "cpu  {user} 0 0 {idle} 0 0 0 {steal} 0 0\ncpu0 1 2 3\n"


def agent(folder: Path) -> Path:
    path = folder / "agent"
    path.write_text(AGENT)
    path.chmod(0o755)
    return path


def system(root: Path, release: str = "6.1.0-1-amd64", features: str = "A NO_B C") -> Path:
    """The files of a machine that the host arm looks at."""
    texts = {
        "/proc/sys/kernel/osrelease": release + "\n",
        "/proc/sys/kernel/version": "#1 SMP\n",
        "/proc/cmdline": "quiet\n",
        "/proc/stat": STAT.format(user=0, idle=100, steal=0),
        BOOT: "boot-1\n",
        KNOB: "1\n",
        FEATURES: features + "\n",
        PREEMPT: "none (voluntary) full\n",
    }
    for name, text in texts.items():
        path = root / name.lstrip("/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def variant(name: str, kernel: str = "6.1", **settings: Any) -> dict[str, Any]:
    """A variant as the engine describes it; `settings` are file = value with the file's constant as key."""
    return {"name": name, "kernel": kernel, "summary": "", "changes": {}, "settings": list(settings.get("files", ()))}
