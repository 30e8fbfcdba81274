/* Does what its arguments say: act VERB ARGS [, VERB ARGS]... and prints what came of each, a line each (test/languages.sh). */
#include "errno_name.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

static char *words[8]; /* of the action at hand, the verb first */

static long number(const char *word)
{
    return strtol(word, NULL, 0);
}

static int open_as(int flags)
{
    int file = open(words[1], flags, 0644);
    return file < 0 ? -1 : close(file);
}

static int act_read(void)
{
    char byte;
    struct stat status;
    int file = open(words[1], O_RDONLY);
    if (file < 0 || fstat(file, &status) < 0)
        return -1;
    return S_ISDIR(status.st_mode) || read(file, &byte, 1) >= 0 ? 0 : -1;
}

static int act_write(void)
{
    return open_as(O_WRONLY);
}

static int act_create(void)
{
    return open_as(O_WRONLY | O_CREAT | O_EXCL);
}

static int act_chmod(void)
{
    return chmod(words[1], 0777);
}

static int act_remove(void)
{
    return unlink(words[1]);
}

static int act_rename(void)
{
    return rename(words[1], words[2]);
}

static int act_link(void)
{
    return link(words[1], words[2]);
}

static int act_symlink(void)
{
    return symlink(words[1], words[2]);
}

static int act_fifo(void)
{
    return mkfifo(words[1], 0644);
}

static int act_sparse(void)
{
    return open_as(O_WRONLY | O_CREAT) < 0 ? -1 : truncate(words[1], 1L << 40);
}

static int act_kill(void)
{
    return kill((pid_t)number(words[1]), (int)number(words[2]));
}

static int act_limit(void)
{
    struct rlimit none = {0, 0};
    return (int)syscall(SYS_prlimit64, number(words[1]), (long)RLIMIT_NOFILE, &none, NULL);
}

/* What is no number is passed as a string. */
static int act_syscall(void)
{
    long arguments[7] = {0};
    for (int i = 0; i < 7 && words[i + 1]; i++) {
        char *end;
        arguments[i] = strtol(words[i + 1], &end, 0);
        if (*end)
            arguments[i] = (long)words[i + 1];
    }
    return syscall(arguments[0], arguments[1], arguments[2], arguments[3], arguments[4], arguments[5], arguments[6]) < 0
               ? -1
               : 0;
}

static int act_setuid(void)
{
    return setuid((uid_t)number(words[1]));
}

/* Prints its output, as what was found. */
static int act_spawn(void)
{
    char command[256] = "exec 2>/dev/null";
    for (int i = 1; words[i]; i++)
        snprintf(command + strlen(command), sizeof command - strlen(command), "%s%s", i == 1 ? "; " : " ", words[i]);
    return system(command) < 0 ? -1 : 1;
}

static int act_environment(void)
{
    const char *value = getenv(words[1]);
    puts(value ? value : "unset");
    return 1;
}

static int act_foreign(void)
{
    DIR *directory = opendir("/proc/self/fd");
    int count = 0;
    for (struct dirent *entry; directory && (entry = readdir(directory));) {
        char target[256];
        ssize_t length = readlinkat(dirfd(directory), entry->d_name, target, sizeof target - 1);
        target[length > 0 ? length : 0] = 0;
        count += target[0] == '/' && strncmp(target, "/dev/", 5) != 0 && strncmp(target, "/proc/", 6) != 0;
    }
    printf("%d\n", count);
    return 1;
}

static int act_connect(void)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    size_t length = strlen(words[1]);
    memcpy(address.sun_path + 1, words[1], length);
    return connect(socket(AF_UNIX, SOCK_STREAM, 0), (struct sockaddr *)&address,
                   (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + length));
}

static int act_open_many(void)
{
    for (long i = number(words[1]); i > 0; i--)
        if (open("/dev/null", O_RDONLY) < 0)
            return -1;
    return 0;
}

static int act_fill(void)
{
    static const char block[65536];
    int file = open(words[1], O_WRONLY | O_CREAT, 0644);
    while (write(file, block, sizeof block) > 0)
        ;
    return -1;
}

static int act_exit(void)
{
    exit((int)number(words[1]));
}

static int act_die(void)
{
    kill(getpid(), (int)number(words[1]));
    return -1;
}

static int act_sleep(void)
{
    return (int)sleep(1000);
}

static volatile bool enough; /* never */

static int act_spin(void)
{
    while (!enough)
        ;
    return 0;
}

static int act_hog(void)
{
    for (char *block; (block = malloc(1000000));)
        memset(block, 1, 1000000);
    return -1;
}

static int act_flood(void)
{
    static const char block[4096];
    while (write(1, block, sizeof block) > 0)
        ;
    return -1;
}

static int act_bomb(void)
{
    while (!enough)
        if (fork() == 0)
            sleep(1000);
    return 0;
}

static int act_daemon(void)
{
    if (fork() == 0) {
        setsid();
        sleep(1000);
    }
    return 0;
}

/* Returns 0, -1 with errno, or 1 where it has printed what it found. */
static const struct {
    const char *name;
    int (*act)(void);
} verbs[] = {
    {"read", act_read},
    {"write", act_write},
    {"create", act_create},
    {"chmod", act_chmod},
    {"remove", act_remove},
    {"rename", act_rename},
    {"link", act_link},
    {"symlink", act_symlink},
    {"fifo", act_fifo},
    {"sparse", act_sparse},
    {"kill", act_kill},
    {"limit", act_limit},
    {"syscall", act_syscall},
    {"setuid", act_setuid},
    {"spawn", act_spawn},
    {"exit", act_exit},
    {"environment", act_environment},
    {"foreign", act_foreign},
    {"connect", act_connect},
    {"open-many", act_open_many},
    {"fill", act_fill},
    {"die", act_die},
    {"sleep", act_sleep},
    {"spin", act_spin},
    {"hog", act_hog},
    {"flood", act_flood},
    {"bomb", act_bomb},
    {"daemon", act_daemon},
};

static void act(void)
{
    for (size_t i = 0; i < sizeof verbs / sizeof verbs[0]; i++) {
        if (strcmp(verbs[i].name, words[0]) != 0)
            continue;
        int result = verbs[i].act();
        if (result <= 0)
            puts(result == 0 ? "ok" : errno_name(errno));
        fflush(stdout);
    }
}

int main(int argc, char **argv)
{
    int count = 0;
    for (int i = 1; i <= argc; i++) {
        if (i < argc && strcmp(argv[i], ",") != 0) {
            words[count++] = argv[i];
            continue;
        }
        words[count] = NULL;
        act();
        count = 0;
    }
    return 0;
}
