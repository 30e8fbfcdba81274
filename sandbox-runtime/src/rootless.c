#include "rootless.h"

#include "descriptor.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* The job's id where the launcher is root in a user namespace that somebody else made. */
enum { UID_FOR_ROOT = 1000 };

/* Whether this is the first user namespace: its map is the identity of all ids. */
static bool first_namespace(void)
{
    char map[128];
    unsigned long inside, outside, count;
    return descriptor_read_text(AT_FDCWD, "/proc/self/uid_map", map, sizeof map) <= 0 ||
           (sscanf(map, "%lu %lu %lu", &inside, &outside, &count) == 3 && inside == 0 && outside == 0 &&
            count == 4294967295UL);
}

/* The name of this user in /etc/passwd, or its number. libc's own look-up needs shared libraries. */
static void user_name(uid_t uid, char *name, size_t size)
{
    FILE *users = fopen("/etc/passwd", "re");
    char line[512], found[64];
    snprintf(name, size, "%u", (unsigned)uid);
    while (users && fgets(line, sizeof line, users)) {
        unsigned number;
        if (sscanf(line, "%63[^:]:%*[^:]:%u:", found, &number) == 2 && number == uid) {
            snprintf(name, size, "%s", found);
            break;
        }
    }
    if (users)
        fclose(users);
}

/* The first range that /etc/subuid or /etc/subgid gives this user. */
static struct id_range find_range(const char *path, uid_t uid, const char *name)
{
    struct id_range range = {0};
    FILE *ranges = fopen(path, "re");
    char line[256], owner[64], number[16];
    snprintf(number, sizeof number, "%u", (unsigned)uid);
    while (ranges && !range.count && fgets(line, sizeof line, ranges)) {
        unsigned first, count;
        bool parsed = sscanf(line, "%63[^:]:%u:%u", owner, &first, &count) == 3;
        if (parsed && first && (strcmp(owner, name) == 0 || strcmp(owner, number) == 0))
            range = (struct id_range){first, count};
    }
    if (ranges)
        fclose(ranges);
    return range;
}

/* The second where it is there, else the first, there or not. */
static const char *find_program(const char *const paths[2])
{
    return access(paths[1], X_OK) == 0 ? paths[1] : paths[0];
}

static const char *const uid_mappers[2] = {"/bin/newuidmap", "/usr/bin/newuidmap"};
static const char *const gid_mappers[2] = {"/bin/newgidmap", "/usr/bin/newgidmap"};

void rootless_open(struct rootless *rootless)
{
    char name[64];
    *rootless = (struct rootless){.uid = geteuid(), .gid = getegid()};
    rootless->active = rootless->uid != 0 || !first_namespace();
    if (!rootless->active || !rootless->uid || access(find_program(uid_mappers), X_OK) < 0 ||
        access(find_program(gid_mappers), X_OK) < 0)
        return;
    user_name(rootless->uid, name, sizeof name);
    rootless->uids = find_range("/etc/subuid", rootless->uid, name);
    rootless->gids = find_range("/etc/subgid", rootless->uid, name);
}

bool rootless_has_ids(const struct rootless *rootless)
{
    return rootless->uids.count && rootless->gids.count;
}

void rootless_choose(const struct rootless *rootless, uint64_t number, uid_t *uid, gid_t *gid)
{
    if (rootless_has_ids(rootless)) {
        *uid = rootless->uids.first + (uid_t)(number % rootless->uids.count);
        *gid = rootless->gids.first + (gid_t)(number % rootless->gids.count);
        return;
    }
    *uid = rootless->uid ? rootless->uid : (uid_t)UID_FOR_ROOT;
    *gid = rootless->gid ? rootless->gid : (gid_t)UID_FOR_ROOT;
}

/* newuidmap PID 0 OWN 1 JOB JOB 1 */
static bool run_mapper(const char *program, pid_t child, unsigned own, unsigned job)
{
    char pid_text[16], own_text[16], job_text[16];
    snprintf(pid_text, sizeof pid_text, "%d", (int)child);
    snprintf(own_text, sizeof own_text, "%u", own);
    snprintf(job_text, sizeof job_text, "%u", job);
    char *const words[] = {(char *)program, pid_text, "0", own_text, "1", job_text, job_text, "1", NULL};
    char *const environment[] = {NULL};
    pid_t mapper;
    int status = 0;
    int error = posix_spawn(&mapper, program, NULL, NULL, words, environment);
    if (error) {
        errno = error;
        return false;
    }
    while (waitpid(mapper, &status, 0) < 0 && errno == EINTR)
        ;
    errno = EPERM; /* it has told the reason on standard error */
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

bool rootless_map(const struct rootless *rootless, pid_t child, uid_t uid, gid_t gid, struct fault *fault)
{
    if (run_mapper(find_program(uid_mappers), child, rootless->uid, uid) &&
        run_mapper(find_program(gid_mappers), child, rootless->gid, gid))
        return true;
    return fault_set(fault, errno,
                     "check that newuidmap and newgidmap are set-user-id root or have their capability, and the user's "
                     "lines in /etc/subuid and /etc/subgid",
                     "the job's user %u and group %u cannot be mapped", (unsigned)uid, (unsigned)gid);
}

static bool write_map(const char *path, unsigned inside, unsigned outside)
{
    char line[64];
    snprintf(line, sizeof line, "%u %u 1", inside, outside);
    return descriptor_write_text(AT_FDCWD, path, line);
}

bool rootless_map_one(const struct rootless *rootless, uid_t uid, gid_t gid, struct fault *fault)
{
    if (descriptor_write_text(AT_FDCWD, "/proc/self/setgroups", "deny") &&
        write_map("/proc/self/uid_map", uid, rootless->uid) && write_map("/proc/self/gid_map", gid, rootless->gid))
        return true;
    return fault_set(fault, errno, rootless_mend(), "cannot map the launcher's user %u into the job's user namespace",
                     (unsigned)rootless->uid);
}

/* errno stays as it was: the caller is about to report it. */
static bool setting_is(const char *path, long wanted)
{
    int saved = errno;
    char text[32];
    bool is = descriptor_read_text(AT_FDCWD, path, text, sizeof text) > 0 && strtol(text, NULL, 10) == wanted;
    errno = saved;
    return is;
}

const char *rootless_mend(void)
{
    static char text[sizeof((struct fault *)0)->mend];
    char program[128];
    if (setting_is("/proc/sys/kernel/unprivileged_userns_clone", 0))
        return "sysctl -w kernel.unprivileged_userns_clone=1 (and a file in /etc/sysctl.d to keep it), or run as root";
    if (setting_is("/proc/sys/user/max_user_namespaces", 0))
        return "sysctl -w user.max_user_namespaces=15000 (and a file in /etc/sysctl.d to keep it), or run as root";
    if (!setting_is("/proc/sys/kernel/apparmor_restrict_unprivileged_userns", 1))
        return "run as root, or see whether a security module or a container forbids user namespaces";
    int saved = errno;
    ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
    errno = saved;
    snprintf(text, sizeof text,
             "as root: echo 'abi <abi/4.0>, profile sandbus-launcher %.*s flags=(unconfined) { userns, }' "
             "> /etc/apparmor.d/sandbus-launcher && apparmor_parser -r /etc/apparmor.d/sandbus-launcher; or for every "
             "program: sysctl -w kernel.apparmor_restrict_unprivileged_userns=0",
             length > 0 ? (int)length : 0, program);
    return text;
}
