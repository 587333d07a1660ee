/* burn.h - parameter ids of Burn, and Burnpack files that hold an optimizer or a scheduler
 * record. */
#ifndef HEFT_CLI_BURN_H
#define HEFT_CLI_BURN_H
#include "process/cmd.h"

/* Return true if the tensor has a Burn parameter id, and store the id in *id. */
bool burn_id_of(uint64_t *id, const heft_file *f, uint32_t tensor);
/* Return true if the tensor is named "ID.FIELD" with the given id, as in an optimizer record.
 * *field is the optimizer's state for that parameter. */
bool burn_field_of(heft_str *field, heft_str name, uint64_t id);
/* Parse a decimal number without a sign or leading zeros, as Burn writes ids in names. */
bool burn_number(uint64_t *out, heft_str text);

/* Return true if the value is the map "burn.scalars" of a Burnpack file. */
bool burn_is_scalars(const heft_value *v);

typedef enum burn_record {
    BURN_MODEL, /* a model, or no record of Burn at all */
    BURN_OPTIMIZER,
    BURN_SCHEDULER
} burn_record;
/* Classify the file. *parameters is the number of parameters in an optimizer record, otherwise
 * 0. */
burn_record burn_record_of(const heft_file *f, uint64_t *parameters);

/* Names of a model's parameters, by Burn id. */
typedef struct burn_name {
    uint64_t id;
    heft_str name; /* borrowed from the file */
} burn_name;
typedef struct burn_names {
    burn_name *items; /* sorted by id */
    size_t count;
} burn_names;
/* Collect the names from an optimizer record or from a model. Return false without memory. Release
 * with free(names.items). */
bool burn_names_of_record(burn_names *out, const heft_file *f);
bool burn_names_of_model(burn_names *out, const heft_file *f);
/* Return the parameter's name, or a string with ptr NULL if the id is unknown. */
heft_str burn_name_find(const burn_names *names, uint64_t id);

/* Parse a decimal number, or a hexadecimal one after "0x". */
bool burn_read_number(uint64_t *out, const char *text);
/* Parse a Burn parameter id: a decimal number, a hexadecimal number after "0x", or the 13
 * characters that Burn prints. Return false for any other text. */
bool burn_read_id(uint64_t *id, const char *text);

#endif
