/*
 * Control groups: one group per job in each hierarchy that is needed, always below the launcher's own group, so that an
 * outer limit stays in force.
 *
 * A host has the controllers on cgroup2, on version 1 hierarchies, or some on each (hybrid). Wherever cgroup2 is mounted at
 * all, each job also has a group there: it joins it for free (CLONE_INTO_CGROUP), `cgroup.kill` ends it at once, and BPF
 * programs attach to it. Version 1 groups are joined by the single-threaded child itself, which writes 0 to its `tasks`
 * file: writing its pid from outside would wait out a grace period of the kernel.
 *
 * Who owns a group is told by a lock (flock) on its directory, held by the launcher as long as it lives. A group whose lock
 * is free belongs to a dead launcher: the next start kills what is in it and removes it. Between making a group and locking
 * it the launcher holds a shared lock on the parent, and who cleans holds that one exclusively.
 *
 *   cgroup_host.c   finds the hierarchies, prepares cgroup2
 *   cgroup_sweep.c  removes what dead launchers left
 *   cgroup_job.c    makes, joins, kills and removes the groups of one job
 *   cgroup_limit.c  sets limits and reads them back
 *   cgroup_usage.c  what the job used
 */
#ifndef SANDBUS_CGROUP_H
#define SANDBUS_CGROUP_H

#include "fault.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The first three are needed; the last two only where there is no cgroup2, which does both without a controller. */
enum cgroup_controller { CGROUP_MEMORY, CGROUP_CPU, CGROUP_PIDS, CGROUP_CPUACCT, CGROUP_DEVICES, CGROUP_CONTROLLERS };

enum { CGROUP_HIERARCHIES = 1 + CGROUP_CONTROLLERS };

struct cgroup_hierarchy {
    char path[512]; /* the launcher's own group, in the file system */
    int dir;        /* the same, open */
    bool unified;
};

struct cgroup_host {
    struct cgroup_hierarchy hierarchies[CGROUP_HIERARCHIES]; /* cgroup2 first, where it is mounted */
    size_t count;
    int controller[CGROUP_CONTROLLERS]; /* index of its hierarchy, or -1 */
};

struct cgroup_limits {
    uint64_t memory_bytes;
    uint64_t cpu_thousandths;
    uint64_t processes;
};

struct cgroup_group {
    int dir;
    int tasks; /* version 1: the file that the child writes 0 to */
};

struct cgroup_job {
    const struct cgroup_host *host;
    char name[48];
    struct cgroup_group groups[CGROUP_HIERARCHIES]; /* as in host->hierarchies */
    int oom_event;                                  /* version 1 memory: an eventfd that tells of an OOM; else -1 */
};

#define CGROUP_UNKNOWN    UINT64_MAX
#define CGROUP_JOB_PREFIX "sandbus-job-"

#define CGROUP_DELEGATION_MEND                                                                                 \
    "start it as: systemd-run --scope -p Delegate=yes launcher ... (as a user: systemd-run --user --scope -p " \
    "Delegate=yes launcher ...)"
#define CGROUP_READ_ONLY_MEND "mount the cgroup file system writable; in a container: share a delegated cgroup with it"

struct cgroup_usage {
    uint64_t user_us;
    uint64_t system_us;
    uint64_t throttled_us;
    uint64_t peak_memory_bytes;
    uint64_t peak_processes; /* without the job's init */
    uint64_t oom_kills;
};

/* Finds the hierarchies and prepares cgroup2 for groups of jobs. */
bool cgroup_host_open(struct cgroup_host *host, struct fault *fault);
void cgroup_host_close(struct cgroup_host *host);
/* "v1", "v2" or "hybrid". */
const char *cgroup_host_version(const struct cgroup_host *host);
/* The mount with cgroup2, or NULL. */
const struct cgroup_hierarchy *cgroup_host_unified(const struct cgroup_host *host);
/* Kills and removes the groups that dead launchers left below this one. Returns how many it removed. */
unsigned cgroup_host_sweep(const struct cgroup_host *host);

/* Makes the job's group in the first hierarchy, which its first process is born into where that is cgroup2; then, beside that
 * process, those in the others, whose limits the steps after that set. After a failure call cgroup_job_remove all the same. */
void cgroup_job_init(struct cgroup_job *job, const struct cgroup_host *host);
bool cgroup_job_create(struct cgroup_job *job, struct fault *fault);
bool cgroup_job_complete(struct cgroup_job *job, struct fault *fault);
/* The files by which a process joins the version 1 groups; returns how many. */
size_t cgroup_job_tasks(const struct cgroup_job *job, int tasks[CGROUP_HIERARCHIES]);
/* The job's directory on cgroup2, or -1. */
int cgroup_job_unified(const struct cgroup_job *job);
/* A number that no other living job on this host has. */
uint64_t cgroup_job_number(const struct cgroup_job *job);
/* In the child: joins the groups that these files are of. */
bool cgroup_join(const int *tasks, size_t count, struct fault *fault);
/* Kills every process of the job at once. False where the kernel has no cgroup.kill: then kill the job's init. */
bool cgroup_job_kill(const struct cgroup_job *job);
/* Whether no process is left in it. */
bool cgroup_job_is_empty(const struct cgroup_job *job);
/* Removes the groups. False while a process is still in one: call again. */
bool cgroup_job_remove(struct cgroup_job *job);
/* Leaves them, without their lock, to the next launcher that starts. */
void cgroup_job_abandon(struct cgroup_job *job);

bool cgroup_limit_memory(struct cgroup_job *job, uint64_t bytes, struct fault *fault);
bool cgroup_limit_cpu(struct cgroup_job *job, uint64_t thousandths, struct fault *fault);
bool cgroup_limit_processes(struct cgroup_job *job, uint64_t processes, struct fault *fault);

/* What is known so far; CGROUP_UNKNOWN where the kernel does not say. */
void cgroup_job_usage(const struct cgroup_job *job, struct cgroup_usage *usage);
/* Only user_us and system_us of it; the rest stays. */
void cgroup_job_cpu_usage(const struct cgroup_job *job, struct cgroup_usage *usage);
/* CPU time of the whole tree so far, or CGROUP_UNKNOWN. */
uint64_t cgroup_job_cpu_us(const struct cgroup_job *job);
/* Whether an OOM event is this job's own: the outer group's reaches every group below it too. */
bool cgroup_job_at_memory_limit(const struct cgroup_job *job, uint64_t limit_bytes);

#endif
