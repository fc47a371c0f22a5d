// SPDX-License-Identifier: GPL-2.0-only
/* The machine: CPUs, cores, last-level caches, nodes. */
#include "sl.h"
#include <linux/topology.h>
#include <linux/nodemask.h>

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 9, 0)
#define SD_SHARE_LLC SD_SHARE_PKG_RESOURCES
#endif

int sl_nr_cpus;
static struct { int core, llc, node; } cpus[NR_CPUS];
static int nr_nodes = 1;
static u8 distances[MAX_NUMNODES][MAX_NUMNODES];

#if NR_CPUS > 1
unsigned int nr_cpu_ids = NR_CPUS;
unsigned int nr_node_ids = MAX_NUMNODES;
#endif
struct cpumask __cpu_possible_mask, __cpu_online_mask, __cpu_present_mask, __cpu_active_mask, __cpu_dying_mask;
struct cpumask __cpu_enabled_mask;
atomic_t __num_online_cpus;
nodemask_t node_states[NR_NODE_STATES];
cpumask_var_t node_to_cpumask_map[MAX_NUMNODES];
DEFINE_PER_CPU(int, numa_node);
DEFINE_PER_CPU_READ_MOSTLY(cpumask_var_t, cpu_sibling_map);
DEFINE_PER_CPU_READ_MOSTLY(cpumask_var_t, cpu_core_map);
static struct cpumask llc_masks[NR_CPUS], core_masks[NR_CPUS];
unsigned int setup_max_cpus = NR_CPUS;
int node_reclaim_distance = RECLAIM_DISTANCE;

#define MASK_ROW(b) [(b) + 1][0] = 1UL << (b)
#define MASK_ROW4(b) MASK_ROW(b), MASK_ROW(b + 1), MASK_ROW(b + 2), MASK_ROW(b + 3)
#define MASK_ROW16(b) MASK_ROW4(b), MASK_ROW4(b + 4), MASK_ROW4(b + 8), MASK_ROW4(b + 12)
const unsigned long cpu_bit_bitmap[BITS_PER_LONG + 1][BITS_TO_LONGS(NR_CPUS)] = {
	MASK_ROW16(0), MASK_ROW16(16), MASK_ROW16(32), MASK_ROW16(48),
};

/* CPUs of one capacity, at one frequency. */
DEFINE_PER_CPU(unsigned long, arch_freq_scale) = SCHED_CAPACITY_SCALE;
#undef arch_scale_cpu_capacity
unsigned long arch_scale_cpu_capacity(int cpu) { return SCHED_CAPACITY_SCALE; }

const struct cpumask *cpu_coregroup_mask(int cpu) { return &llc_masks[cpu]; }
const struct cpumask *cpu_clustergroup_mask(int cpu) { return &core_masks[cpu]; }
int __node_distance(int from, int to) { return distances[from][to]; }

void sl_read_cpu(int cpu, int core, int llc, int node)
{
	cpus[cpu].core = core;
	cpus[cpu].llc = llc;
	cpus[cpu].node = node;
	nr_nodes = max(nr_nodes, node + 1);
}

void sl_read_distance(int from, int to, int distance)
{
	distances[from][to] = distance;
}

void sl_setup_cpus(void)
{
	nr_cpu_ids = sl_nr_cpus;
	nr_node_ids = nr_nodes;
	for (int cpu = 0; cpu < sl_nr_cpus; cpu++) {
		cpumask_set_cpu(cpu, &__cpu_possible_mask);
		cpumask_set_cpu(cpu, &__cpu_present_mask);
		cpumask_set_cpu(cpu, &__cpu_online_mask);
		node_set_state(cpus[cpu].node, N_ONLINE);
		node_set_state(cpus[cpu].node, N_CPU);
		node_set_state(cpus[cpu].node, N_MEMORY);
		cpumask_set_cpu(cpu, node_to_cpumask_map[cpus[cpu].node]);
		per_cpu(numa_node, cpu) = cpus[cpu].node;
		for (int other = 0; other < sl_nr_cpus; other++) {
			if (cpus[other].core == cpus[cpu].core) {
				cpumask_set_cpu(other, per_cpu(cpu_sibling_map, cpu));
				cpumask_set_cpu(other, &core_masks[cpu]);
			}
			if (cpus[other].llc == cpus[cpu].llc)
				cpumask_set_cpu(other, &llc_masks[cpu]);
		}
	}
	atomic_set(&__num_online_cpus, sl_nr_cpus);
}

/* The domains that the kernel has built must span the machine, and the lowest that shares a cache exactly the cache. */
void sl_check_domains(void)
{
	if (sl_nr_cpus == 1)
		return;
	for (int cpu = 0; cpu < sl_nr_cpus; cpu++) {
		struct sched_domain *sd, *top = NULL, *llc = NULL, *smt = NULL;

		for_each_domain(cpu, sd) {
			top = sd;
			if (sd->flags & SD_SHARE_LLC)
				llc = sd;
			if (sd->flags & SD_SHARE_CPUCAPACITY)
				smt = sd;
		}
		if (!top || cpumask_weight(sched_domain_span(top)) != sl_nr_cpus)
			host_fail("check domains: the domains of CPU %d do not span the machine", cpu);
		if (cpumask_weight(&llc_masks[cpu]) > 1 &&
		    (!llc || !cpumask_equal(sched_domain_span(llc), &llc_masks[cpu])))
			host_fail("check domains: no domain of CPU %d spans its last-level cache", cpu);
		if (cpumask_weight(&core_masks[cpu]) > 1 &&
		    (!smt || !cpumask_equal(sched_domain_span(smt), &core_masks[cpu])))
			host_fail("check domains: no domain of CPU %d spans its core", cpu);
	}
}
