/* windows_pages.c - mapped files on Windows; see port.h.
 *
 * A mapped file cannot be truncated by another program, so that no guard is needed.  Only files on
 * other machines may fail while they are mapped, with an exception that a library must not handle:
 * they are read instead. */
#include "port/windows/system.h"

#include "port/system/read_ahead.h"

const heft_access heft_edit_access = HEFT_ACCESS_READ;

size_t heft_page_size(void)
{
    SYSTEM_INFO info;
    GetSystemInfo(&info);
    return info.dwPageSize;
}

bool heft_map_may_fault(int fd)
{
    FILE_REMOTE_PROTOCOL_INFO info;
    HANDLE handle = windows_handle(fd);
    return handle != INVALID_HANDLE_VALUE &&
           GetFileInformationByHandleEx(handle, FileRemoteProtocolInfo, &info, sizeof info);
}

void *heft_pages_map(int fd, uint64_t size, bool populates)
{
    HANDLE handle = windows_handle(fd), mapping;
    void *map;
    if (handle == INVALID_HANDLE_VALUE)
        return NULL;
    mapping = CreateFileMappingW(handle, NULL, PAGE_READONLY, 0, 0, NULL);
    map = mapping ? MapViewOfFile(mapping, FILE_MAP_READ, 0, 0, (size_t)size) : NULL;
    if (!map)
        (void)windows_fail();
    if (mapping)
        CloseHandle(mapping); /* the view keeps the mapping */
    if (map && populates)
        for (size_t i = 0, page = heft_page_size(); i < size; i += page)
            (void)((const volatile uint8_t *)map)[i];
    return map;
}

void heft_pages_unmap(void *map, size_t size)
{
    (void)size;
    UnmapViewOfFile(map);
}

/* Windows reads ahead already. */
void heft_pages_request(int fd, uint64_t off, uint64_t len)
{
    (void)fd, (void)off, (void)len;
}

bool heft_pages_populate(void *from, size_t len)
{
    (void)from, (void)len;
    return false;
}

/* Unlocking pages that are not locked removes them from the working set. */
void heft_pages_drop(void *from, size_t len)
{
    VirtualUnlock(from, len);
}

/* ---- guards ---- */

struct heft_guard {
    char unused;
};

heft_guard *heft_guard_new(void *base, size_t len)
{
    static heft_guard only;
    (void)base, (void)len;
    return &only;
}

void heft_guard_free(heft_guard *g)
{
    (void)g;
}

void heft_guard_arm(heft_guard *g)
{
    (void)g;
}

void heft_guard_disarm(heft_guard *g)
{
    (void)g;
}

bool heft_guard_tripped(const heft_guard *g)
{
    (void)g;
    return false;
}

/* ---- reads past the cache ---- */

int heft_direct_descriptor(int fd)
{
    (void)fd;
    return -1;
}

heft_direct *heft_direct_open(int fd, const void *map, uint64_t size)
{
    (void)fd, (void)map, (void)size;
    return NULL; /* ordinary reads */
}

void heft_direct_close(heft_direct *d)
{
    (void)d;
}

size_t heft_direct_read(heft_direct *d, uint64_t off, void *buf, size_t len)
{
    (void)d, (void)off, (void)buf, (void)len;
    return 0;
}

/* ---- reads ahead: Windows itself reads ahead from servers ---- */

heft_file_cost heft_file_cost_of(int fd, uint64_t size)
{
    (void)fd, (void)size;
    return HEFT_COST_LOCAL;
}

heft_read_ahead *heft_read_ahead_new(int fd, uint64_t size, bool is_direct)
{
    (void)fd, (void)size, (void)is_direct;
    return NULL;
}

void heft_read_ahead_free(heft_read_ahead *a)
{
    (void)a;
}

size_t heft_read_ahead_read(heft_read_ahead *a, uint64_t off, void *buf, size_t len)
{
    (void)a, (void)off, (void)buf, (void)len;
    return 0;
}

void heft_read_ahead_request(heft_read_ahead *a, uint64_t off, uint64_t len)
{
    (void)a, (void)off, (void)len;
}
