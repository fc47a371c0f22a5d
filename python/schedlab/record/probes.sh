#!/bin/busybox sh
# Defines dynamic probes that read the scheduler's own state, for kernels whose type information (BTF) allows it (6.12
# and later); run in tracefs. Which names a kernel has for its fields is found by trying them.
#
# Every probe of a task prints its pid (p), vruntime (v), deadline (d), lag (l), whether it is on a queue (on), delayed
# (sd), its slice (s), and its runqueue's zero point (z), weighted sum (a), weight (w) and number of tasks (n).

define() { echo "$1" 2>/dev/null >>dynamic_events; } 2>/dev/null

known() {
	define "t:e/known sched_waking x=$1" || return 1
	echo "-:e/known" >>dynamic_events
}

first_known() { # OBJECT FIELD...
	object=$1
	shift
	for field; do
		known "$object->$field" && echo "$field" && return
	done
}

task() { # PREFIX OBJECT
	echo "$1p=$2->pid $1v=$2->se.vruntime:u64 $1d=$2->se.deadline:u64 $1l=$2->se.vlag:s64 $1on=$2->se.on_rq:u8 $1sd=$2->se.sched_delayed:u8 $1s=$2->se.slice:u64"
}

queue() { # OBJECT
	echo "z=$1->se.cfs_rq->$zero:u64 a=$1->se.cfs_rq->$sum:s64 w=$1->se.cfs_rq->$weight:u64 n=$1->se.cfs_rq->$count:u32"
}

# A group's entity stands for the task's queue in the queue above: its own state (g...), its slice and weight (gs, gw),
# and that queue (gz ... gn). `tg` tells groups apart. A task of the root group has none, and nothing is printed for it.
group() { # OBJECT
	parent="$1->se.parent"
	echo "tg=$1->sched_task_group:x64 gv=$parent->vruntime:u64 gd=$parent->deadline:u64 gl=$parent->vlag:s64 gon=$parent->on_rq:u8 gsd=$parent->sched_delayed:u8 gs=$parent->slice:u64 gw=$parent->load.weight:u64 gz=$parent->cfs_rq->$zero:u64 ga=$parent->cfs_rq->$sum:s64 gq=$parent->cfs_rq->$weight:u64 gn=$parent->cfs_rq->$count:u32"
}

known "p->se.sched_delayed:u8" || exit 1
zero=$(first_known "p->se.cfs_rq" zero_vruntime min_vruntime)
sum=$(first_known "p->se.cfs_rq" sum_w_vruntime avg_vruntime)
weight=$(first_known "p->se.cfs_rq" sum_weight avg_load)
count=$(first_known "p->se.cfs_rq" nr_queued nr_running)

define "t:e/rt sched_stat_runtime $(task '' tsk) $(queue tsk)"
define "t:e/wk sched_wakeup $(task '' p) $(queue p)"
define "t:e/wn sched_wakeup_new $(task '' p) $(queue p)"
define "t:e/wg sched_waking $(task '' p) $(queue p)"
define "t:e/sw sched_switch $(task p prev) $(task n next) $(queue next)"
if [ "$1" = groups ]; then
	define "t:e/grt sched_stat_runtime p=tsk->pid $(group tsk)"
	define "t:e/gwk sched_wakeup p=p->pid $(group p)"
	define "t:e/gwn sched_wakeup_new p=p->pid $(group p)"
	define "t:e/gsw sched_switch p=next->pid $(group next)"
fi
# The check whether a wakee preempts, from its first to its last instruction.
for check in wakeup_preempt_fair check_preempt_wakeup_fair; do
	define "p:e/cp $check $(task '' p) cp=rq->curr->pid fl=wake_flags cf=rq->curr->thread_info.flags" &&
		define "r:e/cpr $check" && break
done
# The timer that ends a slice between two ticks.
define "p:e/ht hrtick"
# What the system calls leave in their pointers.
define "p:e/sa __sched_setscheduler p=p->pid policy=attr->sched_policy:u32 nice=attr->sched_nice:s32 slice=attr->sched_runtime:u64"
define "p:e/ni set_user_nice p=p->pid nice=nice:s64"
exit 0
