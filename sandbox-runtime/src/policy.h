/* The system call policy, as data that the launcher carries inside itself.
 *
 * policy/allow.tsv and policy/refuse.tsv are turned at `make` time into build/filter.gen.h (policy/generate.c);
 * policy.c is the only file that includes it. Nothing here allocates, locks or calls the kernel. */
#ifndef SANDBUS_POLICY_H
#define SANDBUS_POLICY_H

#include <linux/filter.h>
#include <stdbool.h>
#include <stddef.h>

/* The program for SECCOMP_SET_MODE_FILTER, ready for struct sock_fprog{policy_program_len, policy_program}. */
extern const struct sock_filter policy_program[];
extern const unsigned short policy_program_len;

/* SHA-256 of the program's bytes as they lie in memory (8 a instruction, little-endian), in lower-case hex. */
extern const char policy_digest_hex[65];

/* The architecture that the program was made for, as in seccomp_data.arch. */
extern const unsigned policy_arch;

size_t policy_allowed_count(void);             /* 215 */
const char *policy_allowed_name(size_t index); /* sorted by name; NULL past the end */

/* The name of a native system call, or NULL where this build knows no such number. */
const char *policy_syscall_name(int number);

/* How the supervisor answers a call that the filter hands to it. */
enum policy_kind {
  POLICY_DENIAL, /* refused on principle: EPERM rows and broken argument rules */
  POLICY_PROBE,  /* programs ask to find out what there is, and fall back */
  POLICY_ABI,    /* another architecture's calls, or x32: recorded, then the tree is killed */
};

/* One row of the policy; rows are numbered 0 to policy_row_count() - 1, and counters are kept by that number. */
struct policy_row {
  const char *syscall;     /* name, or "unknown" for the row that all unknown numbers share */
  const char *rule;        /* the argument rule in words, NULL where the whole call is refused */
  const char *answer_name; /* "EPERM", "ENOSYS", "0", "killed", ... */
  int answer;              /* what the call returns: 0 or a negative errno */
  int number;              /* -1 where the row is not one number */
  enum policy_kind kind;
};

size_t policy_row_count(void);
const struct policy_row *policy_row(size_t index);

/* The row that decides a refused call, by the architecture and number that seccomp reports. Never fails: a number
 * that nobody knows has a row of its own (policy_unknown_row), and so have foreign ABIs. */
size_t policy_row_of(unsigned arch, int number);
size_t policy_unknown_row(void);

#endif
