/* hdf5_library.h - libhdf5, which is loaded when the first HDF5 file is opened.
 *
 * A damaged file makes libhdf5 crash, or take all memory, often enough that each file is left to a
 * process of its own, the worker (hdf5_worker.c).  It has the library, no other file, and limits of
 * memory and time; it asks the process that opened the file for bytes, and answers with lists and
 * decoded elements in memory that both share.  What is called "in the worker" below runs there. */
#ifndef HEFT_PORT_HDF5_LIBRARY_H
#define HEFT_PORT_HDF5_LIBRARY_H
#include <hdf5.h>
#include HEFT_HDF5_DRIVER_HEADER
#include <heft/heft_ext.h>

#include "base/arena.h"
#include "base/error.h"

/* Members are named like the functions. */
typedef struct heft_hdf5_functions {
#define FUNCTION(name) __typeof__(name) *(name);
#include "port/libraries/hdf5_functions.def"
#undef FUNCTION
} heft_hdf5_functions;

/* Valid after heft_hdf5_load(). */
extern const heft_hdf5_functions *const heft_hdf5;

/* Load the library unless it is loaded; threads may call this at the same time.
 *   HEFT_E_UNSUPPORTED  the library is not installed, or lacks a function */
heft_status heft_hdf5_load(heft_error *err);
/* In the worker: start the library.
 *   HEFT_E_UNSUPPORTED  the library is of another version than its headers */
heft_status heft_hdf5_start(heft_error *err);
/* Return the class of property lists for opening files. */
hid_t heft_hdf5_access_class(void);
/* Set an error from the errors that the library has noted: HEFT_E_LIMIT if the
 * worker may take no more memory, else HEFT_E_FORMAT. */
heft_status heft_hdf5_library_error(heft_error *err, const char *what, heft_str name);

/* ---- the worker, hdf5_worker.c ---- */

enum { HEFT_HDF5_READ = 1 << 20 };

typedef enum heft_hdf5_task { HEFT_HDF5_LIST, HEFT_HDF5_DECODE } heft_hdf5_task;
typedef struct heft_hdf5_worker heft_hdf5_worker;
/* Start a process for a file of `size` bytes, whose lists may take `memory` bytes. */
heft_status heft_hdf5_worker_start(heft_hdf5_worker **out, heft_source *bytes, uint64_t memory,
                                   heft_error *err);
void heft_hdf5_worker_stop(heft_hdf5_worker *w); /* w may be NULL */
/* Let the worker do a task, while its requests for bytes are served. */
heft_status heft_hdf5_worker_run(heft_hdf5_worker *w, heft_hdf5_task task, uint32_t array,
                                 uint64_t band, heft_error *err);
/* Return the lists after HEFT_HDF5_LIST, which the worker cannot change any more, and the elements
 * after HEFT_HDF5_DECODE, which may be anything. */
const struct heft_hdf5_file *heft_hdf5_worker_file(const heft_hdf5_worker *w);
const uint8_t *heft_hdf5_worker_elements(heft_hdf5_worker *w);
/* In the worker: read bytes of the file, at most HEFT_HDF5_READ, to `to`. */
heft_status heft_hdf5_ask(uint64_t at, uint8_t *to, size_t len, heft_error *err);

/* ---- the driver, in the worker: hdf5_driver.c ---- */

typedef struct heft_hdf5_driver heft_hdf5_driver;
/* Make a file of `size` bytes, which the worker asks for; NULL: no memory. */
heft_hdf5_driver *heft_hdf5_driver_new(uint64_t size);
/* Open the file; every other file that the library would open is refused.  Negative: failed. */
hid_t heft_hdf5_driver_open(heft_hdf5_driver *d);
/* Return the error of the source that made a call of the library fail, or HEFT_OK; clear it. */
heft_status heft_hdf5_driver_error(heft_hdf5_driver *d, heft_error *err);

/* ---- types, in the worker: hdf5_types.c ---- */

enum { HEFT_HDF5_RANK = 2 * H5S_MAX_RANK };

typedef struct heft_hdf5_type {
    heft_dtype dtype; /* HEFT_UNTYPED: see `text` */
    bool is_big_endian;
    const char *text; /* description of elements without a dtype */
    uint64_t dims[H5S_MAX_RANK];
    uint32_t rank; /* dimensions of an element that is an array */
    size_t bytes;  /* bytes of an element, with all its dimensions */
} heft_hdf5_type;
heft_hdf5_type heft_hdf5_type_of(hid_t type);

/* ---- an open file ---- */

enum { HEFT_HDF5_TOGETHER = 256 << 20 }; /* most bytes of a band, and of a chunk */

enum { HEFT_HDF5_FILTERS = 8 };

/* An array that is not stored row by row in one range. */
typedef struct heft_hdf5_decoded {
    const char *path;
    uint64_t start, bytes; /* range in the source of decoded arrays */
    uint32_t rank;         /* dimensions of the dataset; 0 if there are no chunks */
    const uint64_t *dims;  /* `rank` sizes of the dataset, then `rank` of a chunk */
    size_t element;        /* bytes of an element of the dataset */
    const uint8_t *fill;   /* one element, where nothing was written */
    uint8_t filters[HEFT_HDF5_FILTERS], filter_count;
    bool is_compact; /* the elements lie in the header */
} heft_hdf5_decoded;

/* Lists, in memory of both processes. */
typedef struct heft_hdf5_file {
    heft_memory mem;
    heft_arena arena;
    heft_hdf5_driver *driver;
    hid_t file;
    uint64_t file_bytes, decoded_bytes;
    heft_vec arrays;           /* heft_container_array */
    heft_vec attributes;       /* heft_container_attribute */
    heft_vec group_attributes; /* heft_container_attribute */
    heft_vec aliases;          /* heft_container_alias */
    heft_vec decoded_arrays;   /* heft_hdf5_decoded, by start */
    heft_error *err;
} heft_hdf5_file;

/* Return false if the lists lead out of the `size` bytes at `start`, which nothing else can change,
 * or contradict each other; hdf5_lists.c. */
bool heft_hdf5_lists_are_sound(const heft_hdf5_file *f, const void *start, size_t size);
/* In the worker: return the number of a rule; 0: none. */
uint32_t heft_hdf5_rule_number(const char *rule);
/* Complete a copy of the worker's error, whose rule has a number; false: not from this library. */
bool heft_hdf5_error_is_sound(heft_error *e, heft_status st, uint32_t rule);

/* In the worker: return the error of a call of the library that failed; `name`: of the object. */
heft_status heft_hdf5_fail(heft_hdf5_file *f, const char *what, heft_str name);
/* Set and return HEFT_E_NOMEM. */
heft_status heft_hdf5_no_memory(heft_hdf5_file *f);
/* Open the file and fill the lists from its groups; hdf5_groups.c. */
heft_status heft_hdf5_list(heft_hdf5_file *f);
/* Append the dataset `name` of a group, with its attributes; hdf5_dataset.c. */
heft_status heft_hdf5_add_dataset(heft_hdf5_file *f, hid_t group, const char *name, heft_str path);
/* Append the attributes of an object to `to`; hdf5_attributes.c. */
heft_status heft_hdf5_add_attributes(heft_hdf5_file *f, hid_t object, heft_str owner, heft_vec *to);
/* Decode band `number` of an array to `to`; hdf5_chunks.c. */
heft_status heft_hdf5_decode(heft_hdf5_file *f, const heft_hdf5_decoded *a, uint64_t number,
                             uint8_t *to);
/* Undo the filters of a chunk: *chunk, a block of `capacity` bytes with *len bytes in use, and
 * *other, a block of the same size, may change places; hdf5_filters.c. */
heft_status heft_hdf5_unfilter(const heft_hdf5_decoded *a, uint32_t skipped, uint8_t **chunk,
                               size_t *len, uint8_t **other, size_t capacity, heft_error *err);

/* ---- bands: the chunks of the same rows, which together are a range of the array ---- */

/* Return the bytes of the rows of a chunk, and of one band; an array without chunks is a band. */
uint64_t heft_hdf5_band_step(const heft_hdf5_decoded *a);
size_t heft_hdf5_band_bytes(const heft_hdf5_decoded *a, uint64_t number);

#endif
