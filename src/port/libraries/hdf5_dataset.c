/* hdf5_dataset.c - one dataset: its type and shape, and where its elements are. */
#include "port/libraries/hdf5_library.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked_math.h"

enum {
    MOST_PER_BYTE = 1032,     /* DEFLATE cannot expand further */
    ALWAYS_ALLOWED = 64 << 20 /* bytes of an array that the file need not hold */
};

typedef struct dataset {
    hid_t id, type, space, plan;
    heft_str path;
    heft_hdf5_type t;
    hsize_t dims[H5S_MAX_RANK], chunk[H5S_MAX_RANK];
    uint32_t rank;
    heft_container_array a;
    heft_hdf5_decoded d;
} dataset;

static void close_dataset(const dataset *s)
{
    if (s->plan >= 0)
        heft_hdf5->H5Pclose(s->plan);
    if (s->space >= 0)
        heft_hdf5->H5Sclose(s->space);
    if (s->type >= 0)
        heft_hdf5->H5Tclose(s->type);
    if (s->id >= 0)
        heft_hdf5->H5Dclose(s->id);
}

static bool open_dataset(dataset *s, hid_t group, const char *name)
{
    s->type = s->space = s->plan = -1;
    s->id = heft_hdf5->H5Dopen2(group, name, H5P_DEFAULT);
    if (s->id < 0)
        return false;
    s->type = heft_hdf5->H5Dget_type(s->id);
    s->space = heft_hdf5->H5Dget_space(s->id);
    s->plan = heft_hdf5->H5Dget_create_plist(s->id);
    return s->type >= 0 && s->space >= 0 && s->plan >= 0;
}

/* ---- the shape ---- */

/* A dataset without a dataspace has no elements: one dimension of 0. */
static bool read_shape(dataset *s)
{
    int kind = heft_hdf5->H5Sget_simple_extent_type(s->space), rank = 0;
    if (kind == H5S_NULL)
        s->rank = 1;
    if (kind != H5S_SIMPLE)
        return kind == H5S_NULL || kind == H5S_SCALAR;
    rank = heft_hdf5->H5Sget_simple_extent_ndims(s->space);
    if (rank < 0 || rank > H5S_MAX_RANK ||
        heft_hdf5->H5Sget_simple_extent_dims(s->space, s->dims, NULL) < 0)
        return false;
    s->rank = (uint32_t)rank;
    return true;
}

/* The dimensions of the dataset, then those of an element that is an array. */
static heft_status set_shape(heft_hdf5_file *f, dataset *s)
{
    uint32_t rank = s->rank + s->t.rank;
    uint64_t *dims = heft_arena_alloc(&f->arena, (rank + 1) * sizeof *dims, 8), n = 1;
    bool fits = true;
    if (!dims)
        return heft_hdf5_no_memory(f);
    for (uint32_t i = 0; i < rank; i++)
        dims[i] = i < s->rank ? s->dims[i] : s->t.dims[i - s->rank];
    for (uint32_t i = 0; i < s->rank; i++)
        fits = fits && heft_mul(&n, n, s->dims[i]);
    fits = fits && heft_mul(&s->a.bytes, n, s->t.bytes);
    s->a.dims = dims;
    s->a.rank = rank;
    return fits ? HEFT_OK
                : heft_error_plain(f->err, HEFT_E_FORMAT, "%q: the shape passes 64 bits", s->path);
}

/* ---- where the elements are ---- */

static void refuse(dataset *s, const char *text)
{
    s->a.dtype = HEFT_UNTYPED;
    s->a.type = text;
}

static const char *filter_problem(H5Z_filter_t id)
{
    switch (id) {
    case H5Z_FILTER_DEFLATE:
    case H5Z_FILTER_SHUFFLE:
    case H5Z_FILTER_FLETCHER32:
        return NULL;
    case H5Z_FILTER_SZIP:
        return "numbers compressed with szip, which is not undone: repack the file with h5repack "
               "-f NONE";
    case 32000:
        return "numbers compressed with LZF of h5py, which is not undone: repack the file with "
               "h5repack -f NONE";
    default:
        return "numbers that passed a filter which is not undone: repack the file with h5repack -f "
               "NONE";
    }
}

static void read_filters(dataset *s)
{
    int count = heft_hdf5->H5Pget_nfilters(s->plan);
    if (count < 0 || count > HEFT_HDF5_FILTERS) {
        refuse(s, filter_problem(-1));
        return;
    }
    for (int i = 0; i < count; i++) {
        unsigned flags, config, values[1] = { 0 };
        size_t n = 1;
        H5Z_filter_t id = heft_hdf5->H5Pget_filter2(s->plan, (unsigned)i, &flags, &n, values, 0,
                                                    NULL, &config);
        const char *problem = filter_problem(id);
        if (id == H5Z_FILTER_SHUFFLE && (!n || values[0] != s->t.bytes))
            problem = filter_problem(-1);
        if (problem)
            refuse(s, problem);
        s->d.filters[i] = (uint8_t)id;
    }
    s->d.filter_count = (uint8_t)count;
}

/* Limit the memory and the time that reading the chunks takes. */
static void read_chunks(const heft_hdf5_file *f, dataset *s)
{
    uint64_t chunk = s->t.bytes, rows = chunk, chunks = 1;
    bool fits = heft_hdf5->H5Pget_chunk(s->plan, (int)s->rank, s->chunk) == (int)s->rank;
    for (uint32_t i = 0; i < s->rank && fits; i++) {
        fits = s->chunk[i] && heft_mul(&chunk, chunk, s->chunk[i]) &&
               heft_mul(&rows, rows, i ? s->dims[i] : s->chunk[i]) &&
               heft_mul(&chunks, chunks, (s->dims[i] + s->chunk[i] - 1) / s->chunk[i]);
    }
    if (!fits || chunk > HEFT_HDF5_TOGETHER || rows > HEFT_HDF5_TOGETHER)
        refuse(s, "numbers in chunks so large that rows of them take more than 256 MiB: repack the "
                  "file with h5repack -l CONTI");
    else if (chunks > f->file_bytes)
        refuse(s, "numbers in more chunks than the file has bytes");
    read_filters(s);
}

static heft_status place_in_file(heft_hdf5_file *f, dataset *s, bool *is_written)
{
    haddr_t at = heft_hdf5->H5Dget_offset(s->id);
    *is_written = at != HADDR_UNDEF;
    if (!*is_written || !s->a.bytes)
        return HEFT_OK;
    heft_range where = { at, s->a.bytes };
    if (!heft_range_in(where, f->file_bytes))
        return heft_error_set(f->err, HEFT_E_FORMAT, at,
                              "%q: %U bytes at offset %U pass the end of the file, %U", s->path,
                              s->a.bytes, (uint64_t)at, f->file_bytes);
    if (heft_hdf5->H5Dget_storage_size(s->id) < s->a.bytes)
        return heft_error_set(f->err, HEFT_E_FORMAT, at,
                              "%q: fewer bytes are stored than its shape takes, %U", s->path,
                              s->a.bytes);
    s->a.offset = at;
    return HEFT_OK;
}

/* Get an element for what was never written. */
static bool read_fill(dataset *s, uint8_t *fill)
{
    H5D_fill_value_t is_defined = H5D_FILL_VALUE_UNDEFINED;
    memset(fill, 0, s->t.bytes);
    if (heft_hdf5->H5Pfill_value_defined(s->plan, &is_defined) < 0)
        return false;
    return is_defined != H5D_FILL_VALUE_USER_DEFINED ||
           heft_hdf5->H5Pget_fill_value(s->plan, s->type, fill) >= 0;
}

static heft_status add_decoded(heft_hdf5_file *f, dataset *s, bool has_chunks)
{
    uint32_t rank = has_chunks ? s->rank : 0;
    uint64_t *dims = heft_arena_alloc(&f->arena, (2 * rank + 1) * sizeof *dims, 8);
    uint8_t *fill = heft_arena_alloc(&f->arena, s->t.bytes, 8);
    if (!dims || !fill)
        return heft_hdf5_no_memory(f);
    if (!read_fill(s, fill))
        return heft_hdf5_fail(f, "the fill value of", s->path);
    for (uint32_t i = 0; i < rank; i++) {
        dims[i] = s->dims[i];
        dims[rank + i] = s->chunk[i];
    }
    s->d.path = s->path.ptr;
    s->d.start = s->a.offset = f->decoded_bytes;
    s->d.bytes = s->a.bytes;
    s->d.dims = dims;
    s->d.rank = rank;
    s->d.element = s->t.bytes;
    s->d.fill = fill;
    s->a.is_decoded = 1;
    if (!heft_add(&f->decoded_bytes, f->decoded_bytes, s->a.bytes))
        return heft_error_plain(f->err, HEFT_E_FORMAT, "the arrays pass 64 bits");
    return heft_vec_add(&f->mem, &f->decoded_arrays, &s->d, sizeof s->d) ? HEFT_OK
                                                                         : heft_hdf5_no_memory(f);
}

static heft_status refuse_outside(heft_hdf5_file *f, const dataset *s, const char *text)
{
    return heft_error_rule(f->err,
                           heft_error_plain(f->err, HEFT_E_UNSUPPORTED,
                                            "%q has its elements in other files (%s), which are "
                                            "not opened: repack the file with h5repack",
                                            s->path, text),
                           "keras/outside");
}

static heft_status find_elements(heft_hdf5_file *f, dataset *s)
{
    H5D_layout_t layout = heft_hdf5->H5Pget_layout(s->plan);
    bool is_written = false;
    if (layout == H5D_VIRTUAL)
        return refuse_outside(f, s, "a virtual dataset");
    if (heft_hdf5->H5Pget_external_count(s->plan) != 0)
        return refuse_outside(f, s, "external storage");
    if (layout == H5D_CONTIGUOUS)
        HEFT_TRY(place_in_file(f, s, &is_written));
    if (s->a.dtype == HEFT_UNTYPED || is_written || !s->a.bytes)
        return HEFT_OK;
    bool has_chunks = layout == H5D_CHUNKED && heft_hdf5->H5Dget_storage_size(s->id);
    s->d.is_compact = layout == H5D_COMPACT;
    if (has_chunks)
        read_chunks(f, s);
    if (s->a.bytes / MOST_PER_BYTE > f->file_bytes && s->a.bytes > ALWAYS_ALLOWED)
        refuse(s, "more numbers than the file can hold");
    return s->a.dtype == HEFT_UNTYPED ? HEFT_OK : add_decoded(f, s, has_chunks);
}

/* ---- a dataset ---- */

/* Copy the text, so that the lists have no pointers out of them. */
static heft_status keep_type(heft_hdf5_file *f, dataset *s)
{
    if (!s->a.type)
        return HEFT_OK;
    heft_str text = { s->a.type, strlen(s->a.type) + 1 };
    s->a.type = heft_arena_copy(&f->arena, text).ptr;
    return s->a.type ? HEFT_OK : heft_hdf5_no_memory(f);
}

static heft_status read_dataset(heft_hdf5_file *f, dataset *s)
{
    if (!read_shape(s))
        return heft_hdf5_fail(f, "the shape of", s->path);
    s->t = heft_hdf5_type_of(s->type);
    if (!s->t.bytes)
        return heft_hdf5_fail(f, "the type of", s->path);
    HEFT_TRY(set_shape(f, s));
    s->a.name = s->path;
    s->a.dtype = s->t.dtype;
    s->a.type = s->t.text;
    s->a.is_big_endian = s->t.is_big_endian;
    s->a.element_bytes = s->t.bytes < UINT32_MAX ? (uint32_t)s->t.bytes : UINT32_MAX;
    HEFT_TRY(find_elements(f, s));
    HEFT_TRY(keep_type(f, s));
    s->a.first_attribute = f->attributes.len;
    HEFT_TRY(heft_hdf5_add_attributes(f, s->id, s->path, &f->attributes));
    s->a.attribute_count = f->attributes.len - s->a.first_attribute;
    return heft_vec_add(&f->mem, &f->arrays, &s->a, sizeof s->a) ? HEFT_OK : heft_hdf5_no_memory(f);
}

heft_status heft_hdf5_add_dataset(heft_hdf5_file *f, hid_t group, const char *name, heft_str path)
{
    dataset s = { .path = path };
    heft_status st = open_dataset(&s, group, name) ? read_dataset(f, &s)
                                                   : heft_hdf5_fail(f, "the dataset", path);
    close_dataset(&s);
    return st;
}
