#!/bin/sh
# Prints what the guest is, as lines `key value`: settings of the scheduler, and the topology as the kernel sees it.

line() { [ -f "$2" ] && value=$(head -n 1 "$2" 2>/dev/null) && echo "$1 $value"; }

line release /proc/sys/kernel/osrelease
line build /proc/sys/kernel/version
line cmdline /proc/cmdline
line clocksource /sys/devices/system/clocksource/clocksource0/current_clocksource
for file in /proc/sys/kernel/sched_*; do line "sysctl.${file##*/}" "$file"; done
for file in /sys/kernel/debug/sched/*; do
	case ${file##*/} in debug | verbose) continue ;; esac
	line "debugfs.${file##*/}" "$file"
done
for cpu in /sys/devices/system/cpu/cpu[0-9]*; do
	[ -d "$cpu/topology" ] || continue
	echo "cores $(cat "$cpu/topology/thread_siblings_list")"
	echo "sockets $(cat "$cpu/topology/core_siblings_list")"
	cache=
	for index in "$cpu"/cache/index*; do
		[ -f "$index/shared_cpu_list" ] && cache=$(cat "$index/shared_cpu_list")
	done
	[ -n "$cache" ] && echo "llcs $cache"
done
for node in /sys/devices/system/node/node[0-9]*; do
	[ -f "$node/cpulist" ] && echo "nodes $(cat "$node/cpulist")"
done
exit 0
