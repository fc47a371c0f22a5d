"""Ready jobs around `--shard` for clusters that have a scheduler of their own."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

from schedlab import __version__


def text(kind: str, name: str, sweep: Path, out: Path, shards: int, short: bool) -> str:
    """The job as text: a Slurm array job, an indexed Job of Kubernetes, or a script over ssh."""
    safe = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:50] or "sweep"
    command = ["schedlab", "sweep", str(sweep), *(["--short"] if short else []), "--out", str(out), "--no-progress"]
    return {"slurm": _slurm, "k8s": _kubernetes, "ssh": _ssh}[kind](safe, shlex.join(command), out, shards)


def _slurm(name: str, command: str, out: Path, shards: int) -> str:
    return f"""\
#!/bin/sh
# sbatch FILE. Every task writes into {out}, which all nodes must see. A requeued task continues where it stopped.
# Afterwards `{command}` shows the whole, since every run is then stored.
#SBATCH --job-name=schedlab-{name}
#SBATCH --array=1-{shards}
#SBATCH --cpus-per-task=4
#SBATCH --mem-per-cpu=2G
#SBATCH --requeue
exec {command} --shard "$SLURM_ARRAY_TASK_ID/{shards}" --jobs "$SLURM_CPUS_PER_TASK"
"""


def _kubernetes(name: str, command: str, out: Path, shards: int) -> str:
    del out
    return f"""\
# kubectl apply -f FILE. The image needs schedlab and the sweep's files; all pods share the claim `schedlab`.
# Afterwards `{command}` shows the whole, since every run is then stored.
apiVersion: batch/v1
kind: Job
metadata:
  name: schedlab-{name}
spec:
  completions: {shards}
  parallelism: {shards}
  completionMode: Indexed
  backoffLimitPerIndex: 3
  podFailurePolicy:
    rules:
      - action: FailIndex # some runs failed, which another try would not change
        onExitCodes:
          operator: In
          values: [2, 3]
  template:
    spec:
      restartPolicy: Never
      containers:
        - name: schedlab
          image: schedlab:{__version__}
          workingDir: /data
          command:
            - sh
            - -c
            - exec {command} --shard "$((JOB_COMPLETION_INDEX + 1))/{shards}" --jobs 4
          resources:
            requests:
              cpu: "4"
              memory: 8Gi
          volumeMounts:
            - name: data
              mountPath: /data
      volumes:
        - name: data
          persistentVolumeClaim:
            claimName: schedlab
"""


def _ssh(name: str, command: str, out: Path, shards: int) -> str:
    del shards
    part = f"{name}-part"
    return f"""\
#!/bin/sh
# sh FILE HOST...: one shard on each host, which needs schedlab and this directory. The same command resumes.
of=$# i=0
for host in "$@"; do
    i=$((i + 1))
    ssh "$host" "cd $(printf %s "$PWD" | sed 's/ /\\\\ /g') && {command} --shard $i/$of" &
done
wait
i=0
for host in "$@"; do
    i=$((i + 1))
    rm -rf "{part}-$i"
    scp -q -r "$host:$PWD/{out}" "{part}-$i"
done
exec schedlab sweep --merge {part}-* --out {shlex.quote(str(out) + "-merged")}
"""
