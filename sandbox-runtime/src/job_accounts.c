/*
 * What a job is held to and counted by through BPF: device nodes, system calls, executed programs. It begins while the job's
 * child sets itself up, since loading the programs takes about as long as that, and before the child gets its go. It is
 * written down as soon as the last process is gone, so that nothing stays attached while a slow reader takes the rest of the
 * output.
 */
#include "job.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

bool accounts_open(struct supervisor *supervisor, unsigned most_jobs, struct fault *fault)
{
    if (supervisor->rootless.active) {
        /* Devices are controlled by absence: see rootless.h. */
    } else if (cgroup_host_unified(&supervisor->cgroups)) {
        supervisor->devices = devices_load(most_jobs, fault);
        if (!supervisor->devices)
            return false;
    } else if (supervisor->cgroups.controller[CGROUP_DEVICES] < 0) {
        return fault_set(fault, 0, "mount cgroup2 on /sys/fs/cgroup",
                         "the host has neither cgroup2 nor the devices controller of version 1");
    }
    supervisor->counts = counts_load(most_jobs);
    return true;
}

void accounts_seek_victims(struct supervisor *supervisor)
{
    if (!supervisor->rootless.active)
        supervisor->victims = victims_load();
    supervisor->victims_sought = true;
}

void accounts_close(struct supervisor *supervisor)
{
    victims_unload(supervisor->victims);
    supervisor->victims = NULL;
    devices_unload(supervisor->devices);
    counts_unload(supervisor->counts);
    supervisor->devices = NULL;
    supervisor->counts = NULL;
}

bool accounts_find_devices(struct job *job, struct fault *fault)
{
    const struct spec_list *asked = &job->spec->devices;
    struct device_grant *grants = arena_allocate(&job->spec->arena, (asked->count + 1) * sizeof *grants);
    for (size_t i = 0; job->inside.rootless->active && i < asked->count; i++)
        if (!strchr(asked->items[i].value, 'r') || !strchr(asked->items[i].value, 'w'))
            return fault_set(fault, 0, "grant it for reading and writing (rw), or run the launcher as root",
                             "without root nothing holds a job to '%s' of %s", asked->items[i].value,
                             asked->items[i].name);
    if (!grants || asked->count > DEVICE_GRANTS)
        return fault_set(fault, 0, "ask for fewer devices", "no room for %zu devices", asked->count);
    for (size_t i = 0; i < asked->count; i++)
        if (!devices_resolve(&grants[i], asked->items[i].name, asked->items[i].value, fault))
            return false;
    job->inside.grants = grants;
    job->inside.grant_count = asked->count;
    return true;
}

bool accounts_ready(struct job *job, struct fault *fault)
{
    struct supervisor *supervisor = job->supervisor;
    bool loaded = supervisor->devices || supervisor->counts;
    return loaded || accounts_open(supervisor, supervisor->most_jobs, fault);
}

bool accounts_limit_devices(struct job *job, struct fault *fault)
{
    struct supervisor *supervisor = job->supervisor;
    const struct inside *inside = &job->inside;
    if (supervisor->rootless.active)
        return true;
    if (supervisor->devices)
        return devices_begin(supervisor->devices, &job->devices, cgroup_job_unified(&job->cgroup), inside->grants,
                             inside->grant_count, fault);
    int group = job->cgroup.groups[supervisor->cgroups.controller[CGROUP_DEVICES]].dir;
    return devices_limit_v1(group, inside->grants, inside->grant_count, fault);
}

bool accounts_count(struct job *job, struct fault *fault)
{
    (void)fault; /* what cannot be counted is recorded as unavailable */
    counts_begin(job->supervisor->counts, &job->counts, cgroup_job_unified(&job->cgroup));
    return true;
}

/* The members "syscalls", "executions", "oomVictims" and "devices". */
static void write_members(struct job *job, struct json_writer *json)
{
    struct supervisor *supervisor = job->supervisor;
    json_key(json, "syscalls");
    counts_write_syscalls(supervisor->counts, &job->counts, job->notify, json);
    json_key(json, "executions");
    counts_write_executions(supervisor->counts, &job->counts, job->started_us, json);
    json_key(json, "oomVictims");
    victims_write_json(supervisor->victims, job->counts.group, json);
    json_key(json, "devices");
    if (job->devices.group)
        devices_write_json(supervisor->devices, &job->devices, json);
    else
        devices_write_unavailable(json, job->started_us && supervisor->rootless.active ? "the launcher is not root: "
                                                                                         "only granted devices exist, "
                                                                                         "and their use "
                                                                                         "is not counted"
                                        : job->started_us ? "this host has no cgroup2: its devices controller cannot "
                                                            "count"
                                                          : "the job never ran");
}

void accounts_take(struct job *job)
{
    if (job->accounts.length)
        return;
    write_members(job, &job->accounts);
    counts_end(job->supervisor->counts, &job->counts);
    devices_end(job->supervisor->devices, &job->devices);
}
