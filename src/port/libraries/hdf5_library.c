/* hdf5_library.c - loads libhdf5 when the first HDF5 file is opened. */
#include "port/libraries/hdf5_library.h"

#include <string.h>

#include "base/text.h"
#include "port/system/loaded_library.h"

static heft_hdf5_functions functions;
const heft_hdf5_functions *const heft_hdf5 = &functions;

static const heft_library_function names[] = {
#define FUNCTION(name) { #name, offsetof(heft_hdf5_functions, name) },
#include "port/libraries/hdf5_functions.def"
#undef FUNCTION
};
static heft_loaded_library library = HEFT_LOADED_LIBRARY(HEFT_HDF5_LIBRARY, functions, names);

/* ---- loading ---- */

static heft_status missing(const char *why, heft_error *err)
{
    return heft_error_rule(
        err,
        heft_error_plain(err, HEFT_E_UNSUPPORTED,
                         "HDF5 files need libhdf5 (" HEFT_HDF5_LIBRARY "), %s: install the package "
                         "libhdf5-103-1, or save the weights as .npz or safetensors in Keras or "
                         "h5py",
                         why),
        "keras/library");
}

static heft_status other_version(unsigned major, unsigned minor, heft_error *err)
{
    return heft_error_rule(
        err,
        heft_error_plain(
            err, HEFT_E_UNSUPPORTED,
            "HDF5 files need libhdf5 %U.%U, for which this Heft was built, and " HEFT_HDF5_LIBRARY
            " is version %U.%U: build Heft for this version, or "
            "save the weights as .npz or safetensors in Keras or h5py",
            (uint64_t)H5_VERS_MAJOR, (uint64_t)H5_VERS_MINOR, (uint64_t)major, (uint64_t)minor),
        "keras/library");
}

heft_status heft_hdf5_load(heft_error *err)
{
    heft_library_state state = heft_library_load(&library);
    if (state == HEFT_LIBRARY_NO_MEMORY)
        return heft_error_no_memory(err, "to load " HEFT_HDF5_LIBRARY);
    if (state == HEFT_LIBRARY_MISSING)
        return missing("which is not installed", err);
    return state == HEFT_LIBRARY_OTHER ? missing("and another version is installed", err) : HEFT_OK;
}

heft_status heft_hdf5_start(heft_error *err)
{
    unsigned major = 0, minor = 0, release = 0;
    bool is_known = functions.H5open() >= 0 &&
                    functions.H5get_libversion(&major, &minor, &release) >= 0;
    /* The tables of the driver have the layout of the headers, which versions change. */
    if (!is_known || major != H5_VERS_MAJOR || minor != H5_VERS_MINOR)
        return other_version(major, minor, err);
    functions.H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
    functions.H5PLset_loading_state(0);
    return HEFT_OK;
}

hid_t heft_hdf5_access_class(void)
{
    return *functions.H5P_CLS_FILE_ACCESS_ID_g;
}

/* ---- errors ---- */

typedef struct first_error {
    char text[160];
    bool is_memory;
} first_error;

/* The first error is the innermost. */
static herr_t note_error(unsigned n, const H5E_error2_t *e, void *ctx)
{
    first_error *first = ctx;
    if (!n)
        strncpy(first->text, e->desc ? e->desc : "", sizeof first->text - 1);
    first->is_memory = first->is_memory || (!n && e->maj_num == *functions.H5E_RESOURCE_g);
    return 0;
}

heft_status heft_hdf5_library_error(heft_error *err, const char *what, heft_str name)
{
    first_error first = { .text = "" };
    functions.H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, note_error, &first);
    heft_status st = first.is_memory ? HEFT_E_LIMIT : HEFT_E_FORMAT;
    const char *why = *first.text ? first.text : "the library gives no reason";
    return name.len ? heft_error_plain(err, st, "HDF5: %s %q: %s", what, name, why)
                    : heft_error_plain(err, st, "HDF5: %s: %s", what, why);
}
