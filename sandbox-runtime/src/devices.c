#include "devices.h"

#include "bpf.h"
#include "descriptor.h"
#include "devices_program.h"
#include "json.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

enum { GRANTS_MOST = 4096, READ_WRITE = DEVICE_READ | DEVICE_WRITE };

struct devices {
    int rules; /* map: struct device_key to struct device_rule */
    int program;
};

/* Every program may count on these. */
static const struct device_grant basics[] = {
    {"/dev/null", 'c', 1, 3, READ_WRITE},    {"/dev/zero", 'c', 1, 5, READ_WRITE},
    {"/dev/full", 'c', 1, 7, READ_WRITE},    {"/dev/random", 'c', 1, 8, READ_WRITE},
    {"/dev/urandom", 'c', 1, 9, READ_WRITE}, {"/dev/tty", 'c', 5, 0, READ_WRITE},
    {"/dev/ptmx", 'c', 5, 2, READ_WRITE},    {"/dev/pts", 'c', 136, DEVICE_ANY_MINOR, READ_WRITE},
};

enum { BASICS = sizeof basics / sizeof *basics };

static const char bpf_mend[] = "start the launcher as root with CAP_BPF (or CAP_SYS_ADMIN), outside a user namespace";

static bool parse_access(const char *letters, unsigned *access)
{
    *access = letters && *letters ? 0 : (unsigned)READ_WRITE;
    for (; letters && *letters; letters++) {
        const char *at = strchr("mrw", *letters); /* in the order of enum device_access */
        if (!at)
            return false;
        *access |= 1U << (at - "mrw");
    }
    return true;
}

bool devices_resolve(struct device_grant *grant, const char *path, const char *letters, struct fault *fault)
{
    struct stat status;
    if (!parse_access(letters, &grant->access))
        return fault_set(fault, 0, "use some of r, w and m", "device %s: the access '%s' has other letters than rwm",
                         path, letters);
    if (stat(path, &status) != 0)
        return fault_set(fault, errno,
                         "load the driver, or create the node (nvidia-modprobe, udev), or do not ask for it",
                         "device %s cannot be looked at", path);
    if (!S_ISCHR(status.st_mode) && !S_ISBLK(status.st_mode))
        return fault_set(fault, 0, "name a device node; files and directories go with --ro-bind",
                         "%s is not a device node", path);
    grant->path = path;
    grant->type = S_ISCHR(status.st_mode) ? 'c' : 'b';
    grant->major = major(status.st_rdev);
    grant->minor = minor(status.st_rdev);
    return true;
}

/* Room for the basics of every job, for the rule that counts the rest, and for the grants of all together. */
static unsigned rules_for(unsigned most_jobs)
{
    unsigned grants = most_jobs * DEVICE_GRANTS;
    return most_jobs * (BASICS + 1) + (grants < GRANTS_MOST ? grants : GRANTS_MOST);
}

struct devices *devices_load(unsigned most_jobs, struct fault *fault)
{
    struct devices *devices = malloc(sizeof *devices);
    if (!devices) {
        fault_set(fault, ENOMEM, "free some memory", "no memory for the device controller");
        return NULL;
    }
    *devices = (struct devices){.program = -1};
    devices->rules = bpf_map_create(BPF_MAP_TYPE_HASH, sizeof(struct device_key), sizeof(struct device_rule), rules_for(most_jobs),
                                    BPF_F_NO_PREALLOC);
    if (devices->rules >= 0)
        devices->program = devices_program_load(devices->rules);
    if (devices->program >= 0)
        return devices;
    fault_set(fault, errno, bpf_mend, "the device program cannot be loaded: %s", bpf_unavailable(errno));
    devices_unload(devices);
    return NULL;
}

void devices_unload(struct devices *devices)
{
    if (!devices)
        return;
    descriptor_close(&devices->program);
    descriptor_close(&devices->rules);
    free(devices);
}

static struct device_key key_of(const struct devices_job *job, const struct device_grant *grant)
{
    uint32_t type = grant->type == 'b' ? DEVICE_TYPE_BLOCK : DEVICE_TYPE_CHARACTER;
    return (struct device_key){.group = job->group, .type = type, .major = grant->major, .minor = grant->minor};
}

static struct device_key other_key(const struct devices_job *job)
{
    return (struct device_key){.group = job->group, .type = DEVICE_TYPE_OTHER};
}

static bool same_node(const struct device_grant *a, const struct device_grant *b)
{
    return a->type == b->type && a->major == b->major && a->minor == b->minor;
}

/* The first of the job's grants with this node: the one that the node's counts are shown under. */
static const struct device_grant *first_grant(const struct devices_job *job, const struct device_grant *like)
{
    for (size_t i = 0; i < job->grant_count; i++)
        if (same_node(&job->grants[i], like))
            return &job->grants[i];
    return NULL;
}

/* Making a node is no use of it: only init can, while it builds /dev, so every rule has that bit. */
static bool put_rule(struct devices *devices, const struct devices_job *job, const struct device_grant *grant)
{
    struct device_key key = key_of(job, grant);
    struct device_rule rule = {.access = grant->access | DEVICE_MKNOD};
    struct device_rule earlier;
    if (first_grant(job, grant) != grant && bpf_map_get(devices->rules, &key, &earlier))
        rule.access |= earlier.access; /* the same node under two paths */
    return bpf_map_put(devices->rules, &key, &rule, BPF_ANY);
}

/* A grant overrides a basic with the same numbers: it may narrow it. */
static bool put_rules(struct devices *devices, const struct devices_job *job)
{
    struct device_key other = other_key(job);
    bool put = bpf_map_put(devices->rules, &other, &(struct device_rule){0}, BPF_ANY);
    for (size_t i = 0; put && i < BASICS; i++)
        if (!first_grant(job, &basics[i]))
            put = put_rule(devices, job, &basics[i]);
    for (size_t i = 0; put && i < job->grant_count; i++)
        put = put_rule(devices, job, &job->grants[i]);
    return put;
}

bool devices_begin(struct devices *devices, struct devices_job *job, int cgroup2_dir, const struct device_grant *grants,
                   size_t grant_count, struct fault *fault)
{
    struct stat status;
    *job = (struct devices_job){.grants = grants, .grant_count = grant_count};
    if (fstat(cgroup2_dir, &status) != 0)
        return fault_set(fault, errno, "report this", "the job's cgroup2 directory cannot be looked at");
    job->group = status.st_ino; /* the id of a group is its inode number */
    if (put_rules(devices, job) && bpf_attach_cgroup(cgroup2_dir, devices->program, BPF_CGROUP_DEVICE))
        return true;
    fault_set(fault, errno, bpf_mend, "the device program cannot be attached to the job's group");
    devices_end(devices, job);
    return false;
}

void devices_end(struct devices *devices, struct devices_job *job)
{
    if (!job->group)
        return;
    struct device_key other = other_key(job);
    bpf_map_remove(devices->rules, &other);
    for (size_t i = 0; i < BASICS; i++) {
        struct device_key key = key_of(job, &basics[i]);
        bpf_map_remove(devices->rules, &key);
    }
    for (size_t i = 0; i < job->grant_count; i++) {
        struct device_key key = key_of(job, &job->grants[i]);
        bpf_map_remove(devices->rules, &key);
    }
    job->group = 0;
}

static void write_access(struct json_writer *json, const char *name, const struct device_rule *rule)
{
    json_begin_object(json);
    json_key(json, "device");
    json_string(json, name);
    json_key(json, "type");
    json_string(json, rule->type == DEVICE_TYPE_BLOCK ? "b" : "c");
    json_key(json, "major");
    json_u64(json, rule->major);
    json_key(json, "minor");
    json_u64(json, rule->minor);
    json_key(json, "allowed");
    json_u64(json, rule->allowed);
    json_key(json, "denied");
    json_u64(json, rule->denied);
    json_end_object(json);
}

/* `always`: also where it was not used. */
static void write_rule(const struct devices *devices, const struct devices_job *job, const struct device_grant *grant,
                       bool always, struct json_writer *json)
{
    struct device_key key = key_of(job, grant);
    struct device_rule rule;
    if (!bpf_map_get(devices->rules, &key, &rule) || !(always || rule.allowed || rule.denied))
        return;
    rule.type = key.type;
    rule.major = key.major;
    rule.minor = key.minor == DEVICE_ANY_MINOR ? 0 : key.minor;
    write_access(json, grant->path, &rule);
}

static void write_other(const struct devices *devices, const struct devices_job *job, struct json_writer *json)
{
    struct device_key key = other_key(job);
    struct device_rule rule;
    if (bpf_map_get(devices->rules, &key, &rule) && rule.denied)
        write_access(json, "other", &rule);
}

static void write_granted(const struct devices_job *job, struct json_writer *json)
{
    json_key(json, "granted");
    json_begin_array(json);
    for (size_t i = 0; i < job->grant_count; i++)
        json_string(json, job->grants[i].path);
    json_end_array(json);
}

void devices_write_json(const struct devices *devices, const struct devices_job *job, struct json_writer *json)
{
    json_begin_object(json);
    json_key(json, "available");
    json_bool(json, true);
    write_granted(job, json);
    json_key(json, "accesses");
    json_begin_array(json);
    for (size_t i = 0; i < job->grant_count; i++)
        if (first_grant(job, &job->grants[i]) == &job->grants[i])
            write_rule(devices, job, &job->grants[i], true, json);
    for (size_t i = 0; i < BASICS; i++)
        if (!first_grant(job, &basics[i]))
            write_rule(devices, job, &basics[i], false, json);
    write_other(devices, job, json);
    json_end_array(json);
    json_end_object(json);
}

void devices_write_unavailable(struct json_writer *json, const char *reason)
{
    json_begin_object(json);
    json_key(json, "available");
    json_bool(json, false);
    json_key(json, "reason");
    json_string(json, reason);
    json_end_object(json);
}

static bool allow_v1(int devices_dir, const struct device_grant *grant)
{
    char minor_text[16] = "*", line[64];
    if (grant->minor != DEVICE_ANY_MINOR)
        snprintf(minor_text, sizeof minor_text, "%u", grant->minor);
    snprintf(line, sizeof line, "%c %u:%s %s%sm", grant->type, grant->major, minor_text,
             grant->access & DEVICE_READ ? "r" : "", grant->access & DEVICE_WRITE ? "w" : "");
    return descriptor_write_text(devices_dir, "devices.allow", line);
}

bool devices_limit_v1(int devices_dir, const struct device_grant *grants, size_t grant_count, struct fault *fault)
{
    struct devices_job job = {.grants = grants, .grant_count = grant_count};
    bool limited = descriptor_write_text(devices_dir, "devices.deny", "a");
    for (size_t i = 0; limited && i < BASICS; i++)
        if (!first_grant(&job, &basics[i]))
            limited = allow_v1(devices_dir, &basics[i]);
    for (size_t i = 0; limited && i < grant_count; i++)
        limited = allow_v1(devices_dir, &grants[i]);
    if (limited)
        return true;
    return fault_set(fault, errno,
                     "give the launcher's own devices group what its jobs need: a group cannot allow more than its "
                     "parent",
                     "the devices controller did not take the job's rules");
}
