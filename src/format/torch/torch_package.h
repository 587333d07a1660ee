/* torch_package.h - shared by the files that read packages of torch.export. */
#ifndef HEFT_TORCH_PACKAGE_H
#define HEFT_TORCH_PACKAGE_H
#include "format/torch/torch.h"
#include "grammar/json.h"

typedef struct heft_torch_saved { /* the file of torch.save() of one tensor */
    heft_torch_stated tensor;     /* its storage and its type; storage NULL: not open */
    bool is_big_endian;
} heft_torch_saved;

typedef struct heft_torch_package {
    heft_torch t; /* t.storages: the members of a folder, sorted by name */
    const heft_zip *zip;
    heft_torch_saved *saved; /* one for each storage, beside compiled code; NULL: none is open */
    const heft_zip_entry **members; /* one for each storage */
    bool *is_read;                  /* one for each storage: a tensor or file was read from it */
    heft_str root;                  /* "NAME/", the prefix of all members, or empty */
    heft_str prefix;                /* begins the names in the current model: "", or "MODEL." */
    bool has_programs;              /* not compiled code alone */
    bool has_models;                /* weights or constants of a model were read */
    bool lacks_bytes;               /* members need bytes: the parser ends with HEFT_AGAIN */
} heft_torch_package;

/* ---- members: torch_package_member.c ---- */

/* Return the name of a member without the prefix of all members; ptr NULL: it lacks the prefix. */
heft_str heft_torch_package_path(const heft_torch_package *p, const heft_zip_entry *e);
/* Return the name of a tensor of the current model; ptr NULL: out of memory. */
heft_str heft_torch_package_name(const heft_torch_package *p, heft_str name);
/* Get the content of a text, of at most `most` bytes.  HEFT_E_UNSUPPORTED: it is not readable. */
heft_status heft_torch_package_text(const heft_torch_package *p, const heft_zip_entry *e,
                                    uint64_t most, heft_str *out);
/* Begin to read a configuration in JSON. */
heft_status heft_torch_package_json(heft_json *out, const heft_torch_package *p,
                                    const heft_zip_entry *e);
/* Prepare a parser for a member that torch.save() wrote.  HEFT_E_UNSUPPORTED: it has no
 * bytes, or not as they are. */
heft_status heft_torch_package_open(heft_torch *out, const heft_torch_package *p,
                                    const heft_zip_entry *e);
/* Add the tensors of a member that torch.save() wrote.  Their names begin with `prefix`, and a dot
 * unless the member is a single tensor.  Set lacks_bytes instead of returning HEFT_AGAIN. */
heft_status heft_torch_package_saved(heft_torch_package *p, const heft_zip_entry *e,
                                     heft_str prefix);
/* Leave a listed member out, and say why.  Its bytes are a part of the file called `name`. */
heft_status heft_torch_package_leave_out(const heft_torch_package *p, uint32_t member,
                                         heft_str name, const char *why);
/* List the members of a folder, such as "data/weights/", as storages. */
heft_status heft_torch_package_list(heft_torch_package *p, const char *folder);

/* ---- configurations: torch_package_config.c ---- */

/* Add the tensors that NAME_weights_config.json or NAME_constants_config.json describes. */
heft_status heft_torch_package_config(heft_torch_package *p, const heft_zip_entry *e);

/* ---- weights beside compiled code: torch_package_compiled.c ---- */

/* Add the tensors that data/aotinductor/MODEL/weights_config.json describes; their files are
 * listed. */
heft_status heft_torch_package_compiled(heft_torch_package *p, const heft_zip_entry *e);

#endif
