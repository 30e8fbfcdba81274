#include "policy.h"

#include <errno.h>

/* Defines policy_program and its kin, and the generated_ tables. */
#include "filter.gen.h"

#define COUNT_OF(array) (sizeof(array) / sizeof *(array))

enum {
    X32_BIT = 0x40000000, /* set in the numbers of x32, which has x86-64's architecture */
    ROW_UNKNOWN = COUNT_OF(generated_rows),
    ROW_X32,
    ROW_FOREIGN,
    ROW_COUNT,
};

/* Rows that no single number of the native architecture stands for, in the order of the enum above. */
static const struct policy_row shared_rows[] = {
    {"unknown", NULL, "ENOSYS", -ENOSYS, -1, POLICY_PROBE},
    {"x32", "no x32 calls", "killed", -EPERM, -1, POLICY_ABI},
    {"foreign", "no calls of another architecture", "killed", -EPERM, -1, POLICY_ABI},
};

size_t policy_allowed_count(void)
{
    return COUNT_OF(generated_allowed);
}

const char *policy_allowed_name(size_t index)
{
    return index < COUNT_OF(generated_allowed) ? generated_allowed[index] : NULL;
}

const char *policy_syscall_name(int number)
{
    return number >= 0 && (size_t)number < COUNT_OF(generated_names) ? generated_names[number] : NULL;
}

const char *policy_foreign_name(unsigned arch, int number)
{
    if (arch == policy_arch)
        return policy_syscall_name(number & ~X32_BIT);
    if (arch != GENERATED_COMPAT_ARCH || number < 0 || (size_t)number >= COUNT_OF(generated_compat_names))
        return NULL;
    return generated_compat_names[number];
}

size_t policy_row_count(void)
{
    return ROW_COUNT;
}

const struct policy_row *policy_row(size_t index)
{
    return index < ROW_UNKNOWN ? &generated_rows[index] : &shared_rows[index - ROW_UNKNOWN];
}

size_t policy_unknown_row(void)
{
    return ROW_UNKNOWN;
}

/* x32 numbers are those with its bit; a number with the sign bit as well, like -1, is nobody's. */
static bool is_x32(int number)
{
    return number >= X32_BIT;
}

size_t policy_row_of(unsigned arch, int number)
{
    if (arch != policy_arch)
        return ROW_FOREIGN;
    if (is_x32(number))
        return ROW_X32;
    for (size_t row = 0; row < ROW_UNKNOWN; row++)
        if (generated_rows[row].number == number)
            return row;
    return ROW_UNKNOWN;
}
