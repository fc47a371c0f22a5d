// SPDX-License-Identifier: GPL-2.0-only
/*
 * Reads machine and load from the input, version 1 of the protocol: one item per line, fields separated by spaces.
 *
 *   schedlab-native 1                     the version, first line
 *   cpus N                                number of CPUs
 *   cpu CPU CORE LLC NODE                 for every CPU
 *   distance FROM TO DISTANCE             for every pair of nodes
 *   boot                                  end of the machine; what follows is the load
 *   feature NAME 0|1
 *   group PARENT WEIGHT QUOTA_US PERIOD_US    numbered from 1; 0 is the root; quota 0 is none
 *   program STEPS                         numbered from 0; a step is a letter and a number, such as r1000 for 1 us
 *   task PROGRAM NICE POLICY PRIORITY SLICE_NS GROUP CPUS   CPUS: - or a list such as 0-3,7
 *   run NS                                end of the load: runs for that long
 *
 * Steps: r runs NS, s sleeps NS, p posts semaphore N, w waits on semaphore N, y yields, f forks a child that executes
 * program N, n sets the nice value N - 20, l starts again at step N, x exits.
 */
#include "load.h"
#include <linux/ctype.h>

struct sl_program *sl_programs;
struct sl_start *sl_starts;
int sl_nr_programs, sl_nr_starts, sl_nr_words;
u64 sl_duration;
static const char *at;

static const char *next_line(const char *expected)
{
	at = host_line();
	if (!at)
		host_fail("input: it ends where %s was expected", expected);
	return at;
}

static u64 number(void)
{
	u64 value = 0;

	while (*at == ' ')
		at++;
	if (!isdigit(*at))
		host_fail("input: a number was expected at \"%s\"", at);
	for (; isdigit(*at); at++)
		value = 10 * value + *at - '0';
	return value;
}

static s64 signed_number(void)
{
	while (*at == ' ')
		at++;
	if (*at == '-') {
		at++;
		return -number();
	}
	return number();
}

static bool word(const char *name)
{
	size_t length = strlen(name);

	if (strncmp(at, name, length) || (at[length] && at[length] != ' '))
		return false;
	at += length;
	return true;
}

static int below(u64 value, u64 limit, const char *what)
{
	if (value >= limit)
		host_fail("input: %s %llu is not below %llu", what, value, limit);
	return value;
}

void sl_read_machine(void)
{
	next_line("the version");
	if (!word("schedlab-native") || number() != 1)
		host_fail("input: this program reads version 1 of the protocol");
	while (next_line("boot"), !word("boot")) {
		if (word("cpus")) {
			sl_nr_cpus = below(number(), SL_MAX_CPUS + 1, "cpus");
		} else if (word("cpu")) {
			int cpu = below(number(), sl_nr_cpus, "cpu"), core = below(number(), SL_MAX_CPUS, "core");
			int llc = below(number(), SL_MAX_CPUS, "llc");

			sl_read_cpu(cpu, core, llc, below(number(), MAX_NUMNODES, "node"));
		} else if (word("distance")) {
			int from = below(number(), MAX_NUMNODES, "node"), to = below(number(), MAX_NUMNODES, "node");

			sl_read_distance(from, to, below(number(), 256, "distance"));
		} else {
			host_fail("input: \"%s\" is not an item of a machine", at);
		}
	}
	if (!sl_nr_cpus)
		host_fail("input: a machine without CPUs");
}

/* Room for one more of `size` bytes behind the `nr` that are there. */
static void *one_more(void *old, int nr, size_t size)
{
	void *grown = old;

	if (!(nr & (nr - 1))) {
		grown = host_alloc(2 * (nr ?: 1) * size);
		if (old)
			memcpy(grown, old, nr * size);
		host_free(old);
	}
	return grown;
}

static void read_program(void)
{
	struct sl_program *program;

	sl_programs = one_more(sl_programs, sl_nr_programs, sizeof(*sl_programs));
	program = &sl_programs[sl_nr_programs++];
	program->steps = host_alloc((strlen(at) / 2 + 2) * sizeof(struct sl_step));
	while (*at) {
		struct sl_step *step = &program->steps[program->nr];

		if (*at == ' ') {
			at++;
			continue;
		}
		step->op = *at++;
		step->value = isdigit(*at) ? number() : 0;
		if (step->op == OP_POST || step->op == OP_WAIT)
			sl_nr_words = max(sl_nr_words, 1 + below(step->value, 1 << 20, "semaphore"));
		program->nr++;
	}
	program->steps[program->nr++].op = OP_EXIT;
}

static const struct cpumask *read_cpus(void)
{
	struct cpumask *mask;

	while (*at == ' ')
		at++;
	if (*at == '-')
		return NULL;
	mask = host_alloc(sizeof(*mask));
	while (*at) {
		int first = below(number(), sl_nr_cpus, "cpu"), last = first;

		if (*at == '-') {
			at++;
			last = below(number(), sl_nr_cpus, "cpu");
		}
		for (; first <= last; first++)
			cpumask_set_cpu(first, mask);
		if (*at == ',')
			at++;
	}
	return mask;
}

static void read_task(void)
{
	struct sl_start *start;

	sl_starts = one_more(sl_starts, sl_nr_starts, sizeof(*sl_starts));
	start = &sl_starts[sl_nr_starts++];
	start->program = below(number(), sl_nr_programs, "program");
	start->attr.nice = signed_number();
	start->attr.policy = number();
	start->attr.rt_priority = number();
	start->attr.slice = number();
	start->attr.group = number();
	start->attr.cpus = read_cpus();
	start->attr.cpu = start->attr.cpus && !cpumask_test_cpu(0, start->attr.cpus) ? cpumask_first(start->attr.cpus) : 0;
}

static void read_feature(void)
{
	char name[64];
	int length = 0;

	while (*at == ' ')
		at++;
	while (*at && *at != ' ' && length < 63)
		name[length++] = *at++;
	name[length] = 0;
	sl_set_feature(name, number());
}

void sl_read_load(void)
{
	while (next_line("run"), !word("run")) {
		if (word("feature")) {
			read_feature();
		} else if (word("group")) {
			int parent = number();
			u64 weight = number(), quota = number();

			sl_add_group(parent, weight, quota, number());
		} else if (word("program")) {
			read_program();
		} else if (word("task")) {
			read_task();
		} else {
			host_fail("input: \"%s\" is not an item of a load", at);
		}
	}
	sl_duration = number();
}
