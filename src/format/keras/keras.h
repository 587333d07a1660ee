/* keras.h - shared by the files of the Keras format. */
#ifndef HEFT_KERAS_H
#define HEFT_KERAS_H
#include "base/container.h"
#include "format/format.h"
#include "format/zip_archive.h"

typedef struct heft_keras {
    heft_window *in;
    heft_index *x;
    heft_packed_range weights; /* the HDF5 file */
    heft_zip zip;              /* the archive; it has no members if the file is HDF5 */
    const heft_container *c;
    heft_str *names; /* names of tensors, by array of the container */
    uint32_t apart;  /* number of the shard of bytes that are not in the file as they are; or 0 */
} heft_keras;

/* Find the HDF5 file in an archive, and add the facts in texts beside it; keras_archive.c. */
heft_status heft_keras_open_archive(heft_keras *k);
/* Add the other members as parts of the model, whose numbers follow those of tensors. */
heft_status heft_keras_add_members(heft_keras *k);
/* Name the tensors: by the paths of the arrays, or as Keras 2 names its weights; keras_names.c. */
heft_status heft_keras_name(heft_keras *k);
/* Add attributes of groups to the metadata, of an array to its tensor; keras_facts.c. */
heft_status heft_keras_add_facts(heft_keras *k);
heft_status heft_keras_add_attributes(heft_keras *k, const heft_container_array *a, uint32_t tensor,
                                      bool has_type);
/* Return the type that Keras has noted for bytes without a type, or HEFT_UNTYPED. */
heft_dtype heft_keras_noted_type(const heft_keras *k, const heft_container_array *a);
/* Note the version of Keras, and the class of the model that a text in JSON describes. */
heft_status heft_keras_add_version(heft_keras *k, heft_str version);
heft_status heft_keras_add_class(heft_keras *k, heft_str json);
heft_status heft_keras_add_metadata_json(heft_keras *k, heft_str json);

#endif
