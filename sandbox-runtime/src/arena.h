/*
 * Memory for the parts of one job's specification, given back all at once. It lies in pages of its own that forked
 * children do not get (MADV_DONTFORK) unless the job is theirs, so no job's child carries another job's arguments.
 */
#ifndef SANDBUS_ARENA_H
#define SANDBUS_ARENA_H

#include <stdbool.h>
#include <stddef.h>

struct arena_chunk;
struct arena {
    struct arena_chunk *chunks;
};

/* Zeroed, aligned for any object. NULL when memory is out. */
void *arena_allocate(struct arena *arena, size_t size);
char *arena_copy(struct arena *arena, const char *text, size_t length);
void arena_free(struct arena *arena);
/* Whether children forked from now on get this memory. A new arena's memory they do not get. */
void arena_share_with_children(struct arena *arena, bool shared);

#endif
