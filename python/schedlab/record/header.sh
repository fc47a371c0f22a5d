#!/bin/sh
# Prints what a trace says about its kernel, as comment lines `# key value`: release, ticks per second, and every
# setting of the scheduler that can be read.

echo "# kernel $(uname -r) cpus $(nproc) cmdline $(cat /proc/cmdline)"

# Which CPUs share what, as the scheduler's domains are built: the CPUs of one core, cache, socket or node are one line.
topology() { # KIND FILE...
	kind=$1
	shift
	cat "$@" 2>/dev/null | sort -u | sed "s/^/# topology $kind /"
}
cpus=/sys/devices/system/cpu
topology cores $cpus/cpu[0-9]*/topology/thread_siblings_list
for cpu in $cpus/cpu[0-9]*; do
	cache=
	for index in "$cpu"/cache/index*; do
		[ -f "$index/shared_cpu_list" ] && cache=$(cat "$index/shared_cpu_list")
	done
	[ -n "$cache" ] && echo "# topology llcs $cache"
done | sort -u
topology sockets $cpus/cpu[0-9]*/topology/core_siblings_list
topology nodes /sys/devices/system/node/node[0-9]*/cpulist
domains=$(cat /sys/kernel/debug/sched/domains/cpu0/domain*/name 2>/dev/null | tr '\n' ' ')
[ -n "$domains" ] && echo "# domains $domains"

# The clock and the tick counter are read twice: this gives the tick frequency without a configuration file.
look() { awk '/^now at/ { now = $3 } /^jiffies:/ { print $2, now; exit }' /proc/timer_list 2>/dev/null; }
from=$(look)
sleep 1
to=$(look)
[ -n "$from" ] && [ -n "$to" ] && echo "$from $to" | awk '
	function distance(a, b) { return a < b ? b - a : a - b }
	{
		rate = ($3 - $1) / (($4 - $2) / 1e9)
		best = 100
		split("100 250 300 1000", known, " ")
		for (i in known) if (distance(known[i], rate) < distance(best, rate)) best = known[i]
		print "# hz " best
	}'

# Knobs are sysctls to 5.12 and in debugfs from 5.13 on; so the switches have moved.
for file in /proc/sys/kernel/sched_* /sys/kernel/debug/sched_features /sys/kernel/debug/sched/* /sys/kernel/debug/sched/llc_balancing/*; do
	[ -f "$file" ] || continue
	name=${file##*/}
	case $file in */llc_balancing/*) name=llc_balancing/$name ;; esac
	case $name in debug | verbose) continue ;; esac
	value=$(cat "$file" 2>/dev/null | head -n 1) || continue
	[ -n "$value" ] && echo "# $name $value"
done
exit 0
