#include "job.h"

#include "clock.h"
#include "descriptor.h"
#include "kernel.h"
#include "policy.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* User ids of jobs: above the ranges that login, containers and systemd hand out, below 2^31. The low bits are the number of
 * the job's control group, which no other living job on the host has. */
enum { UID_BASE = 0x70000000, UID_MASK = 0x0fffffff };

/* Opened first: a job whose outputs have nowhere to go is not run. */
static bool open_collect_dir(struct job *job, struct fault *fault)
{
    if (!job->spec->collect_dir)
        return true;
    job->collect_dir = open(job->spec->collect_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return job->collect_dir >= 0 ||
           fault_set(fault, errno, "make the directory first", "cannot collect outputs in %s", job->spec->collect_dir);
}

/* Here, since the path may lead through /proc/self/fd. The child copies and hashes. */
static bool open_plugin(struct job *job, struct fault *fault)
{
    if (job->spec->plugin_path)
        job->inside.plugin = inside_open_regular(AT_FDCWD, job->spec->plugin_path, fault);
    return !job->spec->plugin_path || job->inside.plugin >= 0;
}

/* Regular files, and devices such as /dev/null. A fifo might have no writer. */
static bool open_stdin(struct job *job, struct fault *fault)
{
    const char *path = job->spec->stdin_path;
    struct stat status;
    if (!path)
        return true;
    job->stdin_file = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (job->stdin_file < 0 || fstat(job->stdin_file, &status) < 0)
        return fault_set(fault, errno, "check the path and who may read it", "cannot open --stdin %s", path);
    return S_ISREG(status.st_mode) || S_ISCHR(status.st_mode) ||
           fault_set(fault, 0, "give a regular file, or /dev/null", "--stdin %s is no regular file", path);
}

bool job_make_groups(struct job *job, struct fault *fault)
{
    return job->was_prepared || cgroup_job_create(&job->cgroup, fault);
}

static bool limit_memory(struct job *job, struct fault *fault)
{
    return cgroup_limit_memory(&job->cgroup, job->spec->memory_bytes, fault);
}

static bool limit_cpu(struct job *job, struct fault *fault)
{
    return cgroup_limit_cpu(&job->cgroup, job->spec->cpu_thousandths, fault);
}

static bool limit_processes(struct job *job, struct fault *fault)
{
    return cgroup_limit_processes(&job->cgroup, job->spec->processes, fault);
}

bool job_choose_user(struct job *job, struct fault *fault)
{
    if (job->was_prepared)
        return true;
    uint64_t number = cgroup_job_number(&job->cgroup) & UID_MASK;
    struct inside *inside = &job->inside;
    if (inside->rootless->active && job->spec->uid)
        return fault_set(fault, EPERM, "leave --uid out, or run the launcher as root", "only root chooses a user id");
    if (inside->rootless->active) {
        rootless_choose(inside->rootless, number, &inside->uid, &inside->gid);
        return true;
    }
    if (!job->spec->uid && !number)
        return fault_set(fault, errno, "give --uid", "cannot choose a user id");
    inside->uid = (uid_t)(job->spec->uid ? job->spec->uid : UID_BASE + number);
    inside->gid = inside->uid;
    return true;
}

/* Three pipes and the report socket. The launcher's ends of the pipes are watched once the child runs. */
bool job_make_pipes(struct job *job, struct fault *fault)
{
    if (job->was_prepared)
        return true;
    int in[2] = {-1, -1}, out[2] = {-1, -1}, err[2] = {-1, -1}, report[2] = {-1, -1};
    bool made = pipe2(in, O_CLOEXEC) == 0 && pipe2(out, O_CLOEXEC) == 0 && pipe2(err, O_CLOEXEC) == 0 &&
                descriptor_packet_pair(report);
    job->pipe_in = in[1];
    job->pipe_out[0] = out[0];
    job->pipe_out[1] = err[0];
    job->inside.stdio[0] = in[0];
    job->inside.stdio[1] = out[1];
    job->inside.stdio[2] = err[1];
    job->inside.report = report[1];
    watch_init(&job->report, report[0], job_report_ready, job);
    return made || fault_set(fault, errno, "raise the limit of open files (ulimit -n)", "cannot make the job's pipes");
}

static bool prepare_notify(struct job *job, struct fault *fault)
{
    job->notify = notify_new(job->spec->end_at_denial);
    return job->notify ||
           fault_set(fault, errno, "see: launcher check-host", "cannot prepare to answer refused system calls");
}

/* The child is in its namespaces and in its cgroup2 group from its first instruction. */
bool job_clone_child(struct job *job, struct fault *fault)
{
    if (job->was_prepared)
        return job_order(job, fault);
    int pidfd = -1;
    int unified = cgroup_job_unified(&job->cgroup);
    struct clone_args args = {
        .flags = CLONE_PIDFD | CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWUTS,
        .pidfd = (uintptr_t)&pidfd,
        .exit_signal = SIGCHLD,
    };
    if (job->inside.rootless->active)
        args.flags |= CLONE_NEWUSER;
    if (!job->inside.network_host)
        args.flags |= CLONE_NEWNET;
    if (unified >= 0) {
        args.flags |= CLONE_INTO_CGROUP;
        args.cgroup = (uint64_t)unified;
    }
    arena_share_with_children(&job->spec->arena, true);
    job->cloned_us = clock_now_us();
    job->init = kernel_clone3(&args);
    if (job->init == 0)
        inside_main(&job->inside);
    int saved = errno;
    arena_share_with_children(&job->spec->arena, false);
    errno = saved;
    if (job->init < 0)
        return fault_set(fault, errno,
                         job->inside.rootless->active ? rootless_mend()
                                                      : "use Linux 5.14 or newer; see: launcher check-host",
                         "cannot start a process in new namespaces");
    watch_init(&job->process, pidfd, job_process_ready, job);
    return true;
}

/* Rootless only: the child waits for its ids, and its files can be read only from within its user namespace. */
static bool map_ids(struct job *job, struct fault *fault)
{
    const struct rootless *rootless = job->inside.rootless;
    char path[64];
    if (!rootless->active)
        return true;
    snprintf(path, sizeof path, "/proc/%d/ns/user", (int)job->init);
    job->user_namespace = open(path, O_RDONLY | O_CLOEXEC);
    if (job->user_namespace < 0)
        return fault_set(fault, errno, "see: launcher check-host", "cannot open the job's user namespace");
    bool mapped =
        !rootless_has_ids(rootless) || rootless_map(rootless, job->init, job->inside.uid, job->inside.gid, fault);
    return mapped &&
           (report_send_go(job->report.fd) || fault_set(fault, errno, "report this", "the job's child is gone"));
}

/* The child has its own copies of its ends now. */
static bool watch_child(struct job *job, struct fault *fault)
{
    struct loop *loop = &job->supervisor->loop;
    for (int i = 0; i < 3; i++)
        descriptor_close(&job->inside.stdio[i]);
    descriptor_close(&job->inside.plugin);
    descriptor_close(&job->inside.report);
    bool watched = loop_watch(loop, &job->process, EPOLLIN) && loop_watch(loop, &job->report, EPOLLIN);
    if (watched && job->cgroup.oom_event >= 0) {
        watch_init(&job->oom, job->cgroup.oom_event, job_oom_ready, job);
        job->cgroup.oom_event = -1;
        watched = loop_watch(loop, &job->oom, EPOLLIN);
    }
    return watched || fault_set(fault, errno, "raise fs.epoll.max_user_watches", "cannot watch the job's child");
}

const struct setup_step setup_steps[] = {
    {"collect-dir", open_collect_dir},
    {"stdin", open_stdin},
    {"plugin-open", open_plugin},
    {"prepared", job_take_prepared},
    {"cgroup-create", job_make_groups},
    {"memory-limit", limit_memory},
    {"cpu-limit", limit_cpu},
    {"process-limit", limit_processes},
    {"devices", accounts_find_devices},
    {"user", job_choose_user},
    {"stdio-pipes", job_make_pipes},
    {"notify", prepare_notify},
    {"namespaces", job_clone_child},
    {"watch", watch_child},
    {"id-map", map_ids}, /* after watch: from here on the child's end is seen, whatever fails */
    /* Beside the child, which sets itself up meanwhile and then waits for the go that follows this list. */
    {"device-controller", accounts_ready},
    {"device-rules", accounts_limit_devices},
    {"counts", accounts_count},
};

const unsigned setup_step_count = sizeof setup_steps / sizeof setup_steps[0];

_Static_assert(sizeof setup_steps / sizeof setup_steps[0] <= JOB_SETUP_STEPS_MAX, "a job has room for every step's "
                                                                                  "time");

bool job_setup(struct job *job)
{
    uint64_t before_us = clock_now_us();
    for (unsigned i = 0; i < setup_step_count; i++) {
        if (!setup_steps[i].run(job, &job->fault)) {
            fault_name_step(&job->fault, setup_steps[i].name);
            return false;
        }
        uint64_t now_us = clock_now_us();
        if (setup_steps[i].run == job_clone_child)
            job->clone_step = i;
        job->setup_us[i] = (uint32_t)(now_us - before_us);
        before_us = now_us;
    }
    return true;
}

/* A filter that is there already may answer calls before ours sees them: denials would go unrecorded. */
bool supervisor_check_outer_filter(struct fault *fault)
{
    char status[4096];
    const char *line = NULL;
    if (descriptor_read_text(AT_FDCWD, "/proc/self/status", status, sizeof status) > 0)
        line = strstr(status, "\nSeccomp:");
    if (line && strtoul(line + strlen("\nSeccomp:"), NULL, 10) == 0)
        return true;
    fault_name_step(fault, "outer-seccomp");
    return fault_set(fault, 0,
                     "start it without one: docker run --security-opt seccomp=unconfined, or SystemCallFilter= left "
                     "out of the unit",
                     "%s",
                     line ? "the launcher runs under a seccomp filter, which would hide denied calls"
                          : "cannot read /proc/self/status");
}

bool supervisor_open(struct supervisor *supervisor, unsigned most_jobs, struct fault *fault)
{
    *supervisor = (struct supervisor){.loop = {.epoll = -1}, .most_jobs = most_jobs};
    rootless_open(&supervisor->rootless);
    if (!supervisor_check_outer_filter(fault))
        return false;
    if (!cgroup_host_open(&supervisor->cgroups, fault)) {
        fault_name_step(fault, "cgroup-host");
        return false;
    }
    cgroup_host_sweep(&supervisor->cgroups);
    if (!loop_open(&supervisor->loop)) {
        fault_name_step(fault, "event-loop");
        return fault_set(fault, errno, "raise the limit of open files (ulimit -n)", "cannot make an epoll descriptor");
    }
    return true;
}

void supervisor_close(struct supervisor *supervisor)
{
    job_unprepare(supervisor);
    accounts_close(supervisor);
    loop_close(&supervisor->loop);
    cgroup_host_close(&supervisor->cgroups);
}
