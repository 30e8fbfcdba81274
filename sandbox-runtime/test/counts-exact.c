/* A group with an init that is busy itself, a plugin with four threads, and programs that it executes: the counts must be exact,
 * of the plugin's tree only, whichever CPU a call was made on. Prints what a counted call costs, in the group and outside. */
#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "check.h"
#include "counts.h"
#include "json.h"
#include "test-group.h"

enum { THREADS = 4, CALLS = 10000, EXECUTIONS = 300, LOOP = 1000000, ROUNDS = 50 };

static char group[512];

static double now_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

/* Nanoseconds a call, the best of the rounds; LOOP calls in all. */
static double call_cost(void)
{
    double best = 1e18;
    for (int round = 0; round < ROUNDS; round++) {
        double begin = now_us();
        for (int i = 0; i < LOOP / ROUNDS; i++)
            syscall(SYS_getuid);
        double each = (now_us() - begin) * 1e3 / (LOOP / ROUNDS);
        best = each < best ? each : best;
    }
    return best;
}

static void *make_calls(void *unused)
{
    for (int i = 0; i < CALLS; i++)
        syscall(SYS_getppid);
    return unused;
}

/* What runs as the plugin. */
static int be_plugin(const char *self)
{
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        if (pthread_create(&threads[i], NULL, make_calls, NULL))
            return 1;
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    for (int i = 1; i < EXECUTIONS; i++) {
        pid_t child = vfork();
        if (child == 0) {
            execl(self, self, "nothing", NULL);
            _exit(1);
        }
        waitpid(child, NULL, 0);
    }
    printf("counts-exact: a counted call takes %.0f ns", call_cost());
    fflush(stdout);
    return 0;
}

/* Init makes calls of its own all the time, and so does its child before the execve. */
static int be_init(const char *self)
{
    make_calls(NULL);
    pid_t plugin = fork();
    if (plugin == 0) {
        make_calls(NULL);
        execl(self, self, "plugin", NULL);
        _exit(1);
    }
    int status;
    while (waitpid(plugin, &status, WNOHANG) == 0)
        syscall(SYS_getppid);
    return WEXITSTATUS(status);
}

static int run_in_group(const char *self, int dir)
{
    struct clone_args args = {.flags = CLONE_INTO_CGROUP, .exit_signal = SIGCHLD, .cgroup = (__u64)dir};
    pid_t init = (pid_t)syscall(SYS_clone3, &args, sizeof args);
    if (init == 0)
        _exit(be_init(self));
    int status;
    waitpid(init, &status, 0);
    return status;
}

static void expect(const struct json_writer *json, const char *text)
{
    if (memmem(json->bytes, json->length, text, strlen(text)))
        return;
    failures++;
    printf("not ok: '%s' is not in %.900s\n", text, json->bytes);
}

static void test_counts(struct counts *counts, const char *self, int dir)
{
    struct counts_job job;
    double begin = now_us();
    counts_begin(counts, &job, dir);
    double attached = now_us();
    CHECK(job.slot >= 0);
    if (job.slot < 0) {
        printf("  %s\n", job.reason);
        return;
    }
    fflush(stdout);
    CHECK(run_in_group(self, dir) == 0);
    printf(", one outside the group %.0f ns", call_cost());

    char text[512];
    struct json_writer json;
    json_init(&json, 1 << 20);
    counts_write_syscalls(counts, &job, NULL, &json);
    snprintf(text, sizeof text, "\"getppid\":%d,", THREADS * CALLS);
    expect(&json, text);
    snprintf(text, sizeof text, "\"getuid\":%d,", LOOP);
    expect(&json, text);
    snprintf(text, sizeof text, "\"execve\":%d,", EXECUTIONS);
    expect(&json, text);
    snprintf(text, sizeof text, "\"exit_group\":%d", EXECUTIONS);
    expect(&json, text);
#ifdef SYS_vfork
    snprintf(text, sizeof text, "\"vfork\":%d,", EXECUTIONS - 1);
    expect(&json, text);
#endif
    json_free(&json);

    json_init(&json, 1 << 20);
    counts_write_executions(counts, &job, (uint64_t)begin, &json);
    snprintf(text, sizeof text,
             "{\"available\":true,\"dropped\":%d,\"entries\":[{\"path\":\"%s\",\"interpreter\":null,\"atMs\":",
             EXECUTIONS - 256, self);
    expect(&json, text);
    json_free(&json);
    counts_end(counts, &job);
    double ended = now_us();
    counts_rest(counts);
    double detached = now_us();
    printf(", unattached %.0f ns; attaching takes %.0f us, detaching %.0f us\n", call_cost(), attached - begin,
           detached - ended);
}

int main(int argument_count, char **arguments)
{
    char self[256];
    self[readlink("/proc/self/exe", self, sizeof self - 1)] = '\0';
    if (argument_count > 1)
        return strcmp(arguments[1], "plugin") ? 0 : be_plugin(self);
    setvbuf(stdout, NULL, _IOLBF, 0);
    int dir = test_group_make("counts", group, sizeof group);
    if (dir < 0) {
        printf("counts-exact: skipped: no cgroup2 where this process may make a group\n");
        return 0;
    }
    double begin = now_us();
    struct counts *counts = counts_load(4);
    printf("counts-exact: loading takes %.0f us\n", now_us() - begin);
    CHECK(counts_unavailable(counts) == NULL);
    if (!counts_unavailable(counts))
        for (int round = 0; round < 2; round++) /* a slot that was used before starts from zero */
            test_counts(counts, self, dir);
    else
        printf("  %s\n", counts_unavailable(counts));
    counts_unload(counts);
    CHECK(rmdir(group) == 0);
    printf(failures ? "counts-exact: %d failures\n" : "counts-exact: ok\n", failures);
    return failures != 0;
}
