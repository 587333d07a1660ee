/* model.h - open files as the common options say, and find tensors, parts and ids in them.
 *
 * This room opens models and finds facts about them and the files beside them. What is computed
 * from values is in values, what options say about tensors in options. */
#ifndef HEFT_CLI_MODEL_H
#define HEFT_CLI_MODEL_H
#include <heft/heft_ext.h>
#include <heft/remote.h>
#include <sys/stat.h>

#include "process/cmd.h"
#include "process/command_session.h"
#include "text/jsonout.h"

/* Return the way of --access. */
heft_access model_access(const session *s);
/* Open a file and print its warnings, unless --quiet. An incomplete model gets a warning. Return an
 * exit code. */
int model_open(const session *s, heft_file **out, const char *path);
/* Open a file as model_open() does; opened: see heft_url_options, and unchanged for a path. */
int model_open_url(const session *s, heft_file **out, const char *path, char *opened);
/* Open a file as model_open() does, but refuse an incomplete model. */
int model_open_whole(const session *s, heft_file **out, const char *path);
/* Print an error if the file has changed since it was opened. Call after the last name or value was
 * printed, and before an error that a changed name may have caused: the file may be mapped. Return
 * an exit code. */
int model_check_unchanged(const heft_file *f, const char *path);
/* Open a file as model_open_whole() does, but print no warnings. */
int model_load_whole(const session *s, heft_file **out, const char *path);
void model_say_notices(const session *s, const heft_file *f, const char *path);
/* Print the warnings about a file that the library will open by itself. Does nothing if the file
 * cannot be opened. */
void model_say_notices_at_path(const session *s, const char *path);
/* Set *dir to the malloc'ed folder of the model's files, or to NULL after an error line. Return an
 * exit code. */
int model_find_dir(char **dir, const char *path);
/* Set *file to the malloc'ed path of a file in that folder, or to NULL after an error line. Return
 * an exit code. */
int model_find_beside(char **file, const char *path, const char *name);
/* Return true if `file` is the model opened from `path` or a shard of the model. *no_memory is set
 * if a path could not be built. */
bool model_has_file(bool *no_memory, const heft_file *f, const char *path, const struct stat *file);
/* Return the bytes of the opened file and of all shards that are present. */
uint64_t model_size(const heft_file *f);
/* Open a file without printing anything. */
heft_status model_try_open(const session *s, heft_file **out, const char *path, heft_error *err);
/* Open a model whose shards are opened by the functions of `shards`. */
heft_status model_try_open_set(const session *s, heft_file **out, const char *path,
                               const heft_shard_folder *shards, heft_error *err);
/* Open a file on a server without printing anything. */
heft_status model_try_open_url(const session *s, heft_file **out, const char *url,
                               const heft_url_options *how, heft_error *err);
/* Open a file in spite of wrong checksums, which verify reports as findings. */
heft_status model_open_to_verify(const session *s, heft_file **out, const char *path,
                                 heft_error *err);
/* Open one of two files to compare. --key applies only if the file is nested. */
int model_open_key_optional(const session *s, heft_file **out, const char *path);
/* Print the error of a file that could not be opened; for an exceeded limit, also name the option
 * --max-tensors. Return the exit code. */
int model_say_open_error(const session *s, const char *path, const heft_error *err);

/* Select the tensors whose names match any of the patterns, or all tensors without patterns. Warn
 * about each pattern that matches no tensor. The caller frees out->ids. Return false without
 * memory, after an error line. */
typedef struct selection {
    uint32_t *ids; /* NULL: 0, 1, ... */
    uint32_t count;
} selection;
bool model_select(const session *s, selection *out, const heft_file *f, const char *path,
                  char *const *globs, int glob_count);
static inline uint32_t selected(const selection *s, uint32_t i)
{
    return s->ids ? s->ids[i] : i;
}
/* Return true if the name matches the pattern. *no_memory is set, never cleared, if memory ran
 * out. */
bool name_matches(bool *no_memory, heft_str name, const char *glob);

/* Find a tensor by name. HEFT_NONE, after an error line, if it does not exist. */
uint32_t model_find(const heft_file *f, const char *path, const char *name);
/* Find a tensor by id: 32 hexadecimal digits (gpt-rs), or a Burn id as burn_read_id() accepts.
 * HEFT_NONE, after an error line, if the id is invalid, unknown or ambiguous. */
uint32_t model_find_id(const heft_file *f, const char *path, const char *text);
/* Help text of --id. */
#define MODEL_ID_HELP "select the tensor by id: 32 hex digits, or a Burn id"
/* Find a part by role, of a tensor or, with HEFT_NONE, of the file. role NULL selects "data", or
 * the only part. HEFT_NONE if the part does not exist, after an error line that lists the parts. */
uint32_t model_part(const heft_file *f, const char *path, uint32_t tensor, const char *role);
/* Return the exit code after a function above has found nothing. If the file has changed meanwhile,
 * the error line says so. */
int model_code_of_missing(const heft_file *f);
/* Return the part with the tensor's elements: "data", otherwise "values", otherwise HEFT_NONE. */
uint32_t model_values(const heft_file *f, uint32_t tensor);
/* Return the number of elements of type t in `length` bytes, at most `max`. */
uint64_t elements_in(heft_dtype t, uint64_t length, uint64_t max);
/* Return the product of the dimensions, or UINT64_MAX on overflow. */
uint64_t tensor_elements(const heft_tensor *t);
/* Return a + b, or UINT64_MAX if that is more. */
static inline uint64_t add_saturated(uint64_t a, uint64_t b)
{
    return a < UINT64_MAX - b ? a + b : UINT64_MAX;
}
/* Same; a length that is not known adds nothing. */
static inline uint64_t add_length(uint64_t a, uint64_t b)
{
    return b == HEFT_UNKNOWN_LENGTH ? a : add_saturated(a, b);
}
/* Store the position of an element of a dense tensor in the shape; return the number of dimensions.
 * In other tensors, and in those of more than POSITION_RANK dimensions, the number of the element
 * is the only dimension. */
enum { POSITION_RANK = 64 };
uint32_t tensor_position(uint64_t at[POSITION_RANK], const heft_tensor *t, uint64_t element);

/* Return heft_tensor_find_tied()'s table, which the caller frees. NULL, after an error line, on
 * failure. */
uint32_t *model_find_tied(const heft_file *f, const char *path);

const char *encoding_name(uint8_t encoding);
void out_shape(outbuf *o, const uint64_t *dims, uint32_t rank);
void json_member_dtype(json *j, const char *key, heft_dtype t);
void json_member_shape(json *j, const char *key, const uint64_t *dims, uint32_t rank);
/* Write the parts of the file itself as the member "parts". */
void json_model_parts(json *j, const heft_file *f);
/* Write the members "file", "format", "version" and "size". */
void json_file_head(json *j, const heft_file *f, const char *path);

/* ---- --view NAME=TYPE ---- */

/* Read the rules of --view, NAME=TYPE or PATTERN=TYPE, into s->types. Return an exit code. */
int array_types_read(session *s);
/* Return the rules for heft_open_options, or NULL if there are none. */
const heft_array_types *array_types_chosen(const session *s);
/* Report each rule that has been used for no array of the files opened so far: an error if a tensor
 * of f matches, which has a type of its own, else a warning (an error under --strict). Return an
 * exit code. */
int array_types_check(const session *s, const heft_file *f, const char *path);
void array_types_free(struct array_types *t);

/* ---- patterns that match no tensor ---- */

typedef struct unmatched {
    const heft_file *f;
    const char *path;
    bool strict;    /* --strict: an error */
    bool no_memory; /* a match could not be tested */
    int code;       /* CODE_USAGE after an error */
} unmatched;

/* Report a pattern of --OPTION, or of an argument if option is NULL, that matches no tensor. */
void unmatched_say(unmatched *u, const char *option, const char *glob);
/* Report the pattern if no tensor of the file matches it. */
void unmatched_check(unmatched *u, const char *option, const char *glob);

#endif
