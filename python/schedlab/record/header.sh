#!/bin/sh
# Prints what a trace says about its kernel, as comment lines `# key value`: release, ticks per second, and every
# setting of the scheduler that can be read.

echo "# kernel $(uname -r) cpus $(nproc) cmdline $(cat /proc/cmdline)"

# Two looks at the clock and the tick counter: no configuration file is needed to know how often the kernel ticks.
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
for file in /proc/sys/kernel/sched_* /sys/kernel/debug/sched_features /sys/kernel/debug/sched/*; do
	[ -f "$file" ] || continue
	name=${file##*/}
	case $name in debug | verbose) continue ;; esac
	value=$(cat "$file" 2>/dev/null | head -n 1) || continue
	[ -n "$value" ] && echo "# $name $value"
done
exit 0
