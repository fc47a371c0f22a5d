#!/bin/busybox sh
# The guest's init: sets tracing up, runs the workload, sends the trace through the second serial line, powers off. Every
# step prints its name on the console, so that the recorder can report the step at which a guest hangs.

/bin/busybox --install -s /bin
export PATH=/usr/bin:/usr/sbin:/bin:/sbin HOME=/root
mount -t proc none /proc
mount -t sysfs none /sys
mount -t devtmpfs none /dev
mkdir -p /dev/shm
mount -t tmpfs none /dev/shm
mount -t tracefs none /sys/kernel/tracing
mount -t debugfs none /sys/kernel/debug
exec </dev/null >/dev/console 2>&1

say() { echo "schedlab: $*"; }

. /schedlab/settings
say setting up
cd /sys/kernel/tracing || { say failed: the kernel has no tracefs; poweroff -f; }
echo 0 >tracing_on
echo mono >trace_clock
echo 0 >options/overwrite
echo "$BUFFER_KB" >buffer_size_kb || { say failed: no memory for the trace buffer; poweroff -f; }
if [ "$PROBES" = 1 ]; then
	sh /schedlab/probes $GROUP_PROBES && say with probes
fi
# Absent where the preemption model has no such points.
[ "$CHECK_POINTS" = 1 ] && echo 'p:e/cr __cond_resched' >>dynamic_events
[ -d events/e ] && echo 1 >events/e/enable
for event in $EVENTS; do
	[ -d "events/$event" ] && echo 1 >"events/$event/enable" || say "no event $event"
done

# Debian's 6.1 has groups per session, but they are off by default.
[ -n "$GROUP_PROBES" ] && echo 1 >/proc/sys/kernel/sched_autogroup_enabled

say running the workload
cd /work
echo 1 >/sys/kernel/tracing/tracing_on
sh /schedlab/workload >/tmp/output 2>&1
code=$?
echo 0 >/sys/kernel/tracing/tracing_on
tail -c 2000 /tmp/output
say "workload ended with $code"

cd /sys/kernel/tracing
stty -F /dev/ttyS1 raw -echo 2>/dev/null
sh /schedlab/header >/tmp/header
# With one CPU left, no interrupt of the serial line gets lost between threads of QEMU.
for cpu in /sys/devices/system/cpu/cpu[1-9]*/online; do
	[ -f "$cpu" ] && echo 0 >"$cpu"
done
say sending the trace
{
	cat /tmp/header
	for cpu in per_cpu/cpu*; do
		sed -n "s/^dropped events: \([1-9]\)/# dropped ${cpu#per_cpu/cpu} \1/p" "$cpu/stats"
	done
	if [ "$RECORDS" -gt 0 ]; then head -n "$RECORDS" trace; else cat trace; fi
} | gzip -6 >/dev/ttyS1
say sent
poweroff -f
