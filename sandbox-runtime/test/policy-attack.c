/* Runs inside the sandbox, as a plugin, and tries the filter. Says on standard output what each call gave; policy-attack.sh
 * compares that with the policy and with the record.
 *
 *   numbers   every number from 0 to 600 with pointers that lead nowhere: a call that gets through does no harm
 *   rules     both sides of each argument rule, with clean and dirty upper halves
 *   x32, int80, flood COUNT
 *
 * A line is "NUMBER NAME WANTED RESULT": wanted is "allowed" or the policy's answer; the result is an errno by name or number, 0,
 * "signal-N" or "exit". Each call is made in a child; one that blocks is ended by its timer and so has got through. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "errno_name.h"
#include "policy-cases.h"
#include "policy.h"

enum { LAST_NUMBER = 600, BLOCKED_MICROSECONDS = 100000, NO_RESULT = 1 << 20 };

/* Inline, since the child of vfork or clone comes back here on a stack that it shares, or that is none. */
#if defined(__x86_64__)
#define RAW_CALL(result, number, args)                                                                             \
    do {                                                                                                           \
        register uint64_t r10 __asm__("r10") = (args)[3];                                                          \
        register uint64_t r8 __asm__("r8") = (args)[4];                                                            \
        register uint64_t r9 __asm__("r9") = (args)[5];                                                            \
        __asm__ volatile("syscall"                                                                                 \
                         : "=a"(result)                                                                            \
                         : "a"(number), "D"((args)[0]), "S"((args)[1]), "d"((args)[2]), "r"(r10), "r"(r8), "r"(r9) \
                         : "rcx", "r11", "memory");                                                                \
    } while (0)
#define FORKS(number) ((number) == SYS_fork || (number) == SYS_vfork || (number) == SYS_clone)
#elif defined(__aarch64__)
#define RAW_CALL(result, number, args)                                                                          \
    do {                                                                                                        \
        register uint64_t x8 __asm__("x8") = (uint64_t)(number);                                                \
        register uint64_t x0 __asm__("x0") = (args)[0];                                                         \
        register uint64_t x1 __asm__("x1") = (args)[1];                                                         \
        register uint64_t x2 __asm__("x2") = (args)[2];                                                         \
        register uint64_t x3 __asm__("x3") = (args)[3];                                                         \
        register uint64_t x4 __asm__("x4") = (args)[4];                                                         \
        register uint64_t x5 __asm__("x5") = (args)[5];                                                         \
        __asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5) : "memory"); \
        (result) = (long)x0;                                                                                    \
    } while (0)
#define FORKS(number) ((number) == SYS_clone)
#endif

static inline __attribute__((always_inline)) long raw_call(long number, const uint64_t args[6])
{
    static const uint64_t none[6];
    long result;
    RAW_CALL(result, number, args);
    if (result == 0 && FORKS(number))
        RAW_CALL(result, SYS_exit_group, none);
    return result;
}

static void make_call(long number, const uint64_t args[6], int answer)
{
    struct itimerval soon = {.it_value.tv_usec = BLOCKED_MICROSECONDS};
    setitimer(ITIMER_REAL, &soon, NULL);
    long result = raw_call(number, args);
    int error = result < 0 && result > -4096 ? (int)-result : 0;
    if (write(answer, &error, sizeof error) < 0)
        raise(SIGPIPE);
    _exit(0);
}

static void print_result(int error, int status)
{
    if (error == NO_RESULT && WIFSIGNALED(status))
        printf("signal-%d\n", WTERMSIG(status));
    else if (error == NO_RESULT)
        printf("exit\n");
    else if (errno_name(error))
        printf("%s\n", errno_name(error));
    else
        printf("%d\n", error);
}

static void try_call(long number, const uint64_t args[6], const char *wanted)
{
    int answer[2], error = NO_RESULT, status;
    const char *name = policy_syscall_name((int)number);
    printf("%ld %s %s ", number, name ? name : "unknown", wanted);
    if (pipe(answer))
        exit(1);
    pid_t child = fork();
    if (child == 0)
        make_call(number, args, answer[1]);
    close(answer[1]);
    waitpid(child, &status, 0);
    if (read(answer[0], &error, sizeof error) != sizeof error)
        error = NO_RESULT;
    print_result(error, status);
    close(answer[0]);
}

static const char *refusal(long number)
{
    return number == SYS_clone3 ? "ENOSYS" : policy_row(policy_row_of(policy_arch, (int)number))->answer_name;
}

static int is_allowed(long number)
{
    const char *name = policy_syscall_name((int)number);
    for (size_t i = 0; name && i < policy_allowed_count(); i++)
        if (!strcmp(policy_allowed_name(i), name))
            return 1;
    return 0;
}

/* All bits set is an address that nobody has, a descriptor that nobody has, and no valid flag; where a rule would refuse that,
 * the argument is one that the rule permits. */
static void harmless_arguments(long number, uint64_t args[6])
{
    memset(args, 0xff, 6 * sizeof *args);
    for (size_t i = 0; i < sizeof rule_cases / sizeof *rule_cases; i++)
        if (rule_cases[i].number == number && rule_cases[i].allowed) {
            args[rule_cases[i].argument] = rule_cases[i].value;
            return;
        }
}

static void try_numbers(void)
{
    for (long number = 0; number <= LAST_NUMBER; number++) {
        uint64_t args[6];
        harmless_arguments(number, args);
        try_call(number, args, is_allowed(number) ? "allowed" : refusal(number));
    }
}

/* A clone that shares this memory would run on this stack. */
static int shares_memory(const struct rule_case *rule)
{
    return rule->number == SYS_clone && rule->allowed && (rule->value & 0x100);
}

static void try_rules(void)
{
    for (size_t i = 0; i < sizeof rule_cases / sizeof *rule_cases; i++)
        for (size_t j = 0; j < sizeof upper_halves / sizeof *upper_halves; j++) {
            const struct rule_case *at = &rule_cases[i];
            uint64_t args[6] = {0};
            args[at->argument] = (uint64_t)upper_halves[j] << 32 | at->value;
            if (shares_memory(at))
                continue;
            try_call(at->number, args, at->allowed ? "allowed" : refusal(at->number));
        }
}

static void flood(long count)
{
    const uint64_t args[6] = {0};
    for (long i = 0; i < count; i++)
        raw_call(i & 1 ? SYS_ptrace : 700 + i % 1000, args);
    printf("done\n");
}

int main(int argument_count, char **arguments)
{
    const char *what = argument_count > 1 ? arguments[1] : "";
    const uint64_t none[6] = {0};
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (!strcmp(what, "numbers"))
        try_numbers();
    else if (!strcmp(what, "rules"))
        try_rules();
    else if (!strcmp(what, "x32"))
        raw_call(0x40000000 | SYS_getpid, none);
#ifdef __x86_64__
    else if (!strcmp(what, "int80"))
        __asm__ volatile("int $0x80" : : "a"(20L) : "memory");
#endif
    else if (!strcmp(what, "flood") && argument_count > 2)
        flood(atol(arguments[2]));
    else
        return 2;
    puts("alive");
    return 0;
}
