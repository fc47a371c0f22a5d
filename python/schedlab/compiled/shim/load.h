/* SPDX-License-Identifier: GPL-2.0-only */
/* The load of a run, as the input describes it, see load.c. */
#ifndef SL_LOAD_H
#define SL_LOAD_H
#include "sl.h"

enum sl_op { OP_RUN = 'r', OP_SLEEP = 's', OP_POST = 'p', OP_WAIT = 'w', OP_YIELD = 'y', OP_FORK = 'f', OP_EXIT = 'x',
	     OP_NICE = 'n', OP_AGAIN = 'l' };

struct sl_step {
	enum sl_op op;
	u64 value;
};

struct sl_program {
	struct sl_step *steps;
	int nr;
};

struct sl_start {
	struct sl_attr attr;
	int program;
};

extern struct sl_program *sl_programs;
extern struct sl_start *sl_starts;
extern int sl_nr_programs, sl_nr_starts, sl_nr_words;
extern u64 sl_duration;

void sl_read_machine(void);
void sl_read_load(void);
#endif
