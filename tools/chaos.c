/*
 * A load for recordings: tasks that change what they are. `chaos MODE TASKS SECONDS SEED`:
 * s: nice values, classes, slices and CPUs, of themselves and of each other;
 * f: forks whose children work, sleep, yield and exit; yields, CPUs, ever higher nice values;
 * r: real time and back, and a pipe that all share.
 */
#define _GNU_SOURCE
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

struct attr {
	uint32_t size, policy;
	uint64_t flags;
	int32_t nice;
	uint32_t prio;
	uint64_t runtime, deadline, period;
};

static uint64_t seed;
static int cpus, fd[2];

static unsigned r(unsigned n)
{
	seed = seed * 6364136223846793005ull + 1442695040888963407ull;
	return (seed >> 33) % n;
}

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

static void spin(double us)
{
	double end = now() + us / 1e6;
	while (now() < end)
		;
}

static void nap(long us)
{
	struct timespec t = { 0, us * 1000 };
	nanosleep(&t, 0);
}

static void set(int pid, int policy, int nice, uint64_t slice)
{
	struct attr a = { sizeof a, policy, 0, nice, 0, slice, 0, 0 };
	syscall(SYS_sched_setattr, pid, &a, 0);
}

static void move(int pid, int anywhere)
{
	cpu_set_t s;
	CPU_ZERO(&s);
	if (anywhere)
		for (int i = 0; i < cpus; i++)
			CPU_SET(i, &s);
	else
		CPU_SET(r(cpus), &s);
	sched_setaffinity(pid, sizeof s, &s);
}

static void settings(unsigned k)
{
	static const uint64_t slices[] = { 0, 100000, 500000, 3000000, 20000000, 100000000 };
	if (k < 8)
		set(0, SCHED_OTHER, (int)r(40) - 20, slices[r(6)]);
	else if (k < 11)
		set(0, SCHED_BATCH, r(10), 0);
	else if (k < 14)
		set(0, SCHED_IDLE, 0, 0);
	else if (k < 18)
		setpriority(PRIO_PROCESS, 0, (int)r(30) - 10);
	else if (k < 55)
		nap(50 + r(3000));
	else if (k < 60)
		sched_yield();
	else
		spin(r(k < 95 ? 400 : 9000));
}

static void child(void)
{
	spin(r(800));
	if (r(3) == 0)
		nap(r(2000));
	if (r(3) == 0)
		sched_yield();
	spin(r(500));
	_exit(0);
}

static void forks(unsigned k)
{
	if (k < 20) {
		int pid = fork();
		if (!pid)
			child();
		if (r(2))
			waitpid(pid, 0, 0);
	} else if (k < 28)
		move(0, r(3) == 0);
	else if (k < 35)
		sched_yield();
	else if (k < 60)
		nap(30 + r(2500));
	else if (k < 64)
		while (waitpid(-1, 0, WNOHANG) > 0)
			;
	else if (k < 67)
		nice(1);
	else
		spin(r(700));
}

static void classes(unsigned k, int nth)
{
	static const int fair[] = { SCHED_OTHER, SCHED_BATCH, SCHED_IDLE };
	char bytes[64] = "";
	if (k < 4) {
		struct sched_param p = { 1 + r(20) };
		sched_setscheduler(0, r(2) ? SCHED_FIFO : SCHED_RR, &p);
		spin(r(300));
		if (r(2))
			nap(r(800));
		p.sched_priority = 0;
		sched_setscheduler(0, fair[r(3)], &p);
	} else if (k < 34)
		write(fd[1], bytes, 8 + r(40));
	else if (k < 62 && nth % 2)
		read(fd[0], bytes, 1 + r(20));
	else if (k < 75)
		nap(100 + r(1500));
	else if (k < 78)
		sched_yield();
	else
		spin(r(600));
}

static void disturb(char mode, int pid)
{
	unsigned k = mode == 's' ? r(4) : 9;
	if (k == 0)
		setpriority(PRIO_PROCESS, pid, (int)r(40) - 20);
	else if (k == 1)
		set(pid, (int[]){ SCHED_OTHER, SCHED_BATCH, SCHED_IDLE }[r(3)], (int)r(20) - 10, r(2) * (200000 + r(5000000)));
	else if (k < 4)
		move(pid, r(2));
	else
		spin(r(500));
}

int main(int argc, char **argv)
{
	if (argc != 5)
		return 2;
	char mode = argv[1][0];
	int tasks = atoi(argv[2]), pids[64];
	double end = now() + atof(argv[3]);
	if (tasks < 1 || tasks > 64)
		return 2;
	seed = atoi(argv[4]);
	cpus = sysconf(_SC_NPROCESSORS_ONLN);
	pipe(fd);
	for (int i = 0; i < tasks; i++) {
		pids[i] = fork();
		if (pids[i])
			continue;
		seed = seed * 77 + i * 131 + 5;
		while (now() < end)
			if (mode == 's')
				settings(r(100));
			else if (mode == 'f')
				forks(r(100));
			else
				classes(r(100), i);
		_exit(0);
	}
	while (now() < end) {
		nap(1000 + r(4000));
		disturb(mode, pids[r(tasks)]);
	}
	for (int i = 0; i < tasks; i++)
		kill(pids[i], SIGKILL);
	while (wait(0) > 0)
		;
	return 0;
}
