/* hdf5_driver.c - the bytes that the worker asks for as a file of libhdf5, read-only.
 *
 * The library asks for a few bytes at a time, so that pages are kept: each may be a request to a
 * server.  The driver opens the file that is about to be opened, once, and nothing else: names of
 * other files in external links and virtual datasets lead nowhere. */
#include "port/libraries/hdf5_library.h"

#include <stdlib.h>
#include <string.h>

enum { PAGE = 64 << 10, PAGES = 512 };

typedef struct page {
    uint64_t number, used; /* used 0: empty */
    uint8_t bytes[PAGE];
} page;

struct heft_hdf5_driver {
    H5FD_t base; /* first member */
    uint64_t size;
    haddr_t end;
    heft_status status; /* status of the first read that failed */
    heft_error error;
    uint64_t clock;
    page *pages[PAGES];
};

static heft_hdf5_driver *about_to_open; /* the worker has one thread */

static heft_hdf5_driver *driver_of(const H5FD_t *file)
{
    return (heft_hdf5_driver *)(uintptr_t)file;
}

/* ---- reading ---- */

/* Return the page that is to be replaced; NULL: no memory. */
static page *oldest(heft_hdf5_driver *d)
{
    page **at = &d->pages[0];
    for (int i = 0; i < PAGES; i++) {
        if (!d->pages[i])
            d->pages[i] = calloc(1, sizeof(page));
        if (!d->pages[i])
            return *at;
        if (!d->pages[i]->used)
            return d->pages[i];
        at = d->pages[i]->used < (*at)->used ? &d->pages[i] : at;
    }
    return *at;
}

static page *find_page(heft_hdf5_driver *d, uint64_t number)
{
    for (int i = 0; i < PAGES && d->pages[i]; i++)
        if (d->pages[i]->used && d->pages[i]->number == number)
            return d->pages[i];
    return NULL;
}

static heft_status get_page(const page **out, heft_hdf5_driver *d, uint64_t number)
{
    uint64_t at = number * PAGE, left = d->size - at;
    page *p = find_page(d, number);
    if (!p) {
        p = oldest(d);
        if (!p)
            return heft_error_no_memory(&d->error, "for pages of an HDF5 file");
        p->used = 0;
        HEFT_TRY(heft_hdf5_ask(at, p->bytes, left < PAGE ? (size_t)left : PAGE, &d->error));
        p->number = number;
    }
    p->used = ++d->clock;
    *out = p;
    return HEFT_OK;
}

/* Bytes past the end of the file are zeros to the library. */
static heft_status read_bytes(heft_hdf5_driver *d, uint64_t at, uint8_t *to, size_t len)
{
    uint64_t left = at < d->size ? d->size - at : 0;
    size_t present = left < len ? (size_t)left : len, done = 0;
    memset(to + present, 0, len - present);
    for (size_t n; present >= PAGE && done < present; done += n) {
        n = present - done < HEFT_HDF5_READ ? present - done : HEFT_HDF5_READ;
        HEFT_TRY(heft_hdf5_ask(at + done, to + done, n, &d->error));
    }
    for (size_t n; done < present; done += n) {
        const page *p = NULL;
        size_t from = (size_t)((at + done) % PAGE);
        n = PAGE - from < present - done ? PAGE - from : present - done;
        HEFT_TRY(get_page(&p, d, (at + done) / PAGE));
        memcpy(to + done, p->bytes + from, n);
    }
    return HEFT_OK;
}

static herr_t driver_read(H5FD_t *file, H5FD_mem_t type, hid_t dxpl, haddr_t at, size_t len,
                          void *to)
{
    heft_hdf5_driver *d = driver_of(file);
    (void)type;
    (void)dxpl;
    heft_status st = read_bytes(d, at, to, len);
    d->status = d->status ? d->status : st;
    return st ? -1 : 0;
}

/* ---- the other functions of a driver ---- */

static H5FD_t *driver_open(const char *name, unsigned flags, hid_t access, haddr_t most)
{
    heft_hdf5_driver *d = about_to_open;
    (void)name;
    (void)flags;
    (void)access;
    (void)most;
    about_to_open = NULL;
    return d ? &d->base : NULL;
}

static herr_t driver_close(H5FD_t *file)
{
    (void)file;
    return 0;
}

static int driver_compare(const H5FD_t *a, const H5FD_t *b)
{
    return a < b ? -1 : a > b;
}

static herr_t driver_query(const H5FD_t *file, unsigned long *flags)
{
    (void)file;
    *flags = 0;
    return 0;
}

static haddr_t driver_end(const H5FD_t *file, H5FD_mem_t type)
{
    (void)type;
    return driver_of(file)->end;
}

static herr_t driver_set_end(H5FD_t *file, H5FD_mem_t type, haddr_t end)
{
    (void)type;
    driver_of(file)->end = end;
    return 0;
}

static haddr_t driver_size(const H5FD_t *file, H5FD_mem_t type)
{
    (void)type;
    return driver_of(file)->size;
}

static herr_t driver_write(H5FD_t *file, H5FD_mem_t type, hid_t dxpl, haddr_t at, size_t len,
                           const void *from)
{
    (void)file;
    (void)type;
    (void)dxpl;
    (void)at;
    (void)len;
    (void)from;
    return -1;
}

static const H5FD_class_t driver = { HEFT_HDF5_CLASS.name = "heft", .maxaddr = INT64_MAX,
                                     .fc_degree = H5F_CLOSE_STRONG, .open = driver_open,
                                     .close = driver_close,         .cmp = driver_compare,
                                     .query = driver_query,         .get_eoa = driver_end,
                                     .set_eoa = driver_set_end,     .get_eof = driver_size,
                                     .read = driver_read,           .write = driver_write };

/* ---- a file of the driver ---- */

heft_hdf5_driver *heft_hdf5_driver_new(uint64_t size)
{
    heft_hdf5_driver *d = calloc(1, sizeof *d);
    if (d)
        d->size = size;
    return d;
}

hid_t heft_hdf5_driver_open(heft_hdf5_driver *d)
{
    hid_t file = -1, id = heft_hdf5->H5FDregister(&driver),
          access = heft_hdf5->H5Pcreate(heft_hdf5_access_class());
    about_to_open = d;
    if (id >= 0 && access >= 0 && heft_hdf5->H5Pset_driver(access, id, NULL) >= 0 &&
        heft_hdf5->H5Pset_fclose_degree(access, H5F_CLOSE_STRONG) >= 0)
        file = heft_hdf5->H5Fopen("heft", 0, access); /* 0: H5F_ACC_RDONLY */
    about_to_open = NULL;
    if (file >= 0) /* any call clears the errors that the library has noted */
        heft_hdf5->H5Pclose(access);
    return file;
}

heft_status heft_hdf5_driver_error(heft_hdf5_driver *d, heft_error *err)
{
    heft_status st = d->status;
    if (st && err)
        *err = d->error;
    d->status = HEFT_OK;
    return st;
}
