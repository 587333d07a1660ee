/* test_allocator.h - a checking allocator for tests that read and write thousands of files. */
#ifndef TEST_ALLOCATOR_H
#define TEST_ALLOCATOR_H
#include <heft/heft_ext.h>

/* Resize function of a heft_allocator. Abort if the library states a size or an alignment that
 * the block does not have. A block moves at each resize. New blocks are filled with 0xA5,
 * released blocks with 0xDD, large blocks at both ends only. A large released block is cached
 * for the next request of the same size, because sanitizers map and unmap each large block; the
 * address sanitizer reports accesses to a cached block. */
void *heft_test_resize(void *ctx, void *ptr, size_t old_size, size_t new_size, size_t align);

/* Replaces the library's default allocator in programs linked with --wrap=heft_libc_allocator. */
extern const heft_allocator __wrap_heft_libc_allocator;

#endif
