// SPDX-License-Identifier: GPL-2.0-only
/* The only file that uses libc: memory, input, output, the end of the process, and what a crash reports. */
#define _GNU_SOURCE
#include <asm/prctl.h>
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

struct bug_entry {
	int32_t address, file;
	uint16_t line, flags;
};
extern struct bug_entry __start_sl_bug_table[], __stop_sl_bug_table[];
extern void sl_main(void);
extern const char *const sl_stub_names[];
extern unsigned long sl_stub_calls[];
extern const unsigned long sl_nr_stubs;
extern uint64_t sl_now;

struct record {
	uint64_t time;
	uint16_t cpu, kind;
	uint32_t a, b, unused;
};
static struct record records[4096];
static unsigned int nr_records;
static char input[1 << 16];

static void flush(void)
{
	size_t size = nr_records * sizeof(records[0]), done = 0;

	while (done < size) {
		ssize_t wrote = write(1, (char *)records + done, size - done);

		if (wrote <= 0)
			_exit(5);
		done += wrote;
	}
	nr_records = 0;
}

void host_record(uint64_t time, uint32_t kind, uint32_t cpu, uint32_t a, uint32_t b)
{
	records[nr_records++] = (struct record){ time, cpu, kind, a, b, 0 };
	if (nr_records == sizeof(records) / sizeof(records[0]))
		flush();
}

void *host_alloc(unsigned long size)
{
	void *memory = aligned_alloc(64, (size + 63) & ~63UL);

	if (!memory) {
		fprintf(stderr, "fail: out of memory\n");
		exit(3);
	}
	return memset(memory, 0, size);
}

void host_free(void *memory)
{
	free(memory);
}

/* The kernel's code neither aligns the stack for SSE nor says in %al how many vector registers it passes. */
#define FROM_KERNEL __attribute__((target("general-regs-only"), force_align_arg_pointer))

FROM_KERNEL int host_snprintf(char *text, size_t size, const char *format, ...)
{
	va_list list;
	int length;

	va_start(list, format);
	length = vsnprintf(text, size, format, list);
	va_end(list);
	return length;
}

FROM_KERNEL int host_sprintf(char *text, const char *format, ...)
{
	va_list list;
	int length;

	va_start(list, format);
	length = vsprintf(text, format, list);
	va_end(list);
	return length;
}

FROM_KERNEL int host_sscanf(const char *text, const char *format, ...)
{
	va_list list;
	int found;

	va_start(list, format);
	found = vsscanf(text, format, list);
	va_end(list);
	return found;
}

FROM_KERNEL void host_fail(const char *format, ...)
{
	va_list list;

	flush();
	fprintf(stderr, "fail: at %llu ns: ", (unsigned long long)sl_now);
	va_start(list, format);
	vfprintf(stderr, format, list);
	va_end(list);
	fprintf(stderr, "\n");
	_exit(3);
}

void host_set_gs(unsigned long base)
{
	asm volatile("wrgsbase %0" : : "r"(base) : "memory");
}

/* The next line of the input without its newline, or NULL. */
const char *host_line(void)
{
	if (!fgets(input, sizeof(input), stdin))
		return NULL;
	input[strcspn(input, "\n")] = 0;
	return input;
}

/* BUG and WARN are the instruction ud2, with an entry in a table that names file and line. */
static void on_illegal(int signal, siginfo_t *info, void *context)
{
	greg_t *regs = ((ucontext_t *)context)->uc_mcontext.gregs;

	for (struct bug_entry *bug = __start_sl_bug_table; bug < __stop_sl_bug_table; bug++) {
		if ((greg_t)((char *)&bug->address + bug->address) != regs[REG_RIP])
			continue;
		const char *file = (char *)&bug->file + bug->file;

		if (bug->flags & 1) {
			fprintf(stderr, "warn: at %llu ns: WARN at %s:%d\n", (unsigned long long)sl_now, file, bug->line);
			regs[REG_RIP] += 2;
			return;
		}
		host_fail("BUG at %s:%d", file, bug->line);
	}
	host_fail("illegal instruction at %#llx", (unsigned long long)regs[REG_RIP]);
}

static void on_crash(int signal, siginfo_t *info, void *context)
{
	host_fail("%s at %#llx, address %p", signal == SIGXCPU ? "limit of CPU time" : strsignal(signal),
		  (unsigned long long)((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP], info->si_addr);
}

/* Nothing but reading, writing, memory, signals' returns and the end is left to the process. */
static void give_up_rights(void)
{
	static const int allowed[] = { SYS_read, SYS_write, SYS_brk, SYS_mmap, SYS_munmap, SYS_mremap, SYS_madvise,
				       SYS_rt_sigreturn, SYS_exit, SYS_exit_group, SYS_newfstatat, SYS_fstat };
	enum { N = sizeof(allowed) / sizeof(allowed[0]) };
	struct sock_filter filter[N + 6] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AUDIT_ARCH_X86_64, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
	};
	struct sock_fprog program = { N + 6, filter };

	for (int i = 0; i < N; i++)
		filter[4 + i] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, allowed[i], N - i, 0);
	filter[4 + N] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
	filter[5 + N] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program)) {
		fprintf(stderr, "fail: seccomp: %s\n", strerror(errno));
		exit(3);
	}
}

static void limit(int resource, rlim_t value)
{
	struct rlimit limits;

	if (!getrlimit(resource, &limits) && (limits.rlim_max == RLIM_INFINITY || limits.rlim_max > value))
		setrlimit(resource, &(struct rlimit){ value, value });
}

int main(void)
{
	static char stack[1 << 16];
	struct sigaction illegal = { .sa_sigaction = on_illegal, .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER };
	struct sigaction crash = { .sa_sigaction = on_crash, .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER };
	unsigned long eax = 7, ebx, ecx = 0, edx;

	sigaltstack(&(stack_t){ .ss_sp = stack, .ss_size = sizeof(stack) }, NULL);
	sigaction(SIGILL, &illegal, NULL);
	sigaction(SIGSEGV, &crash, NULL);
	sigaction(SIGBUS, &crash, NULL);
	sigaction(SIGFPE, &crash, NULL);
	sigaction(SIGXCPU, &crash, NULL);
	limit(RLIMIT_CORE, 0);
	limit(RLIMIT_NOFILE, 3);
	limit(RLIMIT_AS, 4UL << 30);
	asm volatile("cpuid" : "+a"(eax), "=b"(ebx), "+c"(ecx), "=d"(edx));
	if (!(ebx & 1)) {
		fprintf(stderr, "fail: this processor has no FSGSBASE\n");
		return 3;
	}
	give_up_rights();
	sl_main();
	flush();
	for (unsigned long i = 0; i < sl_nr_stubs; i++)
		if (sl_stub_calls[i])
			fprintf(stderr, "stub: %s %lu\n", sl_stub_names[i], sl_stub_calls[i]);
	return 0;
}
