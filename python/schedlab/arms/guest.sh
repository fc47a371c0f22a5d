#!/bin/busybox sh
# The init of a guest that runs one variant with one seed: changes settings, says what machine it is, lets the agent run the
# scenario, sends everything in /out through the second serial line. Every step says its name on the console.

/bin/busybox --install -s /bin
export PATH=/usr/bin:/usr/sbin:/bin:/sbin HOME=/root LC_ALL=C
mount -t proc none /proc
mount -t sysfs none /sys
mount -t devtmpfs none /dev
mkdir -p /dev/shm /out
mount -t tmpfs none /dev/shm
mkdir -p /tmp
# Its files are pages of the page cache and nothing else: reads of them are those of any cached file.
mount -t ramfs none /tmp
mount -t tracefs none /sys/kernel/tracing
mount -t debugfs none /sys/kernel/debug
if [ "$(cat /schedlab/cgroup 2>/dev/null)" = v1 ]; then
	mount -t cgroup -o cpu none /sys/fs/cgroup
else
	mount -t cgroup2 none /sys/fs/cgroup
fi
exec </dev/null >/dev/console 2>&1

say() { echo "schedlab: $*"; }
fail() { say "failed: $*"; poweroff -f; sleep 60; }

say setting up
ip link set lo up 2>/dev/null
# An address beside 127.0.0.1, without which getaddrinfo(AI_ADDRCONFIG) has no answer, not even for 127.0.0.1.
ip addr add 192.0.2.1/32 dev lo 2>/dev/null
while read -r file value; do
	[ -n "$file" ] || continue
	[ -e "$file" ] || fail "this kernel has no $file"
	had=$(cat "$file" 2>/dev/null)
	echo "$value" >"$file" || fail "$file does not take $value; it has $had"
	# Of the models, the one in force is in brackets.
	case $file in
	*/sched/preempt) grep -q "($value)" "$file" || fail "$file is $(cat "$file") after $value was written" ;;
	esac
done </schedlab/settings
sh /schedlab/state >/out/state

say running the workload
cd /work || fail no scenario
sh /schedlab/command >/out/stdout 2>/out/stderr
code=$?
say "workload ended with $code"
stty -F /dev/ttyS1 raw -echo 2>/dev/null
tar -c -C /out . | gzip -1 >/dev/ttyS1
say sent
poweroff -f
