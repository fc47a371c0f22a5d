#!/bin/busybox sh
# Records the agent's system calls in a guest: first their beginning and end alone, then with a probe at every point that may
# reschedule (__cond_resched) and at every spinlock and unlock, under two preemption models. Prints nothing; the traces are in /out.

tracing=/sys/kernel/tracing
preempt=/sys/kernel/debug/sched/preempt
cd $tracing || exit 1
# Its unit is the guest's nanosecond, and text has it undivided.
echo 0 >tracing_on
echo x86-tsc >trace_clock || exit 1
echo 65536 >buffer_size_kb || exit 1
echo 0 >options/overwrite

define() { echo "$1" >>dynamic_events || { echo "$1: refused" >&2; exit 1; }; }
# ra is the address that the call returns to: what called it.
define 'p:e/resched __cond_resched ra=+0($stack):symbol'
for kind in spin read write; do
	for end in lock lock_irq lock_irqsave lock_bh unlock unlock_irq unlock_irqrestore unlock_bh; do
		grep -qx "_raw_${kind}_$end" available_filter_functions || continue
		define "p:e/${kind}_$end _raw_${kind}_$end ra=+0(\$stack):symbol l=%di"
	done
done
define 'p:e/spin_trylock _raw_spin_trylock ra=+0($stack):symbol l=%di'
# It shows the time at which a probe hits at the beginning of a call.
define 'p:e/reference __x64_sys_getppid ra=+0($stack):symbol l=%di'
# A page fault ends with the return of this function.
define 'r:e/faulted handle_mm_fault'

enable() { for event; do echo 1 >"events/$event/enable" || exit 1; done; }
enable raw_syscalls/sys_enter raw_syscalls/sys_exit exceptions/page_fault_user sched/sched_switch sched/sched_process_exit
enable irq_vectors/local_timer_entry e/faulted

record() { # NAME
	echo >trace
	/bin/schedlab-agent sections --repeat "$REPEAT" || exit 1
	grep -q '^dropped events: [1-9]' per_cpu/cpu*/stats && { echo "the buffer of the trace was full" >&2; exit 1; }
	grep -v '^#' trace >"/out/$1"
}

model() { echo "$1" >$preempt && grep -q "($1)" $preempt || { echo "the kernel does not have preempt=$1" >&2; exit 1; }; }

model voluntary
# The first calls of a boot find caches empty.
record first
rm /out/first
record bare
enable e
record voluntary
model none
record none
exit 0
