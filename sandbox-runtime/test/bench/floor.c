/* What the kernel takes for the single pieces of a launch that nobody can leave out, each done alone and as it is needed: the
 * least of ROUNDS tries, in microseconds. What `launcher run` costs cannot be less than the longest chain of them.
 *
 *   floor ROUNDS
 */
#include "cgroup.h"
#include "counts.h"
#include "devices.h"
#include "kernel.h"
#include "policy.h"

#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static struct cgroup_host host;
static double *took_us; /* shared with the child that does a piece */

static double now_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

static bool start_program(void)
{
    pid_t child;
    char *words[] = {"launcher", "--version", NULL};
    char *environment[] = {NULL};
    char path[4200];
    posix_spawn_file_actions_t actions;
    snprintf(path, sizeof path, "%s/launcher", getenv("BUILD"));
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
    int error = posix_spawn(&child, path, &actions, NULL, words, environment);
    posix_spawn_file_actions_destroy(&actions);
    return !error && waitpid(child, NULL, 0) == child;
}

static bool network(void)
{
    return kernel_new_network_namespace() == 0 && kernel_raise_loopback() == 0;
}

static bool other_namespaces(void)
{
    return syscall(SYS_unshare, CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP) == 0;
}

static bool groups(void)
{
    struct fault fault = {.step = ""};
    struct cgroup_job job;
    cgroup_job_init(&job, &host);
    bool made = cgroup_job_create(&job, &fault) && cgroup_job_complete(&job, &fault) &&
                cgroup_limit_memory(&job, 64 << 20, &fault) && cgroup_limit_cpu(&job, 1000, &fault) &&
                cgroup_limit_processes(&job, 64, &fault);
    return cgroup_job_remove(&job) && made;
}

static bool filter(void)
{
    struct sock_fprog program = {policy_program_len, (struct sock_filter *)policy_program};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           kernel_seccomp_filter(&program, SECCOMP_FILTER_FLAG_NEW_LISTENER) >= 0;
}

static bool bpf_programs(void)
{
    struct fault fault = {.step = ""};
    struct devices *devices = devices_load(1, &fault);
    struct counts *counts = counts_load(1);
    bool loaded = devices && !counts_unavailable(counts);
    devices_unload(devices);
    counts_unload(counts);
    return loaded;
}

/* A minimal root: one tmpfs, /usr, /proc. Without any file or device node in it. */
static bool root(void)
{
    return syscall(SYS_unshare, CLONE_NEWNS) == 0 && kernel_mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
           kernel_mount("none", "/mnt", "tmpfs", 0, NULL) == 0 && chdir("/mnt") == 0 && mkdir("usr", 0755) == 0 &&
           mkdir("proc", 0755) == 0 && kernel_mount("/usr", "usr", NULL, MS_BIND | MS_REC, NULL) == 0 &&
           kernel_mount("/proc", "proc", NULL, MS_BIND | MS_REC, NULL) == 0 && kernel_pivot_root(".", ".") == 0 &&
           kernel_umount(".", MNT_DETACH) == 0;
}

static const struct {
    const char *name;
    bool (*run)(void);
} pieces[] = {
    {"start and end of a static program without libc start-up (launcher --version)", start_program},
    {"a network namespace with loopback up", network},
    {"mount, PID, IPC, UTS and cgroup namespaces", other_namespaces},
    {"a minimal root with two binds, pivot_root, detaching the old root", root},
    {"the job's groups: make, limit, read back, remove", groups},
    {"loading the filter with its listener", filter},
    {"loading and freeing the BPF programs for devices and counts", bpf_programs},
};

static double least(bool (*run)(void), int rounds, const char *name)
{
    double best = 1e9;
    for (int i = 0; i < rounds; i++) {
        int status = -1;
        pid_t child = fork();
        if (child == 0) {
            double before = now_us();
            bool well = run();
            *took_us = now_us() - before;
            _exit(!well);
        }
        if (child < 0 || waitpid(child, &status, 0) != child || status) {
            fprintf(stderr, "floor: '%s' does not work here\n", name);
            exit(1);
        }
        best = *took_us < best ? *took_us : best;
    }
    return best;
}

int main(int count, char **words)
{
    struct fault fault = {.step = ""};
    int rounds = count == 2 ? atoi(words[1]) : 0;
    if (rounds < 1 || !getenv("BUILD") || !cgroup_host_open(&host, &fault)) {
        fprintf(stderr, "usage: BUILD=... floor ROUNDS, as root %s\n", fault.message);
        return 2;
    }
    took_us = mmap(NULL, sizeof *took_us, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    printf("\nleast us, each alone\n");
    for (size_t i = 0; i < sizeof pieces / sizeof pieces[0]; i++)
        printf("  %6.0f  %s\n", least(pieces[i].run, rounds, pieces[i].name), pieces[i].name);
    return 0;
}
