/*
 * The groups and mounts of jobs that are over, and the groups that dead launchers left. A job's result says that no process of it
 * is left, which the kernel has told by then; taking groups and mounts apart takes the kernel a while, and nobody waits for it.
 * The groups stay locked until they are gone.
 */
#include "job.h"

#include "clock.h"
#include "descriptor.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum {
    GIVE_UP_US = 10 * 1000000,
    RETRY_US = 500,
};

struct removal {
    struct removal *next;
    struct cgroup_job group;
    int mounts; /* the mount namespace: the last of it that is held */
    uint64_t retry_us, give_up_us;
};

/* Tries once. True when nothing is left to do: the next start of a launcher removes what this one gives up. */
static bool try_once(struct removal *removal, uint64_t now_us)
{
    descriptor_close(&removal->mounts);
    if (cgroup_job_remove(&removal->group))
        return true;
    cgroup_job_kill(&removal->group);
    removal->retry_us = now_us + RETRY_US;
    if (now_us < removal->give_up_us)
        return false;
    cgroup_job_abandon(&removal->group);
    fprintf(stderr, "launcher: the group %s cannot be removed: look for processes in state D\n", removal->group.name);
    return true;
}

void job_leave_remains(struct job *job)
{
    struct supervisor *supervisor = job->supervisor;
    struct removal *removal = malloc(sizeof *removal);
    if (!removal || job->cgroup.groups[0].dir < 0) {
        descriptor_close(&job->mounts);
        cgroup_job_remove(&job->cgroup);
        free(removal);
        return;
    }
    uint64_t now_us = clock_now_us();
    *removal = (struct removal){
        .group = job->cgroup, .mounts = job->mounts, .retry_us = now_us, .give_up_us = now_us + GIVE_UP_US};
    job->mounts = -1;
    cgroup_job_init(&job->cgroup, &supervisor->cgroups);
    struct removal **at = &supervisor->removals;
    while (*at)
        at = &(*at)->next;
    *at = removal;
}

void supervisor_sweep(struct supervisor *supervisor)
{
    if (!supervisor->swept)
        cgroup_host_sweep(&supervisor->cgroups);
    supervisor->swept = true;
}

uint64_t removals_due_us(const struct supervisor *supervisor)
{
    uint64_t due_us = LOOP_FOREVER;
    for (const struct removal *removal = supervisor->removals; removal; removal = removal->next)
        due_us = removal->retry_us < due_us ? removal->retry_us : due_us;
    return due_us;
}

void removals_try(struct supervisor *supervisor, uint64_t now_us)
{
    for (struct removal **at = &supervisor->removals; *at; at = &(*at)->next) {
        struct removal *removal = *at;
        if (now_us < removal->retry_us)
            continue;
        if (try_once(removal, now_us)) {
            *at = removal->next;
            free(removal);
        }
        return;
    }
}

void removals_finish(struct supervisor *supervisor)
{
    while (supervisor->removals) {
        uint64_t now_us = clock_now_us(), due_us = removals_due_us(supervisor);
        if (due_us > now_us)
            usleep((unsigned)(due_us - now_us));
        removals_try(supervisor, clock_now_us());
    }
}
