#!/bin/busybox sh
# Defines dynamic probes that read the scheduler's own state, for kernels whose probes know types (BTF; 6.6
# and later); run in tracefs. Which names a kernel has for its fields and functions is found by trying them.
#
# Every probe of a task prints its pid (p), vruntime (v), deadline (d), lag (l), whether it is on a queue (on), delayed
# (sd, from 6.12 on), its slice (s), its runqueue's zero point (z), weighted sum (a), weight (w) and number of tasks (n), and, where the
# runqueue's lock is held, the clock (c, `clock_task`) by which the kernel charges and ages there. From 7.3 on tasks of all groups compete
# on the CPU's own queue, with a weight of their own (hw): that queue is read, and its number of tasks.

# The tick count is data, which kernels without CONFIG_KALLSYMS_ALL do not name.
ticks=" j=@jiffies:u64"

define() {
	echo "$1" >>dynamic_events && return
	case $1 in *"$ticks"*) echo "${1%%"$ticks"*}${1#*"$ticks"}" >>dynamic_events ;; *) false ;; esac
} 2>/dev/null

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
	echo "$1p=$2->pid $1v=$2->se.vruntime:u64 $1d=$2->se.deadline:u64 $1l=$2->se.vlag:s64 $1on=$2->se.on_rq:u8 ${delayed:+$1sd=$2->se.sched_delayed:u8} $1s=$2->se.slice:u64"
}

queue() { # OBJECT
	queue="$1->se.cfs_rq->${flat:+rq->cfs.}"
	echo "z=$queue$zero:u64 a=$queue$sum:s64 w=$queue$weight:u64 n=$queue$count:u32 ${flat:+hw=$1->se.h_load.weight:u64}"
}

clock() { echo "c=$1->se.cfs_rq->rq->clock_task:u64"; } # OBJECT

# Where sessions are groups: a group's entity stands for the task's queue in the queue above. Its own state (g...), its slice
# and weight (gs, gw), that queue (gz ... gn); the load of the task's queue (la), its contribution to the group (lc), and
# the load of the group over all CPUs (ta). `tg` identifies the group. A task of the root group has no such entity.
group() { # OBJECT
	[ "$groups" ] || return
	parent="$1->se.parent"
	[ "$flat" ] && echo "tg=$1->sched_task_group:x64 gw=$parent->load.weight:u64 la=$1->se.cfs_rq->avg.load_avg:u64 lc=$1->se.cfs_rq->tg_load_avg_contrib:u64 ta=$1->se.cfs_rq->tg->load_avg.counter:s64 ra=$1->se.cfs_rq->avg.runnable_avg:u64 rc=$1->se.cfs_rq->tg_runnable_avg_contrib:u64 tr=$1->se.cfs_rq->tg->runnable_avg.counter:s64" && return
	echo "tg=$1->sched_task_group:x64 gv=$parent->vruntime:u64 gd=$parent->deadline:u64 gl=$parent->vlag:s64 gon=$parent->on_rq:u8 ${delayed:+gsd=$parent->sched_delayed:u8} gs=$parent->slice:u64 gw=$parent->load.weight:u64 gz=$parent->cfs_rq->$zero:u64 ga=$parent->cfs_rq->$sum:s64 gq=$parent->cfs_rq->$weight:u64 gn=$parent->cfs_rq->$count:u32 la=$1->se.cfs_rq->avg.load_avg:u64 lc=$1->se.cfs_rq->tg_load_avg_contrib:u64 ta=$1->se.cfs_rq->tg->load_avg.counter:s64"
}

# Which CPU a task is placed on when it wakes (fl has WF_TTWU 8), forks (4) or execs (2), and by which hint (WF_SYNC 16): where
# it was (prev), and what select_task_rq_fair returns. Without type information the task is that of the record before.
placement() { # FIELD...
	define "p:e/st select_task_rq_fair prev=\$arg2:s32 fl=\$arg3:x32 j=@jiffies:u64 $*" && define 'r:e/str select_task_rq_fair to=$retval:s32'
}

# A balancing pass: its domain and its state when it searches for the busiest group (bg: CPU, idle type, imbalance_pct, failures, CPUs
# that it considers), whether it found one (bgr), each task that it looks at (cm: source, migration type, imbalance, its averages el
# and ut, and the part of its CPU's load that its queue has, hl, since tick ht), where it moves none (na), and its end (lbr). The structs are laid out alike from 6.1 on up to the fields that are read without type information.
balance() { # PASS FIND FOUND_FIELDS TASK_FIELDS NONE_FIELDS
	define "p:e/bg $2 $3 j=@jiffies:u64" && define "r:e/bgr $2 found=\$retval:x64" && define "p:e/cm can_migrate_task $4" &&
		define "r:e/lbr $1 n=\$retval:s32" || return
	# Inlined in 7.3.
	define "p:e/na need_active_balance $5" || true
}

# Without type information, as where the compiler has made a variant of the function: struct sched_attr, which system calls share,
# has one layout on all kernels.
by_layout() { # FUNCTION
	define "p:e/sa $1 policy=+4(\$arg2):u32 nice=+16(\$arg2):s32 slice=+24(\$arg2):u64"
}

# A field with a member of a scheduling domain. 6.6 and some builds of 6.12 find none that is behind the anonymous union there: such are fetched by
# their offsets in the image. Where its type information cannot be read either, the field is left out.
of_domain() { # FIELD DOMAIN MEMBER
	known "p->se.cfs_rq->rq->sd->$3" && echo "$1=$2->$3" && return
	member=${3##*>}
	(. /schedlab/domain-members && eval "fetch=\$${member%%:*}" && [ "$fetch" ] && echo "$1=${fetch%%@*}$2${fetch#*@}")
}

groups=$1
cpus=$(grep -c ^processor /proc/cpuinfo)
threads=$(cat /sys/devices/system/cpu/cpu0/topology/thread_siblings_list | tr ',-' '\n\n' | wc -l)
if ! known "p->se.vruntime:u64"; then
	by_layout __sched_setscheduler
	# From the type information in the kernel's image: a probe on each line, and its filter. Which domain is that of a cache depends on
	# whether the kernel sees threads of a core, which up to 6.8 it does not in QEMU.
	while IFS='	' read -r probe filter; do
		name=${probe%% *}
		# Up to 5.7 the flags for EXEC and FORK are 0x4 and 0x8 (SD_BALANCE_EXEC, SD_BALANCE_FORK).
		case $name$(uname -r) in */qa5.[0-7].*) filter='fl & 12' ;; esac
		define "$probe" && [ "$filter" ] && echo "$filter" >"events/e/${name#*/}/filter"
	done </schedlab/by-offset-$((threads > 1 ? 2 : 1))
	# Without it, the arguments of a selection.
	[ "$cpus" = 1 ] || [ -d events/e/st ] || placement
	exit 1
fi
delayed=
known "p->se.sched_delayed:u8" && delayed=yes
zero=$(first_known "p->se.cfs_rq" zero_vruntime min_vruntime)
sum=$(first_known "p->se.cfs_rq" sum_w_vruntime avg_vruntime)
weight=$(first_known "p->se.cfs_rq" sum_weight avg_load)
count=$(first_known "p->se.cfs_rq" nr_queued nr_running)
flat=
known "p->se.h_load.weight:u64" && flat=yes && count=h_nr_queued

# Where several last-level caches may attract processes (7.2 and later): the address space of the task that is charged (mm), the number of
# its threads (nt), the cache that the task prefers before this charge is counted (pl), and the CPU by which its process prefers it (gc).
# task_cache_work decides that (cw).
last=$(ls -d /sys/devices/system/cpu/cpu0/cache/index* 2>/dev/null | sort | tail -n 1)
caches=$(cat /sys/devices/system/cpu/cpu[0-9]*/cache/"${last##*/}"/shared_cpu_list 2>/dev/null | sort -u | wc -l)
process=
[ "$caches" -gt 1 ] && known "p->preferred_llc:s32" && {
	process="mm=tsk->mm:x64 nt=tsk->signal->nr_threads:s32 pl=tsk->preferred_llc:s32 gc=tsk->sched_cache_grp->cpu:s32$ticks"
	define "p:e/cw task_cache_work"
}

define "t:e/rt sched_stat_runtime $(task '' tsk) $(queue tsk) $(clock tsk) $process"
define "t:e/wk sched_wakeup $(task '' p) $(queue p) $(clock p) $(group p)"
define "t:e/wn sched_wakeup_new $(task '' p) $(queue p) $(clock p) $(group p)"
define "t:e/wg sched_waking $(task '' p) $(queue p)"
define "t:e/sw sched_switch $(task p prev) $(task n next) $(queue next) $(clock next) $(group next)"
define "t:e/mt sched_migrate_task p=p->pid $(clock p)"
# What comes without being woken (ENQUEUE_WAKEUP), as from the balancer.
define "p:e/at enqueue_task_fair p=p->pid fl=flags:s32 cpu=rq->cpu:s32 c=rq->clock_task:u64" && echo '!(fl & 1)' >events/e/at/filter
# The averages of a CPU's own queue: what groups of CPUs are compared by.
averages="ra=cfs_rq->avg.runnable_avg:u64 ua=cfs_rq->avg.util_avg:u64 ue=cfs_rq->avg.util_est:u32 pe=cfs_rq->avg.period_contrib:u32 cc=cfs_rq->rq->cpu_capacity:u64"
one=
if [ "$groups" ]; then
	# The time up to which the load of a group's queue was updated (lu), by this CPU or another one.
	pc="t:e/pc pelt_cfs_tp cpu=cfs_rq->rq->cpu:s32 tg=cfs_rq->tg:x64 up=cfs_rq->tg->parent:x64 lu=cfs_rq->avg.last_update_time:u64 la=cfs_rq->avg.load_avg:u64"
	# Up to 6.16 one tracepoint takes only one probe: with several CPUs it shows the CPUs' own queues (up=0) as well.
	[ "$cpus" = 1 ] || { define "$pc $averages" && one=yes; }
	[ "$one" ] || { define "$pc" && echo 'up != 0' >events/e/pc/filter; }
	# The sums over all CPUs that a group's weight on one of them is computed from, as they are read, without a lock, and what that
	# CPU has contributed to them. Called through a static call (`calc_group_shares`, 7.3), so it is not inlined.
	[ "$cpus" = 1 ] || define "p:e/cg calc_concur_shares cpu=cfs_rq->rq->cpu:s32 tg=cfs_rq->tg:x64 lc=cfs_rq->tg_load_avg_contrib:u64 ta=cfs_rq->tg->load_avg.counter:s64 rc=cfs_rq->tg_runnable_avg_contrib:u64 tr=cfs_rq->tg->runnable_avg.counter:s64"
	# The balancer brings all queues of a CPU up to now, from 7.2 on by a call without a name of its own where a CPU
	# becomes idle. What either calls first, under the queue's lock, exists from 6.12 on.
	define "p:e/ba update_other_load_avgs cpu=rq->cpu:s32 c=rq->clock_task:u64" ||
		define "p:e/ba sched_balance_update_blocked_averages cpu=cpu" ||
		define "p:e/ba update_blocked_averages cpu=cpu"
fi
# The check whether a wakee preempts, from its first to its last instruction.
for check in wakeup_preempt_fair check_preempt_wakeup_fair check_preempt_wakeup; do
	define "p:e/cp $check $(task '' p) cp=rq->curr->pid fl=wake_flags cf=rq->curr->thread_info.flags" &&
		define "r:e/cpr $check" && break
done
# The timer that ends a slice between two ticks.
define "p:e/ht hrtick"
# What a placement depends on and no event shows: the history of wakeups (wf, when it was halved last wt, ru), the task's load average (el) and that of the
# queue it was on (ql), and what the CPUs of that queue's cache share: the limit of a search and the hint about idle cores;
# the node that the task prefers (nn).
[ "$cpus" = 1 ] || {
	rq="p->se.cfs_rq->rq"
	cache="$rq->sd"
	[ "$threads" = 1 ] || cache="$cache->parent"
	shared="$(of_domain sc "$cache" "shared->nr_idle_scan:s32") $(of_domain ic "$cache" "shared->has_idle_cores:s32")"
	node=
	known "p->numa_preferred_nid:s32" && node="nn=p->numa_preferred_nid:s32"
	# At the levels above the lowest: affinity kept the own group (o) or the next one (n) from being balanced. Longer paths are refused.
	marks=
	levels=$(awk '/^cpu1 / { exit } /^domain/ { n++ } END { print n + 0 }' /proc/schedstat)
	[ "$levels" -gt 1 ] && marks="o1=$rq->sd->parent->groups->sgc->imbalance n1=$rq->sd->parent->groups->next->sgc->imbalance"
	[ "$levels" -gt 2 ] && marks="$marks o2=$rq->sd->parent->parent->groups->sgc->imbalance"
	placement "p=p->pid nc=p->nr_cpus_allowed:s32 am=+0(p->cpus_ptr):x64 wf=p->wakee_flips:u32 wt=p->wakee_flip_decay_ts:u64 ru=p->recent_used_cpu:s32 el=p->se.avg.load_avg:u64 et=p->se.avg.last_update_time:u64 ql=$rq->cfs.avg.load_avg:u64 qr=$rq->cfs.avg.runnable_avg:u64 qv=$rq->cfs.avg.util_avg:u64 qt=$rq->cfs.avg.last_update_time:u64 $shared $node $marks"
	task="src=env->src_cpu:s32 mt=env->migration_type:s32 im=env->imbalance:s64"
	# Up to 6.7 idle and not idle have each other's number.
	idle=idle
	case $(uname -r) in 6.[67].*) idle=oi ;; esac
	pass="cpu=env->dst_cpu:s32 $idle=env->idle:s32 pct=env->sd->imbalance_pct:u32 nf=env->sd->nr_balance_failed:u32 am=+0(env->cpus):x64 $(of_domain w 'env->sd' span_weight:u32) mo=env->sd->groups->sgc->imbalance:s32 mn=env->sd->groups->next->sgc->imbalance:s32"
	asked="$task p=p->pid nc=p->nr_cpus_allowed:s32 am=+0(p->cpus_ptr):x64 el=p->se.avg.load_avg:u64 ut=p->se.avg.util_avg:u64 hl=p->se.cfs_rq->h_load:u64 ht=p->se.cfs_rq->last_h_load_update:u64"
	balance sched_balance_rq sched_balance_find_src_group "$pass" "$asked" "$task" ||
		balance load_balance find_busiest_group "$pass" "$asked" "$task"
	# A CPU gets scheduling domains or loses them, as when CPUs go offline or come back.
	define "p:e/ad cpu_attach_domain cpu=cpu:s32 sd=sd:x64"
	# They are shown whenever they change.
	queue="cpu=cfs_rq->rq->cpu:s32 la=cfs_rq->avg.load_avg:u64 $averages"
	[ "$one" ] || { define "t:e/ql pelt_cfs_tp $queue up=cfs_rq->tg->parent:x64" && echo 'up == 0' >events/e/ql/filter; }
	define "t:e/ue sched_util_est_cfs_tp $queue"
}
# What the system calls leave in their pointers.
define "p:e/sa __sched_setscheduler p=p->pid policy=attr->sched_policy:u32 nice=attr->sched_nice:s32 slice=attr->sched_runtime:u64" ||
	by_layout "$(awk '$3 ~ /^__sched_setscheduler[.]/ { print $3; exit }' /proc/kallsyms)"
define "p:e/ni set_user_nice p=p->pid nice=nice:s64"
exit 0
