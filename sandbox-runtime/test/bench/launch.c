/*
 * What a launch costs, in the same run for all who do it: a bare posix_spawn, `launcher run`, a job of `launcher serve`, and
 * bubblewrap with the same namespaces and binds. They take turns, so that what else the machine does hits all alike. Ratios
 * count, not microseconds.
 *
 *   launch ROUNDS NODE
 */
#include "../serve-client.h"

#include <fcntl.h>
#include <time.h>

extern char **environ;

enum { WORDS = 96, ROUNDS_MAX = 2000, PAIRS = 60 };

struct command {
    const char *words[WORDS];
    size_t count;
};

static struct client client;
static uint64_t job;

static void die(const char *what)
{
    fprintf(stderr, "launch: %s\n", what);
    exit(1);
}

static void add(struct command *command, const char *word)
{
    if (command->count == WORDS - 1)
        die("a command has too many words");
    command->words[command->count++] = word;
    command->words[command->count] = NULL;
}

#define ADD_ALL(command, ...)                                            \
    do {                                                                 \
        const char *words_[] = {__VA_ARGS__};                            \
        for (size_t i_ = 0; i_ < sizeof words_ / sizeof words_[0]; i_++) \
            add(command, words_[i_]);                                    \
    } while (0)

static double now_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

/* What a job sees without any option, for bubblewrap. */
static void add_bwrap(struct command *command)
{
    static const char *const links[] = {"/bin", "/sbin", "/lib", "/lib64"};
    static const char *const etc[] = {"/etc/ld.so.cache", "/etc/alternatives", "/etc/ssl/certs", "/etc/ssl/openssl.cnf",
                                      "/etc/services",    "/etc/protocols",    "/etc/passwd",    "/etc/group"};
    ADD_ALL(command, "bwrap", "--unshare-pid", "--unshare-net", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup",
            "--die-with-parent", "--new-session", "--ro-bind", "/usr", "/usr");
    for (size_t i = 0; i < sizeof links / sizeof links[0]; i++)
        ADD_ALL(command, "--ro-bind-try", links[i], links[i]);
    for (size_t i = 0; i < sizeof etc / sizeof etc[0]; i++)
        ADD_ALL(command, "--ro-bind-try", etc[i], etc[i]);
    ADD_ALL(command, "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp", "--dir", "/job", "--chdir", "/job",
            "--cap-drop", "ALL", "--uid", "0");
    command->count -= 2; /* no --uid: that would need a user namespace */
    command->words[command->count] = NULL;
}

static pid_t spawn(const struct command *command)
{
    pid_t child;
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    for (int fd = 0; fd < 3; fd++)
        posix_spawn_file_actions_addopen(&actions, fd, "/dev/null", fd ? O_WRONLY : O_RDONLY, 0);
    int error = posix_spawnp(&child, command->words[0], &actions, NULL, (char *const *)command->words, environ);
    posix_spawn_file_actions_destroy(&actions);
    return error ? -1 : child;
}

static void reap(pid_t child, const char *name)
{
    int status = -1;
    if (child > 0 && waitpid(child, &status, 0) == child && status == 0)
        return;
    fprintf(stderr, "launch: %s could not launch the program, or it failed (wait status %d)\n", name, status);
    exit(1);
}

static void begin_job(const struct command *command)
{
    char words[4096];
    size_t length = 0;
    for (size_t i = 0; i < command->count; i++) {
        size_t size = strlen(command->words[i]) + 1;
        memcpy(words + length, command->words[i], size);
        length += size;
    }
    if (!client_send(&client, FRAME_START, ++job, words, length))
        die("serve is gone");
}

static void end_job(void)
{
    struct client_frame frame;
    do
        if (!client_take(&client, &frame))
            die("serve is gone");
    while (frame.header.type != FRAME_RESULT);
    if (!strstr(frame.payload, "\"outcome\":\"exited\",\"exitCode\":0"))
        die(frame.payload);
}

struct way {
    const char *name;
    struct command command;
    bool served;
    double us[ROUNDS_MAX];
    double pair_us; /* PAIRS launches, two at once */
};

static double launch(struct way *way)
{
    double before = now_us();
    if (way->served) {
        begin_job(&way->command);
        end_job();
    } else {
        reap(spawn(&way->command), way->name);
    }
    return now_us() - before;
}

/* Two are always on their way. */
static double launch_pairs(struct way *way)
{
    double before = now_us();
    pid_t other = -1;
    for (int i = 0; i < PAIRS; i++) {
        if (way->served) {
            begin_job(&way->command);
            if (i)
                end_job();
            continue;
        }
        pid_t child = spawn(&way->command);
        if (i)
            reap(other, way->name);
        other = child;
    }
    if (way->served)
        end_job();
    else
        reap(other, way->name);
    return now_us() - before;
}

static int by_value(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;
    return a < b ? -1 : a > b;
}

enum { WAYS = 4 };

static void measure(const char *name, const char *const *program, const char *bind, int rounds)
{
    static struct way ways[WAYS];
    memset(ways, 0, sizeof ways);
    ways[0].name = "bare";
    ways[1].name = "launcher run";
    ways[2].name = "serve, one job";
    ways[3].name = "bwrap";
    ways[2].served = true;
    ADD_ALL(&ways[1].command, client_launcher(), "run", "--result", "/dev/null");
    ADD_ALL(&ways[2].command, "--stdin", "/dev/null");
    add_bwrap(&ways[3].command);
    if (bind)
        for (int i = 1; i < WAYS; i++)
            ADD_ALL(&ways[i].command, "--ro-bind", bind);
    if (bind)
        add(&ways[3].command, bind);
    for (int i = 1; i < 3; i++)
        add(&ways[i].command, "--");
    for (int i = 0; i < WAYS; i++)
        for (const char *const *word = program; *word; word++)
            add(&ways[i].command, *word);
    for (int i = 0; i < WAYS; i++)
        launch(&ways[i]);
    for (int round = 0; round < rounds; round++)
        for (int i = 0; i < WAYS; i++)
            ways[i].us[round] = launch(&ways[i]);
    for (int round = 0; round < 3; round++)
        for (int i = 0; i < WAYS; i++)
            ways[i].pair_us += launch_pairs(&ways[i]);
    for (int i = 0; i < WAYS; i++)
        qsort(ways[i].us, (size_t)rounds, sizeof ways[i].us[0], by_value);
    printf("\n%-22s %12s %8s %12s %8s %14s\n", name, "median us", "x bare", "least us", "x bare", "a second, two");
    for (int i = 0; i < WAYS; i++)
        printf("  %-20s %12.0f %8.2f %12.0f %8.2f %14.0f\n", ways[i].name, ways[i].us[rounds / 2],
               ways[i].us[rounds / 2] / ways[0].us[rounds / 2], ways[i].us[0], ways[i].us[0] / ways[0].us[0],
               3 * PAIRS * 1e6 / ways[i].pair_us);
    fflush(stdout);
}

int main(int count, char **words)
{
    if (count != 3 || atoi(words[1]) < 10 || atoi(words[1]) > ROUNDS_MAX || !getenv("BUILD"))
        die("usage: BUILD=... launch ROUNDS NODE, from 10 to 2000 rounds; see run");
    int rounds = atoi(words[1]);
    char folder[4096], empty[4200], node_folder[4096];
    snprintf(folder, sizeof folder, "%s/bench", getenv("BUILD"));
    snprintf(empty, sizeof empty, "%s/empty", folder);
    snprintf(node_folder, sizeof node_folder, "%s", words[2]);
    *strrchr(node_folder, '/') = 0;
    static char path[] = "PATH=/usr/local/bin:/usr/bin:/bin";
    static char build[4200];
    snprintf(build, sizeof build, "BUILD=%s", getenv("BUILD"));
    char *environment[] = {path, build, NULL};
    environ = environment; /* an inherited variable can make Node twice as slow */
    if (!client_start(&client, "4"))
        die("cannot start launcher serve");
    measure("empty static program", (const char *const[]){empty, NULL}, folder, rounds);
    measure("python3 -c pass", (const char *const[]){"/usr/bin/python3", "-c", "pass", NULL}, NULL, rounds / 4 + 1);
    measure("node -e 0", (const char *const[]){words[2], "-e", "0", NULL}, node_folder, rounds / 10 + 1);
    return client_end(&client) != 0;
}
