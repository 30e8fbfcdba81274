/*
 * Collecting what the job left in /job/out, after its last process is gone. A process of its own does it, so that a large
 * copy holds up no other job; it sends the JSON members "files" and "skipped" through a pipe.
 *
 * Whatever the job made there is hostile: links are not followed, fifos and devices are not opened, names are taken only if
 * a record can hold them, and count, depth and bytes have limits.
 */
#include "job.h"

#include "descriptor.h"
#include "kernel.h"
#include "sha256.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { FILES_MAX = 10000, SKIPPED_MAX = 1000, DEPTH_MAX = 32, PATH_SIZE = 4096 };

struct collection {
    struct json_writer files, skipped;
    unsigned file_count, skipped_count;
    uint64_t bytes_left;  /* a sparse file may claim more than the job's file system could hold */
    char path[PATH_SIZE]; /* of the current entry, relative */
};

static void skip(struct collection *collection, const char *reason)
{
    if (collection->skipped_count++ >= SKIPPED_MAX)
        return;
    json_begin_object(&collection->skipped);
    json_key(&collection->skipped, "name");
    json_string(&collection->skipped, collection->path);
    json_key(&collection->skipped, "reason");
    json_string(&collection->skipped, reason);
    json_end_object(&collection->skipped);
}

/* Past the limit only their number is told. */
static void tell_more(struct collection *collection)
{
    snprintf(collection->path, sizeof collection->path, "(%u more)", collection->skipped_count - SKIPPED_MAX);
    collection->skipped_count = 0;
    skip(collection, "too-many");
}

/* A name that is the same in the record and on disk: valid UTF-8 without control characters. */
static bool name_is_plain(const char *name)
{
    struct json_writer probe;
    json_init(&probe, 4096);
    json_string(&probe, name);
    bool plain = !probe.overflow && !memmem(probe.bytes, probe.length, "\\u", 2);
    json_free(&probe);
    return plain;
}

/* Copies one regular file; false with errno where the destination failed. */
static bool copy_file(struct collection *collection, int from, int to)
{
    static char buffer[128 * 1024];
    struct sha256 hash;
    char hex[SHA256_HEX_SIZE];
    uint64_t bytes = 0;
    sha256_init(&hash);
    for (;;) {
        ssize_t got = read(from, buffer, sizeof buffer);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0 || !descriptor_write_all(to, buffer, (size_t)got))
            return false;
        if (got == 0)
            break;
        sha256_update(&hash, buffer, (size_t)got);
        bytes += (uint64_t)got;
    }
    sha256_final_hex(&hash, hex);
    json_begin_object(&collection->files);
    json_key(&collection->files, "name");
    json_string(&collection->files, collection->path);
    json_key(&collection->files, "bytes");
    json_u64(&collection->files, bytes);
    json_key(&collection->files, "sha256");
    json_string(&collection->files, hex);
    json_end_object(&collection->files);
    collection->file_count++;
    return true;
}

static void collect_file(struct collection *collection, int from_dir, int to_dir, const char *name, uint64_t size)
{
    if (collection->file_count >= FILES_MAX) {
        skip(collection, "too-many");
        return;
    }
    if (size > collection->bytes_left) {
        skip(collection, "too-large");
        return;
    }
    collection->bytes_left -= size;
    OWNED_FD int from = openat(from_dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    OWNED_FD int to = openat(to_dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
    if (from < 0 || to < 0 || !copy_file(collection, from, to))
        skip(collection, from < 0 ? "unreadable" : "not-written");
}

static void collect_directory(struct collection *collection, int from_dir, int to_dir, unsigned depth);

static void enter_directory(struct collection *collection, int from_dir, int to_dir, const char *name, unsigned depth)
{
    if (depth >= DEPTH_MAX) {
        skip(collection, "too-deep");
        return;
    }
    OWNED_FD int from = openat(from_dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (mkdirat(to_dir, name, 0755) < 0 && errno != EEXIST) {
        skip(collection, "not-written");
        return;
    }
    OWNED_FD int to = openat(to_dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (from < 0 || to < 0)
        skip(collection, from < 0 ? "unreadable" : "not-written");
    else
        collect_directory(collection, from, to, depth + 1);
}

static const char *kind_of(mode_t mode)
{
    return S_ISLNK(mode) ? "symlink" : S_ISFIFO(mode) ? "fifo" : S_ISSOCK(mode) ? "socket" : "device";
}

static void collect_entry(struct collection *collection, int from_dir, int to_dir, const char *name, unsigned depth)
{
    struct stat status;
    size_t length = strlen(collection->path);
    if (length + strlen(name) + 2 > PATH_SIZE) {
        skip(collection, "too-deep");
        return;
    }
    if (length)
        strcat(collection->path, "/");
    strcat(collection->path, name);
    if (fstatat(from_dir, name, &status, AT_SYMLINK_NOFOLLOW) < 0)
        skip(collection, "unreadable");
    else if (!name_is_plain(name))
        skip(collection, "bad-name");
    else if (S_ISDIR(status.st_mode))
        enter_directory(collection, from_dir, to_dir, name, depth);
    else if (S_ISREG(status.st_mode))
        collect_file(collection, from_dir, to_dir, name, (uint64_t)status.st_size);
    else
        skip(collection, kind_of(status.st_mode));
    collection->path[length] = 0;
}

static int by_name(const void *left, const void *right)
{
    return strcmp(*(char *const *)left, *(char *const *)right);
}

/* The names of a directory, sorted, so that equal outputs give equal records. The job's file system bounds their number. */
static char **list_names(int dir, size_t *count)
{
    int copy = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *entries = copy < 0 ? NULL : fdopendir(copy);
    char **names = NULL;
    *count = 0;
    for (struct dirent *entry; entries && (entry = readdir(entries));) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        if ((*count & (*count - 1)) == 0) { /* a power of two is full */
            names = realloc(names, (*count ? 2 * *count : 1) * sizeof *names);
            if (!names)
                _exit(1); /* the launcher tells that collecting failed: part of the outputs would pass for all */
        }
        char *name = strdup(entry->d_name);
        if (!name)
            _exit(1);
        names[(*count)++] = name;
    }
    if (entries)
        closedir(entries);
    if (*count)
        qsort(names, *count, sizeof *names, by_name);
    return names;
}

static void collect_directory(struct collection *collection, int from_dir, int to_dir, unsigned depth)
{
    size_t count;
    char **names = list_names(from_dir, &count);
    for (size_t i = 0; i < count; i++) {
        collect_entry(collection, from_dir, to_dir, names[i], depth);
        free(names[i]);
    }
    free(names);
}

static bool write_members(struct collection *collection, int to)
{
    struct json_writer json;
    json_init(&json, 16 << 20);
    json_key(&json, "files");
    json_begin_array(&json);
    json_raw(&json, collection->files.bytes, collection->files.length);
    json_end_array(&json);
    json_key(&json, "skipped");
    json_begin_array(&json);
    json_raw(&json, collection->skipped.bytes, collection->skipped.length);
    json_end_array(&json);
    return !json.overflow && descriptor_write_all(to, json.bytes, json.length);
}

/* The job may have put a link or a file in the place of `out`; then there is nothing to collect. */
_Noreturn static void collector_main(struct job *job, int to, pid_t launcher)
{
    struct collection collection = {.bytes_left = job->spec->tmp_size_bytes};
    prctl(PR_SET_PDEATHSIG, (unsigned long)SIGKILL, 0, 0, 0);
    json_init(&collection.files, 8 << 20);
    json_init(&collection.skipped, 7 << 20);
    if (getppid() != launcher)
        _exit(1);
    if (job->user_namespace >= 0 && kernel_enter_user_namespace(job->user_namespace) < 0)
        _exit(1);
    int from = openat(job->job_dir, "out", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (from >= 0) {
        collect_directory(&collection, from, job->collect_dir, 0);
    } else {
        strcpy(collection.path, "out");
        skip(&collection, "no-directory");
    }
    if (collection.skipped_count > SKIPPED_MAX)
        tell_more(&collection);
    _exit(write_members(&collection, to) ? 0 : 1);
}

static void collector_ready(struct watch *watch, uint32_t events)
{
    (void)events;
    struct job *job = watch->owner;
    char bytes[16384];
    ssize_t got = read(watch->fd, bytes, sizeof bytes);
    if (got > 0) {
        json_raw_piece(&job->collected, bytes, (size_t)got);
        return;
    }
    if (got < 0 && errno == EINTR)
        return;
    loop_forget(&job->supervisor->loop, watch);
    int status;
    waitpid(job->collector_pid, &status, 0);
    job->collector_pid = 0;
    if (status != 0 && !job->fault.message[0]) {
        job->outcome = OUTCOME_SETUP_FAILED;
        fault_name_step(&job->fault, "outputs");
        fault_set(&job->fault, 0, "look for a full disk or the OOM killer",
                  "the process that collects the outputs died");
    }
}

bool outputs_start(struct job *job)
{
    int pipe_ends[2];
    if (pipe2(pipe_ends, O_CLOEXEC) < 0)
        return false;
    arena_share_with_children(&job->spec->arena, true);
    pid_t launcher = getpid();
    job->collector_pid = kernel_fork();
    if (job->collector_pid == 0)
        collector_main(job, pipe_ends[1], launcher);
    arena_share_with_children(&job->spec->arena, false);
    descriptor_close(&pipe_ends[1]);
    watch_init(&job->collector, pipe_ends[0], collector_ready, job);
    if (job->collector_pid < 0 || !loop_watch(&job->supervisor->loop, &job->collector, EPOLLIN)) {
        loop_forget(&job->supervisor->loop, &job->collector);
        return false;
    }
    return true;
}

void outputs_kill(struct job *job)
{
    loop_forget(&job->supervisor->loop, &job->collector);
    if (job->collector_pid <= 0)
        return;
    kill(job->collector_pid, SIGKILL);
    waitpid(job->collector_pid, NULL, 0);
    job->collector_pid = 0;
}
