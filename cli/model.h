/* model.h - what several commands ask of an open file. */
#ifndef HEFT_CLI_MODEL_H
#define HEFT_CLI_MODEL_H
#include <sys/stat.h>

#include "cmd.h"
#include "jsonout.h"

/* What options say to every command that opens files. */
typedef struct open_settings {
    const char *key; /* that is opened of every file, or NULL */
    bool quiet;      /* no warnings about files */
    bool verbose;    /* notes as well */
    bool no_verify;  /* wrong checksums are no obstacle */
    bool
        check_parts; /* the digest of each part that is read as a whole is checked, unless no_verify */
    heft_limits limits; /* tensors: 0, the default, or what --max-tensors says */
} open_settings;
extern open_settings model_settings;

/* Opens path with the default limits; otherwise says why not, and returns the exit code.  Warnings about the
 * file are said, unless --quiet. */
int model_open(heft_file **out, const char *path);
/* The same for what needs all of the model: one that is not whole is refused, where model_open() warns. */
int model_open_whole(heft_file **out, const char *path);
/* The same without its warnings, which the caller says once it is known which files count. */
int model_load_whole(heft_file **out, const char *path);
void model_say_notices(const heft_file *f, const char *path);
/* The same of a file that the library opens by itself to change it, and refuses when it does not open. */
void model_say_notices_at_path(const char *path);
/* The folder in which its files lie; NULL: no memory. */
char *model_dir(const char *path);
/* Whether the model, opened by that path, is or has that file; *no_memory is set when that cannot be told. */
bool model_has_file(bool *no_memory, const heft_file *f, const char *path, const struct stat *file);
/* The same as model_open() where the status counts, and nothing is said. */
heft_status model_try_open(heft_file **out, const char *path, heft_error *err);
/* The same in spite of wrong checksums, which verify reports. */
heft_status model_open_to_verify(heft_file **out, const char *path, heft_error *err);
/* Whole as well, of two files of which only those that nest have the key. */
int model_open_key_optional(heft_file **out, const char *path);
/* The key that is opened of every file; false: it is none. */
bool model_set_key(const char *key);
/* How many tensors a file that is opened has at most; false: it is no such number. */
bool model_set_max_tensors(const char *text);
/* As say_error(), of a file that was not opened; names the option that raises a limit. */
int model_say_open_error(const char *path, const heft_error *err);

/* The tensors whose names match one of the patterns, or all without patterns.  Its ids are the caller's
 * to free.  False: no memory, which was said. */
typedef struct selection {
    uint32_t *ids; /* NULL: 0, 1, … */
    uint32_t count;
} selection;
bool model_select(selection *out, const heft_file *f, const char *path, char *const *globs,
                  int glob_count);
static inline uint32_t selected(const selection *s, uint32_t i)
{
    return s->ids ? s->ids[i] : i;
}
/* Whether the name matches; *no_memory is set, and stays, when that cannot be told for lack of memory. */
bool name_matches(bool *no_memory, heft_str name, const char *glob);

/* The tensor of that name; HEFT_NONE after saying that there is none. */
uint32_t model_find(const heft_file *f, const char *path, const char *name);
/* The tensor of an identity: 32 hexadecimal digits, or an id of Burn's: see identity_read().  HEFT_NONE after saying what is
 * wrong: no id, none of that id, or several. */
uint32_t model_find_id(const heft_file *f, const char *path, const char *text);
/* What --help calls that. */
#define MODEL_ID_HELP "the tensor of that identity: 32 hex digits (gpt-rs), or Burn's id"
/* The part of a tensor, or with HEFT_NONE of the file, that role names; role NULL: "data", or the
 * only one.  HEFT_NONE after saying which there are. */
uint32_t model_part(const heft_file *f, const char *path, uint32_t tensor, const char *role);
/* The part whose elements stand for the tensor: "data", else "values", else HEFT_NONE. */
uint32_t model_values(const heft_file *f, uint32_t tensor);
/* Elements in length bytes of type t, at most `most`. */
uint64_t elements_in(heft_dtype t, uint64_t length, uint64_t max);
/* Product of the dimensions; UINT64_MAX when it does not fit. */
uint64_t tensor_elements(const heft_tensor *t);

/* What heft_tensor_find_tied() says; NULL: no memory, which was said. */
uint32_t *model_find_tied(const heft_file *f, const char *path);

const char *dtype_name(heft_dtype t); /* "f32"; NULL for none */
const char *encoding_name(uint8_t encoding);
void out_dtype(outbuf *o, heft_dtype t);
void out_shape(outbuf *o, const uint64_t *dims, uint32_t rank);
void json_member_dtype(json *j, const char *key, heft_dtype t);
void json_member_shape(json *j, const char *key, const uint64_t *dims, uint32_t rank);
/* One part, as ls and info list it. */
void json_model_parts(json *j, const heft_file *f);
/* "file", "format", "version", "size" */
void json_file_head(json *j, const heft_file *f, const char *path);

#endif
