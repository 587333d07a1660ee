/* hdf5_file.c - opens an HDF5 file for heft_host.open_hdf5. */
#include "port/libraries/hdf5_container.h"

#include <stdlib.h>

#include "port/port.h"

static void close_container(heft_container *base)
{
    heft_hdf5_container *c = (heft_hdf5_container *)(void *)base;
    heft_hdf5_cache_free(c->cache);
    heft_hdf5_worker_stop(c->worker);
    pthread_mutex_destroy(&c->lock);
    free(c);
}

static void use_lists(heft_hdf5_container *c)
{
    const heft_hdf5_file *f = heft_hdf5_worker_file(c->worker);
    heft_container *b = &c->base;
    b->arrays = f->arrays.ptr;
    b->array_count = f->arrays.len;
    b->attributes = f->attributes.ptr;
    b->attribute_count = f->attributes.len;
    b->group_attributes = f->group_attributes.len;
    b->aliases = f->aliases.ptr;
    b->alias_count = f->aliases.len;
    c->decoded = (heft_source){ &heft_hdf5_decoded_ops, f->decoded_bytes };
    b->decoded = f->decoded_bytes ? &c->decoded : NULL;
}

heft_status heft_hdf5_open(heft_container **out, heft_source *bytes, uint64_t memory,
                           heft_error *err)
{
    *out = NULL;
    HEFT_TRY(heft_hdf5_load(err));
    heft_hdf5_container *c = calloc(1, sizeof *c);
    if (!c)
        return heft_error_no_memory(err, "for an HDF5 file");
    c->base = (heft_container){ .size = sizeof c->base, .close = close_container };
    pthread_mutex_init(&c->lock, NULL);
    heft_status st = heft_hdf5_worker_start(&c->worker, bytes, memory, err);
    if (!st)
        st = heft_hdf5_worker_run(c->worker, HEFT_HDF5_LIST, 0, 0, err);
    if (st) {
        close_container(&c->base);
        return st;
    }
    use_lists(c);
    *out = &c->base;
    return HEFT_OK;
}
