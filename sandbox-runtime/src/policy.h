/*
 * The system call policy, as data that the launcher carries inside itself.
 *
 * policy/allow.tsv and policy/refuse.tsv are turned at `make` time into build/filter.gen.h (policy/generate.c), which only
 * policy.c includes. Nothing here allocates, locks or calls the kernel.
 */
#ifndef SANDBUS_POLICY_H
#define SANDBUS_POLICY_H

#include <linux/filter.h>
#include <stdbool.h>
#include <stddef.h>

/* The program for SECCOMP_SET_MODE_FILTER, ready for struct sock_fprog{policy_program_len, policy_program}. */
extern const struct sock_filter policy_program[];
extern const unsigned short policy_program_len;

/* SHA-256 of the program's bytes as they lie in memory (8 an instruction, little-endian), in lower-case hex. */
extern const char policy_digest_hex[65];

/* The architecture that the program was made for, as in seccomp_data.arch. */
extern const unsigned policy_arch;

size_t policy_allowed_count(void);             /* 215 */
const char *policy_allowed_name(size_t index); /* sorted by name; NULL past the end */

/* The name of a native system call, or NULL where this build knows no such number. */
const char *policy_syscall_name(int number);

/* The name of a call that was made as x32 or as another architecture's, or NULL. */
const char *policy_foreign_name(unsigned arch, int number);

enum policy_kind {
    POLICY_DENIAL, /* refused on principle: EPERM rows and broken argument rules */
    POLICY_PROBE,  /* programs ask what there is, and fall back */
    POLICY_ABI,    /* x32 or another architecture: recorded, then the tree is killed */
};

/* How the supervisor treats a call that the filter hands to it. */
struct policy_row {
    const char *syscall;     /* a name, or what kind of calls share the row */
    const char *rule;        /* the argument rule in words, NULL where the whole call is refused */
    const char *answer_name; /* "EPERM", "ENOSYS", "0", "killed", ... */
    int answer;              /* what the call returns: 0 or a negative errno */
    int number;              /* -1 where the row is not one number */
    enum policy_kind kind;
};

/* Rows are numbered 0 to policy_row_count() - 1; counters are kept by that number. */
size_t policy_row_count(void);
const struct policy_row *policy_row(size_t index);

/* The row of a refused call, by the architecture and number that seccomp reports. Never fails: numbers that nobody knows
 * share policy_unknown_row(), and x32 and foreign architectures have a row each. */
size_t policy_row_of(unsigned arch, int number);
size_t policy_unknown_row(void);

#endif
