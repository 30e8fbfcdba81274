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
/* Takes longer than all look-ups. Harmless where nothing is open. */
void btf_close(struct btf *btf);

struct btf_type;

/* A structure, or NULL: not there, or the information is damaged. It goes through all types of the kernel. */
const struct btf_type *btf_structure(const struct btf *btf, const char *name);
/* The offset in bytes of a member of it, or -1: not there, or `structure` is NULL. */
int btf_member_offset(const struct btf *btf, const struct btf_type *structure, const char *member);

#endif
