/* burn.h - what Burn keeps in a Burnpack besides a model: the state of an optimizer, or of a scheduler. */
#ifndef HEFT_CLI_BURN_H
#define HEFT_CLI_BURN_H
#include "cmd.h"

/* Whether the tensor has an id of Burn's. */
bool burn_id_of(uint64_t *id, const heft_file *f, uint32_t tensor);
/* Whether a tensor of that name and id is one of an optimizer's, "ID.FIELD": what the optimizer remembers of the
 * parameter that has the id. */
bool burn_field_of(heft_str *field, heft_str name, uint64_t id);
/* A decimal number without a sign or zeros in front, as Burn writes ids into names. */
bool burn_number(uint64_t *out, heft_str text);

/* Whether the value is the map of a file's scalars. */
bool burn_is_scalars(const heft_value *v);

typedef enum burn_record {
    BURN_MODEL, /* or whatever else */
    BURN_OPTIMIZER,
    BURN_SCHEDULER
} burn_record;
/* What the file is the record of; *parameters: how many an optimizer's record tells of. */
burn_record burn_record_of(const heft_file *f, uint64_t *parameters);

/* The parameters of a model by their ids: what an optimizer's record says itself, or another file. */
typedef struct burn_name {
    uint64_t id;
    heft_str name; /* borrowed from the file */
} burn_name;
typedef struct burn_names {
    burn_name *items; /* by ascending ids */
    size_t count;
} burn_names;
/* False: no memory.  Release with free(names.of). */
bool burn_names_of_record(burn_names *out, const heft_file *f);
bool burn_names_of_model(burn_names *out, const heft_file *f);
/* ptr NULL: no such id. */
heft_str burn_name_find(const burn_names *names, uint64_t id);

#endif
