#include "inside.h"

#include "descriptor.h"
#include "sha256.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* What of the host's /etc programs need to find libraries, certificates, time zone, and what names stand for. */
static const char *const etc_of_host[] = {"ld.so.cache", "alternatives", "localtime", "ssl/openssl.cnf",
                                          "ssl/certs",   "services",     "protocols"};

static bool write_file(const char *path, const char *text, struct fault *fault)
{
    OWNED_FD int file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0444);
    if (file < 0 || !descriptor_write_all(file, text, strlen(text)))
        return fault_set(fault, errno, "raise --memory", "cannot write /%s", path);
    return true;
}

/* The names that the job sees: itself, root and nobody; no name of the host. */
static bool write_names(struct inside *inside, struct fault *fault)
{
    unsigned uid = inside->uid;
    char users[256], groups[128], services[128];
    snprintf(users, sizeof users,
             "root:x:0:0:root:/:/usr/sbin/nologin\njob:x:%u:%u:job:/job:/bin/sh\nnobody:x:65534:65534:nobody:/:/usr/"
             "sbin/nologin\n",
             uid, (unsigned)inside->gid);
    snprintf(groups, sizeof groups, "root:x:0:\njob:x:%u:\nnogroup:x:65534:\n", (unsigned)inside->gid);
    snprintf(services, sizeof services,
             "passwd: files\ngroup: files\nhosts: files%s\nservices: files\nprotocols: files\n",
             inside->network == NETWORK_HOST ? " dns" : "");
    return write_file("etc/passwd", users, fault) && write_file("etc/group", groups, fault) &&
           write_file("etc/nsswitch.conf", services, fault) &&
           write_file("etc/hosts", "127.0.0.1 localhost sandbox\n::1 localhost\n", fault);
}

/* Shows one thing of the host's /etc where there is one. A link into /usr stays a link: its target is inside too. */
static bool show_etc(const char *name, struct fault *fault)
{
    char source[320], link[256];
    snprintf(source, sizeof source, "/etc/%s", name);
    ssize_t length = readlink(source, link, sizeof link - 1);
    if (length > 0 && strncmp(link, "/usr/", 5) == 0) {
        link[length] = 0;
        return symlink(link, source + 1) == 0 ||
               fault_set(fault, errno, "see: launcher check-host", "cannot link %s", source);
    }
    return (length < 0 && errno == ENOENT) || inside_bind_new(source, source + 1, fault);
}

static bool show_python(struct fault *fault)
{
    DIR *entries = opendir("/etc");
    bool shown = entries != NULL;
    for (struct dirent *entry; shown && (entry = readdir(entries));)
        if (strncmp(entry->d_name, "python3", 7) == 0)
            shown = show_etc(entry->d_name, fault);
    if (entries)
        closedir(entries);
    return shown || fault->message[0] ? shown
                                      : fault_set(fault, errno, "the host needs a readable /etc", "cannot read /etc");
}

bool inside_etc(struct inside *inside, struct fault *fault)
{
    if (mkdir("etc", 0755) < 0 || mkdir("etc/ssl", 0755) < 0)
        return fault_set(fault, errno, "raise --memory", "cannot make /etc");
    if (!write_names(inside, fault))
        return false;
    for (size_t i = 0; i < sizeof etc_of_host / sizeof etc_of_host[0]; i++)
        if (!show_etc(etc_of_host[i], fault))
            return false;
    if (inside->network == NETWORK_HOST && !show_etc("resolv.conf", fault))
        return false;
    return show_python(fault);
}

bool inside_open_origin(struct inside *inside, struct fault *fault)
{
    inside->origin = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
    return inside->origin >= 0 || fault_set(fault, errno, "start the launcher in a directory that exists",
                                            "cannot open the launcher's working directory");
}

int inside_open_regular(int origin, const char *path, struct fault *fault)
{
    OWNED_FD int file = openat(origin, path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    struct stat status;
    if (file < 0 || fstat(file, &status) < 0) {
        fault_set(fault, errno, "check the path and who may read it", "cannot open %s", path);
        return -1;
    }
    if (!S_ISREG(status.st_mode)) {
        fault_set(fault, 0, "give a regular file", "%s is no regular file", path);
        return -1;
    }
    int result = file;
    file = -1;
    return result;
}

/* Copies to the end; the hash is of the very bytes that were written. */
static bool copy_bytes(int from, int to, struct sha256 *hash, const char *name, struct fault *fault)
{
    static char buffer[128 * 1024];
    for (;;) {
        ssize_t got = read(from, buffer, sizeof buffer);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return fault_set(fault, errno, "check the file system that holds it", "cannot read %s", name);
        if (got == 0)
            return true;
        if (!descriptor_write_all(to, buffer, (size_t)got))
            return fault_set(fault, errno, "raise --tmp-size and --memory", "cannot copy %s into the sandbox", name);
        sha256_update(hash, buffer, (size_t)got);
    }
}

static bool check_digest(const struct job_spec *spec, struct sha256 *hash, struct fault *fault)
{
    char found[SHA256_HEX_SIZE];
    sha256_final_hex(hash, found);
    if (!spec->plugin_sha256 || strcmp(found, spec->plugin_sha256) == 0)
        return true;
    fault_name_step(fault, "plugin-digest");
    return fault_set(fault, 0, "sign the file as it is now, or bring the signed file back",
                     "%s has SHA-256 %s and should have %s: it was changed", spec->plugin_path, found,
                     spec->plugin_sha256);
}

/* The copy that is hashed is the copy that runs: the host's file may change meanwhile as it likes. */
bool inside_plugin(struct inside *inside, struct fault *fault)
{
    const struct job_spec *spec = inside->spec;
    struct sha256 hash;
    char path[300];
    if (!spec->plugin_path)
        return true;
    snprintf(path, sizeof path, "plugin/%s", spec->plugin_name);
    OWNED_FD int to = mkdir("plugin", 0755) < 0 ? -1 : open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0555);
    if (to < 0)
        return fault_set(fault, errno, "raise --memory", "cannot make /%s", path);
    sha256_init(&hash);
    bool copied = copy_bytes(inside->plugin, to, &hash, spec->plugin_path, fault) && check_digest(spec, &hash, fault);
    descriptor_close(&inside->plugin);
    return copied;
}

/* Opens the file `name` below /job for writing, with directories that belong to the job where it needs some. */
static int create_input(const char *name, uid_t owner, gid_t group)
{
    OWNED_FD int directory = open("job", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    const char *part = name;
    for (const char *slash; directory >= 0 && (slash = strchr(part, '/')); part = slash + 1) {
        char step[256];
        snprintf(step, sizeof step, "%.*s", (int)(slash - part), part);
        if (mkdirat(directory, step, 0755) == 0)
            (void)!fchownat(directory, step, owner, group, AT_SYMLINK_NOFOLLOW);
        int next = openat(directory, step, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        descriptor_close(&directory);
        directory = next;
    }
    int file = directory < 0 ? -1 : openat(directory, part, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    if (file >= 0)
        (void)!fchown(file, owner, group);
    return file;
}

bool inside_inputs(struct inside *inside, struct fault *fault)
{
    const struct spec_list *inputs = &inside->spec->inputs;
    for (size_t i = 0; i < inputs->count; i++) {
        struct sha256 unused;
        sha256_init(&unused);
        OWNED_FD int from =
            inside->sources ? *inside->sources++ : inside_open_regular(inside->origin, inputs->items[i].value, fault);
        if (from < 0)
            return false;
        OWNED_FD int to = create_input(inputs->items[i].name, inside->uid, inside->gid);
        if (to < 0)
            return fault_set(fault, errno, "give each input a name of its own", "cannot make /job/%s",
                             inputs->items[i].name);
        if (!copy_bytes(from, to, &unused, inputs->items[i].value, fault))
            return false;
    }
    descriptor_close(&inside->origin);
    return true;
}
