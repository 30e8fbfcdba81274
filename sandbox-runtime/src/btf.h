/* Where members of the kernel's structures lie: the type information that the running kernel carries (BTF). */
#ifndef SANDBUS_BTF_H
#define SANDBUS_BTF_H

#include <stdbool.h>
#include <stddef.h>

struct btf {
    const char *bytes;
    size_t size;
};

/* Maps /sys/kernel/btf/vmlinux, or reads it where the kernel does not map it (before 6.16). False with errno. */
bool btf_open(struct btf *btf);
void btf_close(struct btf *btf);

/* The offset in bytes of a member of a structure, or -1: not there, or the information is damaged. */
int btf_member_offset(const struct btf *btf, const char *structure, const char *member);

#endif
