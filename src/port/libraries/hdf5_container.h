/* hdf5_container.h - an HDF5 file in the process that opened it; libhdf5 is in the worker. */
#ifndef HEFT_PORT_HDF5_CONTAINER_H
#define HEFT_PORT_HDF5_CONTAINER_H
#include <pthread.h>

#include "port/libraries/hdf5_library.h"

typedef struct heft_hdf5_container {
    heft_container base; /* first member */
    heft_source decoded;
    heft_hdf5_worker *worker;
    pthread_mutex_t lock; /* protects the worker and the cache */
    struct heft_hdf5_cache *cache;
} heft_hdf5_container;

/* Reads decoded elements; hdf5_bands.c. */
extern const heft_source_ops heft_hdf5_decoded_ops;
void heft_hdf5_cache_free(struct heft_hdf5_cache *c); /* c may be NULL */

#endif
