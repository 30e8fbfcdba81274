/* Children under the real filter make refused calls; the test is their supervisor, answers with notify.c, and compares what the
 * children saw and what the record says. No sandbox is needed: a child sets no-new-privileges and loads the filter. */
#include <errno.h>
#include <fcntl.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "check.h"
#include "json.h"
#include "notify.h"
#include "policy.h"


struct child {
    pid_t pid;
    int listener;
    int start; /* writing here lets the child go on */
};

static void load_filter_and_wait(int tell, int start)
{
    struct sock_fprog program = {policy_program_len, (struct sock_filter *)policy_program};
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    int listener = (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &program);
    char go;
    if (listener < 0 || write(tell, &listener, sizeof listener) != sizeof listener || read(start, &go, 1) != 1)
        _exit(99);
    close(listener);
}

/* The child's exit code is what act() returns. */
static struct child start_child(int (*act)(void))
{
    int tell[2], start[2], number = -1;
    if (pipe(tell) || pipe(start))
        exit(1);
    struct child child = {.pid = fork(), .start = start[1]};
    if (child.pid == 0) {
        load_filter_and_wait(tell[1], start[0]);
        _exit(act());
    }
    close(tell[1]);
    CHECK(read(tell[0], &number, sizeof number) == sizeof number);
    int pidfd = (int)syscall(SYS_pidfd_open, child.pid, 0);
    child.listener = (int)syscall(SYS_pidfd_getfd, pidfd, number, 0);
    CHECK(child.listener >= 0);
    notify_tune(child.listener);
    close(pidfd);
    close(tell[0]);
    close(start[0]);
    return child;
}

/* Serves until the verdict is not OK. *turns counts the calls of notify_serve that had something to do. */
static enum notify_verdict serve(struct notify *notify, struct child *child, int budget, long *turns)
{
    enum notify_verdict verdict = NOTIFY_OK;
    CHECK(write(child->start, "x", 1) == 1);
    close(child->start);
    for (*turns = 0; verdict == NOTIFY_OK; ++*turns) {
        struct pollfd poll_listener = {.fd = child->listener, .events = POLLIN};
        poll(&poll_listener, 1, -1);
        verdict = notify_serve(notify, child->listener, budget);
    }
    return verdict;
}

static int end_child(struct child *child, int signal)
{
    int status = 0;
    if (signal)
        kill(child->pid, signal);
    waitpid(child->pid, &status, 0);
    close(child->listener);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static int returns(long result, int error)
{
    return error ? result == -1 && errno == error : result == 0;
}

static int act_answers(void)
{
    int wrong = 0;
    wrong += !returns(syscall(SYS_ptrace, 16, 1, 2, 3), EPERM);
    wrong += !returns(syscall(SYS_ptrace, 17, 0, 0, 0), EPERM);
    wrong += !returns(syscall(SYS_unshare, 0x10000000), EPERM);
    wrong += !returns(syscall(SYS_clone, 0x10000011L, 0, 0, 0, 0), EPERM);
    wrong += !returns(syscall(SYS_prctl, 22, 2, 0, 0, 0), EINVAL);
    wrong += !returns(syscall(SYS_prctl, 0x100000016L, 2, 0, 0, 0), EINVAL);
    wrong += !returns(syscall(SYS_socket, 17, 3, 0), EAFNOSUPPORT);
    wrong += !returns(syscall(SYS_socketpair, 2, 1, 0, 0), EAFNOSUPPORT);
    wrong += !returns(syscall(SYS_sync), 0);
    wrong += !returns(syscall(SYS_io_uring_setup, 1, 0), ENOSYS);
    wrong += !returns(syscall(SYS_clone3, 0, 0), ENOSYS);
    wrong += !returns(syscall(-1), ENOSYS);
    for (long number = 600; number < 640; number++)
        wrong += !returns(syscall(number, number), ENOSYS);
    wrong += !returns(syscall(600), ENOSYS);
    wrong += syscall(SYS_personality, 0xffffffffffffffffL) == -1;
    return wrong;
}

static void expect_text(const struct json_writer *json, const char *text)
{
    if (memmem(json->bytes, json->length, text, strlen(text)))
        return;
    failures++;
    printf("not ok: '%s' is not in %.*s\n", text, (int)json->length, json->bytes);
}

static uint64_t refused_calls;

static void add_refused(void *context, const char *name, int number, uint64_t count)
{
    (void)context, (void)number;
    CHECK(name != NULL);
    refused_calls += count;
}

static void test_answers_and_record(void)
{
    struct notify *notify = notify_new(false);
    struct child child = start_child(act_answers);
    long turns;
    CHECK(serve(notify, &child, 64, &turns) == NOTIFY_CLOSED);
    CHECK(end_child(&child, 0) == 0);
    CHECK(notify_denials(notify) == 8);
    CHECK(notify_probes(notify) == 2 + 42);
    notify_each_refused(notify, add_refused, NULL);
    CHECK(refused_calls == 8 + 2 + 42);

    struct json_writer json;
    json_init(&json, 1 << 20);
    json_begin_object(&json);
    notify_write_json(notify, &json);
    json_end_object(&json);
    char self[256], row[512];
    self[readlink("/proc/self/exe", self, sizeof self - 1)] = '\0';
    snprintf(row, sizeof row,
             "{\"syscall\":\"ptrace\",\"number\":101,\"rule\":null,\"answer\":\"EPERM\",\"count\":2,"
             "\"args\":[\"0x10\",\"0x1\",\"0x2\",\"0x3\",");
    expect_text(&json, row);
    snprintf(row, sizeof row, "\"program\":\"%s\"}", self);
    expect_text(&json, row);
    expect_text(&json, "\"syscall\":\"prctl\",\"number\":157,\"rule\":\"only listed prctl "
                       "options\",\"answer\":\"EINVAL\",\"count\":2");
    expect_text(&json, "\"syscall\":\"syscall_-1\",\"number\":-1,\"rule\":null,\"answer\":\"ENOSYS\",\"count\":1");
    expect_text(&json, "\"syscall\":\"syscall_600\",\"number\":600,\"rule\":null,\"answer\":\"ENOSYS\",\"count\":2");
    expect_text(&json, "\"syscall\":\"syscall_614\"");
    expect_text(&json, "\"syscall\":\"unknown\",\"number\":-1,\"rule\":null,\"answer\":\"ENOSYS\",\"count\":25,"
                       "\"args\":[],\"program\":null}");
    CHECK(!memmem(json.bytes, json.length, "syscall_615", 11));
    json_free(&json);
    notify_free(notify);
}

static int act_probe_then_denial(void)
{
    syscall(SYS_io_uring_setup, 1, 0);
    syscall(SYS_ptrace, 16, 1, 2, 3);
    return 0;
}

#ifdef __x86_64__
static int act_x32(void)
{
    syscall(0x40000000 | 39);
    return 0;
}

static int act_int80(void)
{
    long result = 20; /* getpid, as i386 counts */
    __asm__ volatile("int $0x80" : "+a"(result) : : "memory");
    return 0;
}
#endif

/* What ends a job is recorded, is not answered, and is not confused with what came before. */
static void test_verdict(bool end_at_denial, int (*act)(void), enum notify_verdict verdict, uint64_t denials,
                         const char *text)
{
    struct notify *notify = notify_new(end_at_denial);
    struct child child = start_child(act);
    long turns;
    CHECK(serve(notify, &child, 64, &turns) == verdict);
    CHECK(end_child(&child, verdict == NOTIFY_CLOSED ? 0 : SIGKILL) == (verdict == NOTIFY_CLOSED ? 0 : 128 + SIGKILL));
    CHECK(notify_denials(notify) == denials);
    struct json_writer json;
    json_init(&json, 1 << 20);
    json_begin_object(&json);
    notify_write_json(notify, &json);
    expect_text(&json, text);
    json_free(&json);
    notify_free(notify);
}

enum { FLOOD = 1000000 };

static int act_flood(void)
{
    for (long i = 0; i < FLOOD; i++)
        syscall(i & 1 ? SYS_ptrace : 700 + i % 1000, i);
    return 0;
}

static long resident_kilobytes(void)
{
    long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (!file || fscanf(file, "%*d %ld", &pages) != 1)
        exit(1);
    fclose(file);
    return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

static void test_flood_takes_no_memory_and_leaves_the_loop_its_turns(void)
{
    struct notify *notify = notify_new(false);
    struct child child = start_child(act_flood);
    struct timespec begin, end;
    long before = resident_kilobytes(), turns;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    CHECK(serve(notify, &child, 64, &turns) == NOTIFY_CLOSED);
    clock_gettime(CLOCK_MONOTONIC, &end);
    CHECK(end_child(&child, 0) == 0);
    CHECK(notify_denials(notify) == FLOOD / 2);
    CHECK(notify_probes(notify) == FLOOD / 2);
    CHECK(turns >= FLOOD / 64);
    CHECK(resident_kilobytes() - before < 256);
    double seconds = (double)(end.tv_sec - begin.tv_sec) + (double)(end.tv_nsec - begin.tv_nsec) / 1e9;
    printf("notify-answers: %.2f us a refused call\n", seconds * 1e6 / FLOOD);
    notify_free(notify);
}

int main(void)
{
    setvbuf(stdout, NULL, _IOLBF, 0);
    test_answers_and_record();
    test_verdict(true, act_probe_then_denial, NOTIFY_KILL_DENIAL, 1, "\"syscall\":\"ptrace\"");
    test_verdict(false, act_probe_then_denial, NOTIFY_CLOSED, 1, "\"syscall\":\"io_uring_setup\"");
#ifdef __x86_64__
    test_verdict(false, act_x32, NOTIFY_KILL_ABI, 1,
                 "{\"syscall\":\"getpid\",\"number\":1073741863,\"rule\":\"no x32 calls\"");
    test_verdict(false, act_int80, NOTIFY_KILL_ABI, 1,
                 "{\"syscall\":\"getpid\",\"number\":20,\"rule\":\"no calls of another arch");
#endif
    test_flood_takes_no_memory_and_leaves_the_loop_its_turns();
    printf(failures ? "notify-answers: %d failures\n" : "notify-answers: ok\n", failures);
    return failures != 0;
}
