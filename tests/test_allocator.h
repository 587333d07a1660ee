/* test_allocator.h - the allocator of tests that read and write files by the thousand. */
#ifndef TEST_ALLOCATOR_H
#define TEST_ALLOCATOR_H
#include <heft/heft_ext.h>

/* The function of a heft_allocator.  Aborts when the library states a size or an alignment that the
 * block does not have.  A block moves whenever it is resized; new blocks hold 0xA5, released ones 0xDD,
 * large ones at both ends only.  A large block that is released is kept for the next request of its
 * size, since sanitizers map and unmap each of them; until then the address sanitizer reports every
 * access. */
void *heft_test_resize(void *ctx, void *ptr, size_t old_size, size_t new_size, size_t align);

/* Takes the place of the library's default allocator where a program is linked with
 * --wrap=heft_libc_allocator. */
extern const heft_allocator __wrap_heft_libc_allocator;

#endif
