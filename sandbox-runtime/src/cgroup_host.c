#include "cgroup.h"

#include "descriptor.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SUPERVISOR_LEAF "sandbus-supervisor"

static const char *const controller_names[CGROUP_CONTROLLERS] = {"memory", "cpu", "pids", "cpuacct", "devices"};

/* Whether `word` is one of the words of a list such as "rw,cpu,cpuacct" or "cpu memory pids". */
static bool list_has(const char *list, const char *word)
{
    size_t length = strlen(word);
    for (const char *at = list; *at;) {
        size_t part = strcspn(at, ", \n");
        if (part == length && memcmp(at, word, length) == 0)
            return true;
        at += part;
        at += *at != 0;
    }
    return false;
}

/* This process's group in the hierarchy that has `controller` (NULL: cgroup2), from /proc/self/cgroup. */
static bool own_group(const char *table, const char *controller, char *path, size_t size)
{
    for (const char *line = table; *line;) {
        const char *end = strchrnul(line, '\n');
        const char *list = memchr(line, ':', (size_t)(end - line));
        const char *group = list ? memchr(list + 1, ':', (size_t)(end - list - 1)) : NULL;
        if (group) {
            char names[128];
            snprintf(names, sizeof names, "%.*s", (int)(group - list - 1), list + 1);
            if (controller ? list_has(names, controller) : names[0] == 0) {
                snprintf(path, size, "%.*s", (int)(end - group - 1), group + 1);
                return true;
            }
        }
        line = *end ? end + 1 : end;
    }
    return false;
}

struct mount_line {
    char root[256];
    char point[256];
    char options[256];
};

static bool parse_mount(const char *line, struct mount_line *mount)
{
    const char *dash = strstr(line, " - ");
    return dash && sscanf(line, "%*s %*s %*s %255s %255s", mount->root, mount->point) == 2 &&
           sscanf(dash, " - %*s %*s %255s", mount->options) == 1;
}

/* Adds the hierarchy of this mount, open at the launcher's own group. */
static bool add_hierarchy(struct cgroup_host *host, const struct mount_line *mount, const char *group, bool unified)
{
    size_t root_length = strcmp(mount->root, "/") == 0 ? 0 : strlen(mount->root);
    if (strncmp(group, mount->root, root_length) != 0 || strstr(group, "/.."))
        return false;
    struct cgroup_hierarchy *added = &host->hierarchies[host->count];
    const char *below = strcmp(group + root_length, "/") == 0 ? "" : group + root_length;
    int length = snprintf(added->path, sizeof added->path, "%s%s", mount->point, below);
    added->dir = length < (int)sizeof added->path ? open(added->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    added->unified = unified;
    if (added->dir < 0)
        return false;
    host->count++;
    return true;
}

/* Takes cgroup2 in the first pass and the version 1 hierarchies in the second, so that cgroup2 comes first. */
static void take_mount(struct cgroup_host *host, const struct mount_line *mount, const char *table, bool unified)
{
    char group[256];
    if (unified) {
        if (!host->count && own_group(table, NULL, group, sizeof group))
            add_hierarchy(host, mount, group, true);
        return;
    }
    int index = -1;
    int wanted = cgroup_host_unified(host) ? CGROUP_PIDS + 1 : CGROUP_CONTROLLERS;
    for (int i = 0; i < wanted; i++) {
        bool has = host->controller[i] < 0 && list_has(mount->options, controller_names[i]);
        if (!has || !own_group(table, controller_names[i], group, sizeof group))
            continue;
        if (index < 0 && add_hierarchy(host, mount, group, false))
            index = (int)host->count - 1;
        host->controller[i] = index;
    }
}

/* Goes through the lines of mountinfo, which it leaves as they were. The dash stands before the type; paths have no spaces. */
static void take_mounts(struct cgroup_host *host, char *mounts, const char *table, bool unified)
{
    for (char *line = mounts, *end; (end = strchr(line, '\n')); line = end + 1) {
        struct mount_line mount;
        *end = 0;
        if (strstr(line, unified ? " - cgroup2 " : " - cgroup ") && parse_mount(line, &mount))
            take_mount(host, &mount, table, unified);
        *end = '\n';
    }
}

/* The whole of mountinfo: hosts with many containers have a long one. NULL with errno. */
static char *read_mountinfo(void)
{
    char *text = NULL;
    for (size_t size = 64 * 1024;; size *= 4) {
        char *larger = realloc(text, size);
        ssize_t length = larger ? descriptor_read_text(AT_FDCWD, "/proc/self/mountinfo", larger, size) : -1;
        text = larger ? larger : text;
        if (length >= 0 && (size_t)length < size - 1)
            return text;
        if (length < 0) {
            free(text);
            return NULL;
        }
    }
}

/* Moves every process of the launcher's own group to a leaf of it: cgroup2 gives no controllers to the children of a
 * group that has processes itself. With controllers that threads can have (cpu, pids) it does give them, and makes the
 * children unfit for processes: so it is done before controllers are enabled, not after a refusal. False with errno
 * (EBUSY: somebody is left in the group). */
static bool move_to_leaf(const struct cgroup_hierarchy *own)
{
    if (mkdirat(own->dir, SUPERVISOR_LEAF, 0755) < 0 && errno != EEXIST)
        return false;
    for (int round = 0; round < 10; round++) {
        char list[16384];
        ssize_t length = descriptor_read_text(own->dir, "cgroup.procs", list, sizeof list);
        if (length <= 0)
            return length == 0;
        for (char *pid = strtok(list, "\n"); pid; pid = strtok(NULL, "\n"))
            descriptor_write_text(own->dir, SUPERVISOR_LEAF "/cgroup.procs", pid);
    }
    errno = EBUSY;
    return false;
}

/* A launcher that was started from within the leaf works in the group above it. */
static void leave_leaf(struct cgroup_hierarchy *own)
{
    char *slash = strrchr(own->path, '/');
    if (!slash || strcmp(slash + 1, SUPERVISOR_LEAF) != 0)
        return;
    *slash = 0;
    int dir = open(own->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir >= 0) {
        descriptor_close(&own->dir);
        own->dir = dir;
    }
}

/* Enables on cgroup2 the controllers that only it has. */
static bool delegate_unified(struct cgroup_host *host, struct fault *fault)
{
    struct cgroup_hierarchy *own = &host->hierarchies[0];
    char available[256], wanted[64] = "";
    if (!host->count || !own->unified)
        return true;
    leave_leaf(own);
    if (descriptor_read_text(own->dir, "cgroup.controllers", available, sizeof available) < 0)
        available[0] = 0;
    for (int i = 0; i <= CGROUP_PIDS; i++) {
        if (host->controller[i] >= 0 || !list_has(available, controller_names[i]))
            continue;
        host->controller[i] = 0;
        size_t length = strlen(wanted);
        snprintf(wanted + length, sizeof wanted - length, "%s+%s", length ? " " : "", controller_names[i]);
    }
    /* The root of the hierarchy, which has no type, may have processes beside groups. */
    bool is_root = faccessat(own->dir, "cgroup.type", F_OK, 0) < 0;
    if (!wanted[0] ||
        ((is_root || move_to_leaf(own)) && descriptor_write_text(own->dir, "cgroup.subtree_control", wanted)))
        return true;
    fault_name_step(fault, "cgroup-delegation");
    if (errno == EROFS)
        return fault_set(fault, errno, CGROUP_READ_ONLY_MEND, "the group %s cannot be written", own->path);
    if (errno == EBUSY)
        return fault_set(fault, errno, "start the launcher in a group of its own", "processes sit in the group %s",
                         own->path);
    return fault_set(fault, errno, CGROUP_DELEGATION_MEND,
                     "the group %s is not delegated: its children cannot be given the controllers %s", own->path,
                     wanted);
}

/* A controller that no hierarchy has for the launcher's group. */
static bool report_missing(const struct cgroup_host *host, const char *controller, struct fault *fault)
{
    const struct cgroup_hierarchy *unified = cgroup_host_unified(host);
    if (!unified)
        return fault_set(fault, 0, "mount the cgroup file system (cgroup2 on /sys/fs/cgroup) and enable the controller",
                         "this host has no %s controller", controller);
    fault_name_step(fault, "cgroup-delegation");
    return fault_set(fault, 0,
                     geteuid() == 0 ? CGROUP_DELEGATION_MEND
                                    : CGROUP_DELEGATION_MEND "; root lets users have it by: systemctl edit "
                                                             "user@.service, "
                                                             "[Service] Delegate=cpu memory pids",
                     "the group %s is not delegated: it was not given the %s controller", unified->path, controller);
}

bool cgroup_host_open(struct cgroup_host *host, struct fault *fault)
{
    char table[4096];
    *host = (struct cgroup_host){.count = 0};
    for (int i = 0; i < CGROUP_CONTROLLERS; i++)
        host->controller[i] = -1;
    if (descriptor_read_text(AT_FDCWD, "/proc/self/cgroup", table, sizeof table) < 0)
        return fault_set(fault, errno, "mount /proc", "cannot read /proc/self/cgroup");
    char *mounts = read_mountinfo();
    if (!mounts)
        return fault_set(fault, errno, "mount /proc", "cannot read /proc/self/mountinfo");
    take_mounts(host, mounts, table, true);
    take_mounts(host, mounts, table, false);
    free(mounts);
    if (!delegate_unified(host, fault))
        return false;
    for (int i = 0; i <= CGROUP_PIDS; i++)
        if (host->controller[i] < 0)
            return report_missing(host, controller_names[i], fault);
    return true;
}

void cgroup_host_close(struct cgroup_host *host)
{
    for (size_t i = 0; i < host->count; i++)
        descriptor_close(&host->hierarchies[i].dir);
    host->count = 0;
}

const struct cgroup_hierarchy *cgroup_host_unified(const struct cgroup_host *host)
{
    return host->count && host->hierarchies[0].unified ? &host->hierarchies[0] : NULL;
}

const char *cgroup_host_version(const struct cgroup_host *host)
{
    if (!cgroup_host_unified(host))
        return "v1";
    return host->count == 1 ? "v2" : "hybrid";
}
