// SPDX-License-Identifier: GPL-2.0-only
/* The scheduler's part of the kernel's boot (start_kernel, smp_init), in its order. */
#include "sl.h"
#include <linux/sched/clock.h>
#include <linux/sched/init.h>
#include <linux/init.h>
#include <linux/prandom.h>

enum system_states system_state = SYSTEM_BOOTING;
bool static_key_initialized = true;

extern initcall_entry_t __sl_initcall_start[], __sl_initcall_end[];

static void do_initcalls(void)
{
	for (initcall_entry_t *entry = __sl_initcall_start; entry < __sl_initcall_end; entry++)
		initcall_from_entry(entry)();
}

void sl_boot(void)
{
	struct task_struct *kernel_init;

	sl_setup_percpu();
	sl_setup_cpus();
	sl_set_time(sl_tick_nsec);
	sl_setup_timers();
	sl_set_current(&init_task);
	sched_init();
	sched_clock_init();
	sl_setup_groups();
	sl_setup_idle_tasks();
	system_state = SYSTEM_SCHEDULING;
	for (int cpu = 0; cpu < sl_nr_cpus; cpu++) {
		sl_set_cpu(cpu);
		sched_cpu_starting(cpu);
		sched_cpu_activate(cpu);
	}
	/* In the kernel a thread of its own (kernel_init) executes the rest, not the idle task. */
	kernel_init = sl_new_kthread("init", 0);
	sl_set_current(kernel_init);
	sched_init_smp();
	do_initcalls();
	system_state = SYSTEM_RUNNING;
	sl_set_current(&init_task);
	sl_setup_stoppers();
	sl_booted = 1;
	sl_set_time(0);
}

#define SCHED_FEAT(name, enabled) #name,
static const char *const names[] = {
#include "features.h"
};
#undef SCHED_FEAT

void sl_set_feature(const char *name, int value)
{
	for (int i = 0; i < ARRAY_SIZE(names); i++) {
		if (strcmp(names[i], name))
			continue;
		if (value)
			sysctl_sched_features |= 1UL << i;
		else
			sysctl_sched_features &= ~(1UL << i);
		return;
	}
	host_fail("load: this kernel has no feature %s", name);
}

/* The kernel's own random numbers (sched_rng): a generator per CPU, seeded by its number. */
static u64 random_state[NR_CPUS];

u32 prandom_u32_state(struct rnd_state *state)
{
	u64 *s = &random_state[sl_this_cpu()];

	*s = *s * 6364136223846793005ULL + 2 * sl_this_cpu() + 1;
	return *s >> 32;
}
void prandom_seed_full_state(struct rnd_state __percpu *state) { }

/* __arch_hweight64 of a processor whose popcnt is not patched in: all registers but the result are kept. */
asm(".text\n.globl __sw_hweight64\n__sw_hweight64:\n\tpopcnt %rdi, %rax\n\tret\n"
    ".globl __sw_hweight32\n__sw_hweight32:\n\tpopcnt %edi, %eax\n\tret\n");
