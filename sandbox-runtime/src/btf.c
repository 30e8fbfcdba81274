#include "btf.h"

#include "descriptor.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/btf.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static bool read_all(int fd, char *bytes, size_t size)
{
    for (size_t at = 0; at < size;) {
        ssize_t got = read(fd, bytes + at, size - at);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return false;
        at += (size_t)got;
    }
    return true;
}

static void *read_mapping(int fd, size_t size)
{
    void *bytes = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (bytes == MAP_FAILED || read_all(fd, bytes, size))
        return bytes;
    munmap(bytes, size);
    return MAP_FAILED;
}

bool btf_open(struct btf *btf)
{
    struct stat status;
    OWNED_FD int fd = open("/sys/kernel/btf/vmlinux", O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &status) != 0)
        return false;
    size_t size = (size_t)status.st_size;
    void *bytes = mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (bytes == MAP_FAILED)
        bytes = read_mapping(fd, size);
    *btf = (struct btf){0};
    if (bytes == MAP_FAILED)
        return false;
    madvise(bytes, size, MADV_DONTFORK); /* nothing for a job's child */
    *btf = (struct btf){bytes, size};
    return true;
}

void btf_close(struct btf *btf)
{
    if (btf->bytes)
        munmap((void *)(uintptr_t)btf->bytes, btf->size);
    *btf = (struct btf){0};
}

/* What follows a type's header, by its kind; kinds that are not named have nothing. */
static size_t trailer_size(unsigned kind, size_t count)
{
    switch (kind) {
    case BTF_KIND_INT:
        return sizeof(uint32_t);
    case BTF_KIND_ARRAY:
        return sizeof(struct btf_array);
    case BTF_KIND_STRUCT:
    case BTF_KIND_UNION:
        return count * sizeof(struct btf_member);
    case BTF_KIND_ENUM:
        return count * sizeof(struct btf_enum);
    case BTF_KIND_ENUM64:
        return count * 12;
    case BTF_KIND_FUNC_PROTO:
        return count * sizeof(struct btf_param);
    case BTF_KIND_VAR:
        return sizeof(struct btf_var);
    case BTF_KIND_DATASEC:
        return count * sizeof(struct btf_var_secinfo);
    case BTF_KIND_DECL_TAG:
        return sizeof(struct btf_decl_tag);
    default:
        return 0;
    }
}

/* The two sections, checked to lie inside the file. */
struct sections {
    const char *types, *names;
    size_t types_size, names_size;
};

static bool find_sections(const struct btf *btf, struct sections *sections)
{
    const struct btf_header *header = (const void *)btf->bytes;
    if (btf->size < sizeof *header || header->magic != BTF_MAGIC)
        return false;
    uint64_t types = (uint64_t)header->hdr_len + header->type_off, names = (uint64_t)header->hdr_len + header->str_off;
    if (types + header->type_len > btf->size || names + header->str_len > btf->size)
        return false;
    *sections = (struct sections){btf->bytes + types, btf->bytes + names, header->type_len, header->str_len};
    return true;
}

static bool has_name(const struct sections *sections, uint32_t offset, const char *name)
{
    size_t size = strlen(name) + 1;
    return offset < sections->names_size && size <= sections->names_size - offset &&
           !memcmp(sections->names + offset, name, size);
}

int btf_member_offset(const struct btf *btf, const struct btf_type *structure, const char *member)
{
    struct sections sections;
    if (!structure || !find_sections(btf, &sections))
        return -1;
    const struct btf_member *members = (const void *)(structure + 1);
    for (size_t i = 0; i < BTF_INFO_VLEN(structure->info); i++) {
        if (!has_name(&sections, members[i].name_off, member))
            continue;
        uint32_t bits = BTF_INFO_KFLAG(structure->info) ? BTF_MEMBER_BIT_OFFSET(members[i].offset) : members[i].offset;
        return bits % 8 ? -1 : (int)(bits / 8);
    }
    return -1;
}

const struct btf_type *btf_structure(const struct btf *btf, const char *name)
{
    struct sections sections;
    if (!find_sections(btf, &sections))
        return NULL;
    for (size_t at = 0; at + sizeof(struct btf_type) <= sections.types_size;) {
        const struct btf_type *type = (const void *)(sections.types + at);
        unsigned kind = BTF_INFO_KIND(type->info);
        at += sizeof *type + trailer_size(kind, BTF_INFO_VLEN(type->info));
        if (at > sections.types_size)
            return NULL;
        if (kind == BTF_KIND_STRUCT && BTF_INFO_VLEN(type->info) && has_name(&sections, type->name_off, name))
            return type;
    }
    return NULL;
}
