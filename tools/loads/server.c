// A request server: three clients and workers behind pipes, with nice values, mixed sleeps and yields. server WORKERS SECONDS
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
static int req[16][2], done[2], workers, seconds;
static volatile int stop;
static unsigned rnd(unsigned *s) { *s = *s * 1103515245u + 12345u; return *s >> 16; }
static void spin(long us) { struct timespec a, b; clock_gettime(CLOCK_MONOTONIC, &a); do clock_gettime(CLOCK_MONOTONIC, &b); while ((b.tv_sec - a.tv_sec) * 1000000L + (b.tv_nsec - a.tv_nsec) / 1000 < us); }
static void nap(long us) { struct timespec t = { us / 1000000, us % 1000000 * 1000 }; nanosleep(&t, 0); }
static void *worker(void *arg) {
    long id = (long)arg; unsigned s = id * 77 + 5; char c;
    setpriority(PRIO_PROCESS, syscall(SYS_gettid), (int)(id % 4) * 3);
    while (read(req[id][0], &c, 1) == 1 && c != 'q') {
        switch (rnd(&s) % 5) { case 0: spin(50); break; case 1: spin(400); nap(300); break; case 2: nap(1500); spin(30); break; case 3: spin(3000); break; default: spin(10); sched_yield(); }
        if (write(done[1], &c, 1) < 0) return 0;
    }
    return 0;
}
static void *client(void *arg) {
    unsigned s = (long)arg * 31 + 9; char c;
    while (!stop) {
        int n = 1 + rnd(&s) % 4;
        for (int i = 0; i < n; i++) if (write(req[rnd(&s) % workers][1], "r", 1) < 0) return 0;
        for (int i = 0; i < n; i++) if (read(done[0], &c, 1) < 0) return 0;
        if (rnd(&s) % 3 == 0) nap(rnd(&s) % 4000);
    }
    return 0;
}
int main(int argc, char **argv) {
    workers = argc > 1 ? atoi(argv[1]) : 6; seconds = argc > 2 ? atoi(argv[2]) : 3;
    pthread_t t[24]; int n = 0;
    if (pipe(done)) return 1;
    for (int i = 0; i < workers; i++) { if (pipe(req[i])) return 1; pthread_create(&t[n++], 0, worker, (void *)(long)i); }
    for (int i = 0; i < 3; i++) pthread_create(&t[n++], 0, client, (void *)(long)i);
    for (int i = 0; i < seconds * 10; i++) { nap(100000); spin(200); }
    stop = 1; nap(20000);
    _exit(0);
}
