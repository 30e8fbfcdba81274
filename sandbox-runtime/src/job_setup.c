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

bool job_make_group(struct job *job, struct fault *fault)
{
    return job->was_prepared || cgroup_job_create(&job->cgroup, fault);
}

bool job_make_groups(struct job *job, struct fault *fault)
{
    return job->was_prepared || cgroup_job_complete(&job->cgroup, fault);
}

/* Whether a limit has to be set: the groups of a prepared child have those of the job before, which are mostly the same. */
static bool changes(uint64_t *set, uint64_t wanted)
{
    bool differs = *set != wanted;
    *set = wanted;
    return differs;
}

bool job_limit_memory(struct job *job, struct fault *fault)
{
    uint64_t wanted = job->spec->memory_bytes;
    return !changes(&job->extent.limits.memory_bytes, wanted) || cgroup_limit_memory(&job->cgroup, wanted, fault);
}

bool job_limit_cpu(struct job *job, struct fault *fault)
{
    uint64_t wanted = job->spec->cpu_thousandths;
    return !changes(&job->extent.limits.cpu_thousandths, wanted) || cgroup_limit_cpu(&job->cgroup, wanted, fault);
}

bool job_limit_processes(struct job *job, struct fault *fault)
{
    uint64_t wanted = job->spec->processes;
    return !changes(&job->extent.limits.processes, wanted) || cgroup_limit_processes(&job->cgroup, wanted, fault);
}

/* Version 1 only: the memory group tells of an OOM by an eventfd. */
static bool watch_memory(struct job *job, struct fault *fault)
{
    if (job->cgroup.oom_event < 0)
        return true;
    watch_init(&job->oom, job->cgroup.oom_event, job_oom_ready, job);
    job->cgroup.oom_event = -1;
    return loop_watch(&job->supervisor->loop, &job->oom, EPOLLIN) ||
           fault_set(fault, errno, "raise fs.epoll.max_user_watches", "cannot watch the job's memory group");
}

/* The child has left already, without having read all that it was sent. */
static bool is_gone(int error)
{
    return error == EPIPE || error == ECONNRESET;
}

/* From here on the child counts against the limits. One that has failed already says why by itself. */
bool job_admit_child(struct job *job, struct fault *fault)
{
    int files[CGROUP_HIERARCHIES + 1];
    size_t count = cgroup_job_tasks(&job->cgroup, files);
    if (job->inside.network == NETWORK_GIVEN)
        files[count++] = job->network;
    bool sent = job->was_prepared || report_send_groups(job->report.fd, files, (unsigned)count) || is_gone(errno);
    descriptor_close(&job->network);
    return sent ||
           fault_set(fault, errno, "raise the limit of open files (ulimit -n)", "cannot let the job's child go on");
}

/* The launcher, which has no use for a network, stays in it. */
static bool make_network(struct job *job, struct fault *fault)
{
    if (job->inside.network != NETWORK_GIVEN)
        return true;
    if (kernel_new_network_namespace() < 0 ||
        (job->network = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC)) < 0)
        return fault_set(fault, errno, "see: launcher check-host", "cannot make the job's network namespace");
    return true;
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

/* The child is in its PID namespace and in its cgroup2 group from its first instruction; it makes the other namespaces itself. */
bool job_clone_child(struct job *job, struct fault *fault)
{
    if (job->was_prepared)
        return true;
    int pidfd = -1;
    int unified = cgroup_job_unified(&job->cgroup);
    job->inside.born_in_group = unified >= 0;
    job->inside.group_count = (int)job->cgroup.host->count - (unified >= 0);
    struct clone_args args = {
        .flags = CLONE_PIDFD | CLONE_NEWPID,
        .pidfd = (uintptr_t)&pidfd,
        .exit_signal = SIGCHLD,
    };
    if (job->inside.rootless->active)
        args.flags |= CLONE_NEWUSER;
    if (unified >= 0) {
        args.flags |= CLONE_INTO_CGROUP;
        args.cgroup = (uint64_t)unified;
    }
    arena_share_with_children(&job->spec->arena, true);
    job->child_at_us = clock_now_us();
    job->init = kernel_clone3(&args);
    if (job->init == 0)
        inside_main(&job->inside);
    int saved = errno;
    arena_share_with_children(&job->spec->arena, false);
    errno = saved;
    if (job->init < 0) {
        fault_name_step(fault, "namespaces");
        return fault_set(fault, errno,
                         job->inside.rootless->active ? rootless_mend()
                                                      : "use Linux 5.14 or newer; see: launcher check-host",
                         "cannot start a process in new namespaces");
    }
    watch_init(&job->process, pidfd, job_process_ready, job);
    return true;
}

static bool send_go(struct job *job, struct fault *fault)
{
    job->go_us = clock_now_us();
    return report_send_go(job->report.fd) || is_gone(errno) ||
           fault_set(fault, errno, "report this", "cannot let the job's child go on");
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
    return mapped && send_go(job, fault);
}

/* The child has its own copies of its ends now. */
static bool watch_child(struct job *job, struct fault *fault)
{
    struct loop *loop = &job->supervisor->loop;
    for (int i = 0; i < 3; i++)
        descriptor_close(&job->inside.stdio[i]);
    descriptor_close(&job->inside.report);
    bool watched = loop_watch(loop, &job->process, EPOLLIN) && loop_watch(loop, &job->report, EPOLLIN);
    return watched || fault_set(fault, errno, "raise fs.epoll.max_user_watches", "cannot watch the job's child");
}

const struct setup_step setup_steps[] = {
    {"collect-dir", open_collect_dir},
    {"stdin", open_stdin},
    {"plugin-open", open_plugin},
    {"prepared", job_take_prepared},
    {"cgroup-create", job_make_group},
    {"devices", accounts_find_devices},
    {"user", job_choose_user},
    {"stdio-pipes", job_make_pipes},
    {"clone", job_clone_child},
    {"watch", watch_child},
    {"id-map", map_ids}, /* after watch: from here on the child's end is seen, whatever fails */
    /* Beside the child, which sets itself up meanwhile. A prepared one begins to work for the job at "order". */
    {"cgroups", job_make_groups},
    {"memory-limit", job_limit_memory},
    {"cpu-limit", job_limit_cpu},
    {"process-limit", job_limit_processes},
    {"memory-events", watch_memory},
    {"network", make_network},
    {"cgroup-admit", job_admit_child}, /* for this it waits before its last steps, and for the go after this list */
    {"order", job_order},
    {"notify", prepare_notify},
    {"device-controller", accounts_ready},
    {"device-rules", accounts_limit_devices},
    {"counts", accounts_count},
    {"go", send_go}, /* nothing of the plugin runs before */
};

const unsigned setup_step_count = sizeof setup_steps / sizeof setup_steps[0];

_Static_assert(sizeof setup_steps / sizeof setup_steps[0] <= JOB_SETUP_STEPS_MAX, "a job has room for every step's "
                                                                                  "time");

static void remember_extent(struct job_extent *extent, const struct job_spec *spec)
{
    *extent = (struct job_extent){{spec->memory_bytes, spec->cpu_thousandths, spec->processes}, spec->tmp_size_bytes};
}

bool job_setup(struct job *job)
{
    uint64_t before_us = clock_now_us();
    remember_extent(&job->supervisor->extent, job->spec);
    for (unsigned i = 0; i < setup_step_count; i++) {
        if (!setup_steps[i].run(job, &job->fault)) {
            fault_name_step(&job->fault, setup_steps[i].name);
            return false;
        }
        uint64_t now_us = clock_now_us();
        if (job->child_at_us >= before_us)
            job->child_step = i;
        job->setup_us[i] = (uint32_t)(now_us - before_us);
        before_us = now_us;
    }
    return true;
}
