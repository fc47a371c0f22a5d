// SPDX-License-Identifier: GPL-2.0-only
/* Control groups: the cpu controller's own functions, without the file system of control groups. */
#include "sl.h"
#include <linux/cgroup.h>

#define MAX_GROUPS 256
static struct cgroup dummy;
static struct css_set sets[MAX_GROUPS];
static int nr_groups = 1;

/* The unified hierarchy, in which a group's quota may exceed that of its parent. */
struct static_key_true cpu_cgrp_subsys_on_dfl_key = STATIC_KEY_TRUE_INIT;

static struct cgroup_subsys_state *written;

struct cgroup_subsys_state *of_css(struct kernfs_open_file *file) { return written; }

struct css_set *sl_css_set(int group)
{
	if (group < 0 || group >= nr_groups)
		host_fail("load: no group %d", group);
	return &sets[group];
}

void sl_setup_groups(void)
{
	sets[0].subsys[cpu_cgrp_id] = &root_task_group.css;
	sets[0].dfl_cgrp = &dummy;
	root_task_group.css.cgroup = &dummy;
	rcu_assign_pointer(init_task.cgroups, &sets[0]);
}

static void write_file(struct cgroup_subsys_state *css, const char *name, u64 value, char *text)
{
	for (struct cftype *file = cpu_cgrp_subsys.dfl_cftypes; file->name[0]; file++) {
		int error;

		if (strcmp(file->name, name))
			continue;
		written = css;
		error = text ? file->write(NULL, text, strlen(text), 0) : file->write_u64(css, file, value);
		if (error < 0)
			host_fail("load: cpu.%s refuses %llu%s%s: error %d", name, value, text ? " " : "", text ?: "", -error);
		return;
	}
	host_fail("load: this kernel has no cpu.%s", name);
}

int sl_add_group(int parent, u64 weight, u64 quota_us, u64 period_us)
{
	struct cgroup_subsys_state *css = cpu_cgrp_subsys.css_alloc(sl_css_set(parent)->subsys[cpu_cgrp_id]);
	char text[64];

	if (nr_groups == MAX_GROUPS || IS_ERR(css))
		host_fail("load: group %d can't be created", nr_groups);
	css->cgroup = &dummy;
	css->parent = sl_css_set(parent)->subsys[cpu_cgrp_id];
	if (cpu_cgrp_subsys.css_online(css))
		host_fail("load: group %d does not go online", nr_groups);
	sets[nr_groups].subsys[cpu_cgrp_id] = css;
	sets[nr_groups].dfl_cgrp = &dummy;
	write_file(css, "weight", weight, NULL);
	/* The kernel starts the periods of each group at a random offset; here, as in rows, the first begins now. */
	hrtimer_set_expires(&container_of(css, struct task_group, css)->cfs_bandwidth.period_timer,
			    ns_to_ktime(SL_UPTIME + sl_now));
	if (quota_us) {
		snprintf(text, sizeof(text), "%llu %llu", quota_us, period_us);
		write_file(css, "max", 0, text);
	}
	return nr_groups++;
}
