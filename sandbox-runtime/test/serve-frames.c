/* `launcher serve` from the other end of its frames: jobs at once and in a row, credits, input, cancelling, a client that says
 * nonsense, and one that dies. Each test starts a launcher, and none may leave a process of a job behind. */
#include "serve-client.h"

#include "sha256.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/prctl.h>

#define CHECK(condition) check((condition), #condition, __LINE__)

static int passed, failures;
static char mark[32];  /* an argument that all long-lived processes of this test's jobs have */
static char bad[4200]; /* options that make test/misbehave the plugin */

static bool check(bool holds, const char *what, int line)
{
    passed += holds;
    failures += !holds;
    if (!holds)
        printf("line %d: not so: %s\n", line, what);
    return holds;
}

/* What a client knows of its jobs, by number. */
enum { JOBS = 512 };
struct seen {
    uint64_t bytes[2];
    struct sha256 hash[2];
    char result[4096]; /* its beginning */
    bool ended;
    unsigned order; /* how many ended before it */
};
static struct seen seen[JOBS];
static unsigned ended;
static uint64_t input_credit;

static void forget(void)
{
    memset(seen, 0, sizeof seen);
    ended = 0;
    input_credit = 0;
    for (int i = 0; i < JOBS; i++)
        for (int stream = 0; stream < 2; stream++)
            sha256_init(&seen[i].hash[stream]);
}

static bool open_client(struct client *client, const char *jobs)
{
    struct client_frame frame;
    forget();
    return CHECK(client_start(client, jobs)) && CHECK(client_take(client, &frame)) &&
           CHECK(frame.header.type == FRAME_HELLO && client_u32(frame.payload) == FRAMES_VERSION &&
                 client_u32(frame.payload + 4) == (uint32_t)atoi(jobs));
}

/* Takes one frame and writes down what it says. `refill` gives credit for output at once. */
static bool follow(const struct client *client, bool refill)
{
    struct client_frame frame;
    if (!client_take(client, &frame))
        return false;
    struct seen *job = &seen[frame.header.job % JOBS];
    int stream = frame.header.type - FRAME_STDOUT;
    switch (frame.header.type) {
    case FRAME_STDOUT:
    case FRAME_STDERR:
        job->bytes[stream] += frame.header.length;
        sha256_update(&job->hash[stream], frame.payload, frame.header.length);
        return !refill || client_credit(client, frame.header.job, (uint32_t)stream + 1, frame.header.length);
    case FRAME_INPUT_CREDIT:
        input_credit += client_u32(frame.payload);
        return true;
    case FRAME_RESULT:
        snprintf(job->result, sizeof job->result, "%s", frame.payload);
        job->ended = true;
        job->order = ended++;
        return true;
    default:
        return false;
    }
}

static bool await(const struct client *client, uint64_t job, bool refill)
{
    while (!seen[job].ended)
        if (!follow(client, refill))
            return false;
    return true;
}

static bool says(uint64_t job, const char *text)
{
    if (strstr(seen[job].result, text))
        return true;
    printf("job %llu: %.600s\n", (unsigned long long)job, seen[job].result);
    return false;
}

static bool hash_is(uint64_t job, int stream)
{
    char hex[SHA256_HEX_SIZE];
    sha256_final_hex(&seen[job].hash[stream], hex);
    return says(job, hex);
}

/* Processes with the mark among their arguments. */
static int alive(void)
{
    int count = 0;
    DIR *entries = opendir("/proc");
    for (struct dirent *entry; entries && (entry = readdir(entries));) {
        char path[300], words[4096];
        snprintf(path, sizeof path, "/proc/%s/cmdline", entry->d_name);
        int fd = entry->d_name[0] >= '0' && entry->d_name[0] <= '9' ? open(path, O_RDONLY) : -1;
        ssize_t length = fd < 0 ? 0 : read(fd, words, sizeof words);
        if (fd >= 0)
            close(fd);
        count += length > 0 && memmem(words, (size_t)length, mark, strlen(mark) + 1);
    }
    if (entries)
        closedir(entries);
    return count;
}

static bool alive_becomes(int count)
{
    for (int i = 0; i < 1000; i++) {
        if (alive() == count)
            return true;
        usleep(10000);
    }
    return false;
}

static void two_at_once(void)
{
    struct client client;
    if (!open_client(&client, "4"))
        return;
    client_run(&client, 1, "-- sleep %s", mark);
    client_run(&client, 2, "--env A=b -- sh -c exit${IFS}7");
    CHECK(await(&client, 2, true) && says(2, "\"outcome\":\"exited\",\"exitCode\":7"));
    CHECK(!seen[1].ended && alive_becomes(1));
    client_send(&client, FRAME_CANCEL, 1, NULL, 0);
    CHECK(await(&client, 1, true) && says(1, "\"outcome\":\"cancelled\""));
    CHECK(alive() == 0);
    client_send(&client, FRAME_CANCEL, 1, NULL, 0); /* late, and no fault */
    client_run(&client, 3, "-- true");
    CHECK(await(&client, 3, true));
    CHECK(client_end(&client) == 0);
}

static void many_in_sequence(void)
{
    struct client client;
    if (!open_client(&client, "1"))
        return;
    for (uint64_t job = 1; job <= 200; job++) {
        client_run(&client, job, "--stdin /dev/null %s -- /plugin/bad write %d", bad, (int)job);
        client_credit(&client, job, 1, 4096);
        if (!CHECK(await(&client, job, true) && says(job, "\"exitCode\":0")))
            break;
        while (seen[job].bytes[0] < job && follow(&client, true))
            ;
        CHECK(seen[job].bytes[0] == job && hash_is(job, 0));
    }
    CHECK(client_end(&client) == 0);
}

/* A prepared child has the groups' limits of the job before, the first one the defaults: they grow and shrink. */
static void limits_that_change(void)
{
    static const char *const rows[][3] = {
        {"512M", "0.5", "16"}, {"256M", "1", "128"}, {"64M", "2", "200"}, {"1G", "0.25", "8"}, {"96M", "1", "64"},
    };
    struct client client;
    if (!open_client(&client, "1"))
        return;
    for (uint64_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const char *const *limits = rows[i];
        client_run(&client, i + 1, "--memory %s --cpus %s --pids %s -- true", limits[0], limits[1], limits[2]);
        CHECK(await(&client, i + 1, true) && says(i + 1, "\"exitCode\":0"));
    }
    CHECK(client_end(&client) == 0);
}

static void interleaved(void)
{
    struct client client;
    enum { AT_ONCE = 8 };
    if (!open_client(&client, "8"))
        return;
    for (uint64_t job = 1; job <= AT_ONCE; job++) {
        client_run(&client, job, "--output-limit 4M %s -- /plugin/bad write %d", bad, 100000 * (int)job);
        client_credit(&client, job, 1, 10000);
    }
    for (uint64_t job = 1; job <= AT_ONCE; job++) {
        CHECK(await(&client, job, true) && says(job, "\"outcome\":\"exited\""));
        while (seen[job].bytes[0] < 100000 * job && follow(&client, true))
            ;
        CHECK(seen[job].bytes[0] == 100000 * job && hash_is(job, 0));
    }
    CHECK(client_end(&client) == 0);
}

/* One job floods, and its reader gives no credit: another's output and result come all the same; the result of the first does
 * too, and after it the output that it speaks of. */
static void flood_without_credit(void)
{
    struct client client;
    if (!open_client(&client, "2"))
        return;
    client_run(&client, 1, "--wall 0.5 --output-limit 1G %s -- /plugin/bad flood", bad);
    client_run(&client, 2, "--output-limit 8M %s -- /plugin/bad write 3000000", bad);
    client_credit(&client, 2, 1, 100000);
    CHECK(await(&client, 2, true) && await(&client, 1, true) && says(1, "\"outcome\":\"wall-time-exceeded\""));
    CHECK(seen[1].bytes[0] == 0 && seen[1].bytes[1] == 0);
    while (seen[2].bytes[0] < 3000000 && follow(&client, true))
        ;
    CHECK(hash_is(2, 0));
    const char *kept = strstr(seen[1].result, "\"kept\":");
    uint64_t left = kept ? strtoull(kept + 7, NULL, 10) : 0;
    CHECK(left > 0 && left < 2 << 20);
    client_credit(&client, 1, 1, 1000);
    CHECK(follow(&client, false) && seen[1].bytes[0] == 1000);
    client_credit(&client, 1, 1, 1 << 30);
    while (seen[1].bytes[0] < left && follow(&client, false))
        ;
    CHECK(seen[1].bytes[0] == left && hash_is(1, 0));
    client_run(&client, 3, "--wall 20 --output-limit 1000000 %s -- /plugin/bad flood", bad);
    client_send(&client, FRAME_DISCARD, 3, NULL, 0);
    CHECK(await(&client, 3, false) && says(3, "\"outcome\":\"output-exceeded\"") && says(3, "\"kept\":1000000"));
    CHECK(seen[3].bytes[0] == 0);
    CHECK(client_end(&client) == 0);
}

static void input_by_frames(void)
{
    struct client client;
    static char block[FRAME_BYTES_MAX];
    enum { TOTAL = 2000000 };
    memset(block, 'x', sizeof block);
    if (!open_client(&client, "2"))
        return;
    client_run(&client, 1, "--output-limit 4M -- cat");
    client_credit(&client, 1, 1, FRAME_BYTES_MAX);
    input_credit = FRAME_BYTES_MAX;
    for (size_t sent = 0; sent < TOTAL;) {
        while (!input_credit && follow(&client, true))
            ;
        size_t size = TOTAL - sent < input_credit ? TOTAL - sent : (size_t)input_credit;
        CHECK(size > 0 && client_send(&client, FRAME_INPUT, 1, block, size));
        sent += size;
        input_credit -= size;
        if (!size)
            break;
    }
    client_send(&client, FRAME_INPUT, 1, NULL, 0);
    CHECK(await(&client, 1, true) && says(1, "\"stdin\":{\"bytes\":2000000}") && says(1, "\"exitCode\":0"));
    while (seen[1].bytes[0] < TOTAL && follow(&client, true))
        ;
    CHECK(seen[1].bytes[0] == TOTAL && hash_is(1, 0));
    client_run(&client, 2, "--stdin %s -- wc -c", client_launcher());
    client_credit(&client, 2, 1, 100);
    CHECK(await(&client, 2, true) && says(2, "\"exitCode\":0"));
    CHECK(!strstr(seen[2].result, "\"stdin\":{\"bytes\":0}"));
    client_run(&client, 3, "--stdin /nowhere/x -- cat");
    CHECK(await(&client, 3, true) && says(3, "\"step\":\"stdin\",\"errno\":\"ENOENT\""));
    CHECK(client_end(&client) == 0);
}

/* Refused calls are answered without end; others are served meanwhile. */
static void flood_of_denials(void)
{
    struct client client;
    const char *build = getenv("BUILD");
    if (!open_client(&client, "3"))
        return;
    client_run(&client, 1,
               "--wall 60 --plugin %s/test/policy-attack --plugin-name attack -- /plugin/attack flood 1000000000",
               build ? build : "build");
    for (uint64_t job = 2; job <= 6; job++) {
        client_run(&client, job, "-- true");
        CHECK(await(&client, job, true) && says(job, "\"exitCode\":0"));
    }
    CHECK(!seen[1].ended);
    client_send(&client, FRAME_CANCEL, 1, NULL, 0);
    CHECK(await(&client, 1, true) && says(1, "\"outcome\":\"cancelled\"") && says(1, "\"syscall\":\"ptrace\""));
    CHECK(client_end(&client) == 0);
}

/* A mistake in a job's options is the job's result, and nothing else ends. */
static void wrong_options(void)
{
    static const char *const rows[][2] = {
        {"--memmory 1M -- true", "no option --memmory"}, {"--memory 0 -- true", "above 0"}, {"--wall 1", "no PROGRAM"},
        {"--result fd:3 -- true", "RESULT frame"},       {"true", "not an option"},
    };
    struct client client;
    if (!open_client(&client, "8"))
        return;
    client_run(&client, 1, "-- sleep %s", mark);
    for (uint64_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        client_run(&client, i + 2, "%s", rows[i][0]);
        CHECK(await(&client, i + 2, true) && says(i + 2, "\"step\":\"options\"") && says(i + 2, rows[i][1]));
    }
    CHECK(!seen[1].ended);
    CHECK(client_end(&client) == 0 && alive() == 0); /* the end of the connection kills what runs */
}

/* Each row: bytes that come after a job has started, and what the ERROR says of them. */
static const struct {
    const char *name, *bytes;
    size_t length;
    const char *says;
} breaches[] = {
#define FRAME(length, type, zeros, job) length type zeros job
#define BYTES(text)                     text, sizeof text - 1
    {"an unknown type", BYTES(FRAME("\0\0\0\0", "\x63", "\0\0\0", "\1\0\0\0\0\0\0\0")), "no frame of type 99"},
    {"a type of the launcher's", BYTES(FRAME("\0\0\0\0", "\x14", "\0\0\0", "\1\0\0\0\0\0\0\0")), "no frame of type 20"},
    {"bytes that are not zero", BYTES(FRAME("\0\0\0\0", "\4", "\0\1\0", "\1\0\0\0\0\0\0\0")), "not zero"},
    {"a frame of 4 GiB", BYTES(FRAME("\xff\xff\xff\xff", "\1", "\0\0\0", "\2\0\0\0\0\0\0\0")),
     "START has 4294967295 bytes"},
    {"too large a START", BYTES(FRAME("\1\0\x20\0", "\1", "\0\0\0", "\2\0\0\0\0\0\0\0")), "takes 2 to 2097152"},
    {"too large an INPUT", BYTES(FRAME("\1\0\1\0", "\2", "\0\0\0", "\1\0\0\0\0\0\0\0")), "INPUT has 65537 bytes"},
    {"a CREDIT without bytes", BYTES(FRAME("\0\0\0\0", "\3", "\0\0\0", "\1\0\0\0\0\0\0\0")), "CREDIT has 0 bytes"},
    {"a CREDIT for stream 3", BYTES(FRAME("\10\0\0\0", "\3", "\0\0\0", "\1\0\0\0\0\0\0\0") "\3\0\0\0\1\0\0\0"),
     "stream 3"},
    {"too much credit",
     BYTES(FRAME("\10\0\0\0", "\3", "\0\0\0", "\1\0\0\0\0\0\0\0") "\1\0\0\0\xff\xff\xff\xff" FRAME(
         "\10\0\0\0", "\3", "\0\0\0", "\1\0\0\0\0\0\0\0") "\1\0\0\0\xff\xff\xff\xff"),
     "2^32"},
    {"a CANCEL with bytes", BYTES(FRAME("\1\0\0\0", "\4", "\0\0\0", "\1\0\0\0\0\0\0\0") "x"), "CANCEL has 1 bytes"},
    {"a job that never started", BYTES(FRAME("\0\0\0\0", "\4", "\0\0\0", "\11\0\0\0\0\0\0\0")), "never started"},
    {"job 0", BYTES(FRAME("\0\0\0\0", "\4", "\0\0\0", "\0\0\0\0\0\0\0\0")), "about no job"},
    {"a number again", BYTES(FRAME("\10\0\0\0", "\1", "\0\0\0", "\1\0\0\0\0\0\0\0") "--\0true\0"),
     "comes after that of 1"},
    {"words without an end", BYTES(FRAME("\7\0\0\0", "\1", "\0\0\0", "\2\0\0\0\0\0\0\0") "--\0true"), "zero byte"},
    {"more jobs than there may be",
     BYTES(FRAME("\10\0\0\0", "\1", "\0\0\0", "\2\0\0\0\0\0\0\0") "--\0true\0" FRAME("\10\0\0\0", "\1", "\0\0\0",
                                                                                     "\3\0\0\0\0\0\0\0") "--\0true\0"),
     "2 jobs are open"},
    {"text", BYTES("GET / HTTP/1.1\r\nHost: launcher\r\n\r\n"), "no frame of type"},
};

static void breach(size_t row)
{
    struct client client;
    struct client_frame frame = {.payload = NULL};
    if (!open_client(&client, "2"))
        return;
    client_run(&client, 1, "--wall 100 -- sleep %s", mark);
    CHECK(alive_becomes(1));
    CHECK(client_send_bytes(&client, breaches[row].bytes, breaches[row].length));
    bool got = client_take(&client, &frame) && frame.header.type == FRAME_ERROR;
    if (!CHECK(got && strstr(frame.payload, breaches[row].says) && strstr(frame.payload, "\"step\":\"protocol\"")))
        printf("%s: %.400s\n", breaches[row].name, frame.payload ? frame.payload : "no frame");
    CHECK(!client_take(&client, &frame));
    int status = client_end(&client);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 125 && alive() == 0);
}

static void input_beyond_credit(void)
{
    struct client client;
    struct client_frame frame = {.payload = NULL};
    static char block[FRAME_BYTES_MAX];
    if (!open_client(&client, "1"))
        return;
    client_run(&client, 1, "--wall 100 -- sleep %s", mark);
    CHECK(alive_becomes(1));
    for (int i = 0; i < 3; i++) /* the pipe, the buffer, and too much */
        client_send(&client, FRAME_INPUT, 1, block, sizeof block);
    while (client_take(&client, &frame) && frame.header.type == FRAME_INPUT_CREDIT)
        ;
    CHECK(frame.header.type == FRAME_ERROR && frame.payload && strstr(frame.payload, "beyond its credit"));
    CHECK(client_end(&client) == 125 << 8 && alive() == 0);
}

/* Random bytes, and good frames with one byte changed. The launcher may answer anything but a crash. */
static void nonsense(void)
{
    static const char good[] = "\10\0\0\0\1\0\0\0\1\0\0\0\0\0\0\0--"
                               "\0true\0\10\0\0\0\3\0\0\0\1\0\0\0\0\0\0\0\1\0\0\0\1\0\0\0"
                               "\0\0\0\0\4\0\0\0\1\0\0\0\0\0\0\0";
    srand(1);
    for (int round = 0; round < 60; round++) {
        struct client client;
        char bytes[sizeof good - 1];
        memcpy(bytes, good, sizeof bytes);
        if (round % 2)
            bytes[rand() % (int)sizeof bytes] = (char)rand();
        else
            for (size_t i = 0; i < sizeof bytes; i++)
                bytes[i] = (char)rand();
        if (!CHECK(client_start(&client, "2")))
            return;
        client_send_bytes(&client, bytes, sizeof bytes);
        shutdown(client.socket, SHUT_WR);
        int status = client_end(&client);
        if (!CHECK(WIFEXITED(status) && (WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == 125)))
            printf("round %d: status %d\n", round, status);
    }
    CHECK(alive() == 0);
}

/* The client dies by SIGKILL, with jobs running and output on the way. */
static void death_of_the_client(void)
{
    int ready[2];
    CHECK(pipe(ready) == 0);
    pid_t parent = fork();
    if (parent == 0) {
        struct client client;
        if (!client_start(&client, "4"))
            _exit(1);
        for (uint64_t job = 1; job <= 3; job++)
            client_run(&client, job, "--wall 100 -- sleep %s", mark);
        client_run(&client, 4, "--wall 100 --output-limit 1G %s -- /plugin/bad flood", bad);
        client_credit(&client, 4, 1, 1 << 30);
        if (alive_becomes(3) && write(ready[1], &client.launcher, sizeof client.launcher) > 0)
            pause();
        _exit(1);
    }
    pid_t launcher = 0;
    close(ready[1]);
    CHECK(read(ready[0], &launcher, sizeof launcher) == (ssize_t)sizeof launcher);
    close(ready[0]);
    prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
    kill(parent, SIGKILL);
    waitpid(parent, NULL, 0);
    struct client orphan = {.launcher = launcher, .socket = -1};
    int status = client_end(&orphan);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    CHECK(alive_becomes(0));
    prctl(PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0);
}

static void death_of_the_launcher(void)
{
    struct client client;
    if (!open_client(&client, "2"))
        return;
    client_run(&client, 1, "--wall 100 -- sleep %s", mark);
    client_run(&client, 2, "--wall 100 -- setsid -f sleep %s", mark);
    CHECK(alive_becomes(1) && await(&client, 2, true));
    client_run(&client, 3, "--wall 100 -- sleep %s", mark);
    CHECK(alive_becomes(2));
    kill(client.launcher, SIGKILL);
    CHECK(client_end(&client) == SIGKILL && alive_becomes(0));
}

static void told_to_stop(void)
{
    struct client client;
    if (!open_client(&client, "2"))
        return;
    client_run(&client, 1, "--wall 100 -- sleep %s", mark);
    CHECK(alive_becomes(1));
    kill(client.launcher, SIGTERM);
    CHECK(await(&client, 1, true) && says(1, "\"outcome\":\"cancelled\"") && alive() == 0);
    CHECK(client_end(&client) == 0);
}

int main(void)
{
    const char *build = getenv("BUILD");
    snprintf(mark, sizeof mark, "9%d.25", (int)getpid());
    snprintf(bad, sizeof bad, "--plugin %s/test/misbehave --plugin-name bad", build ? build : "build");
    two_at_once();
    many_in_sequence();
    limits_that_change();
    interleaved();
    flood_without_credit();
    input_by_frames();
    flood_of_denials();
    wrong_options();
    for (size_t row = 0; row < sizeof breaches / sizeof breaches[0]; row++)
        breach(row);
    input_beyond_credit();
    nonsense();
    death_of_the_client();
    death_of_the_launcher();
    told_to_stop();
    printf("serve-frames: %d passed, %d failed\n", passed, failures);
    return failures != 0;
}
