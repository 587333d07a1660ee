/* windows_memory.c - memory, processors and random numbers from Windows; see port.h. */
#include "port/windows/system.h"

#include <malloc.h>
#include <ntsecapi.h>

#include "port/port.h"

void *heft_large_map(void *old, size_t old_size, size_t new_size)
{
    void *block = VirtualAlloc(NULL, new_size, MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE);
    if (!block || !old)
        return block;
    memcpy(block, old, old_size < new_size ? old_size : new_size);
    heft_large_unmap(old, old_size);
    return block;
}

void heft_large_unmap(void *block, size_t size)
{
    (void)size;
    VirtualFree(block, 0, MEM_RELEASE);
}

void *heft_aligned_new(size_t align, size_t size)
{
    return _aligned_malloc(size, align);
}

void heft_aligned_free(void *block)
{
    _aligned_free(block);
}

void *heft_buffer_new(size_t bytes)
{
    return heft_large_map(NULL, 0, bytes ? bytes : 1);
}

void heft_buffer_free(void *p, size_t bytes)
{
    if (p)
        heft_large_unmap(p, bytes);
}

uint32_t heft_processors(void)
{
    DWORD n = GetActiveProcessorCount(ALL_PROCESSOR_GROUPS);
    return n ? n : 1;
}

heft_status heft_random_u64(uint64_t *out, heft_error *err)
{
    *out = 0;
    return RtlGenRandom(out, sizeof *out)
               ? HEFT_OK
               : heft_os_error(err, EIO, "the system returned no random numbers");
}

void heft_os_entropy(void *buf, size_t len)
{
    if (!RtlGenRandom(buf, (ULONG)len))
        memset(buf, 0, len);
}
