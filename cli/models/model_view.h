/* model_view.h - a model as the user wants to see it: with a tensor for each quantised one, which
 * several stored tensors represent, or the stored tensors if --raw-tensors asks for them. */
#ifndef HEFT_CLI_MODEL_VIEW_H
#define HEFT_CLI_MODEL_VIEW_H
#include <heft/check.h>
#include <heft/scheme.h>

#include "models/model.h"
#include "process/cmd.h"
#include "process/command_session.h"

#define RAW_TENSORS_HELP "take the stored tensors, not what quantised ones represent"

typedef struct view_row { /* a tensor of the view */
    uint32_t quantised;   /* number in schemes; HEFT_NONE: a stored tensor */
    uint32_t stored;      /* stored tensor, or the weight of the quantised; HEFT_NONE: none */
} view_row;

typedef struct model_view {
    const heft_file *f;      /* the tensors that the user sees */
    const heft_file *stored; /* the file as it was opened; borrowed */
    heft_schemes *schemes;   /* NULL with --raw-tensors */
    heft_file *decoded;      /* f, or NULL if f is `stored` */
    view_row *rows;          /* by tensor of f; NULL without `decoded` */
} model_view;

typedef enum view_use {
    VIEW_TO_LIST, /* parts that contradict each other are a warning, and listed as stored */
    VIEW_TO_READ  /* they are an error */
} view_use;

/* Make the view of the model opened from `path`. *v must be closed, after an error, too, and before
 * f. Return an exit code. */
int model_view_open(model_view *v, const session *s, const heft_file *f, const char *path,
                    view_use use);
void model_view_close(model_view *v); /* safe on a zeroed struct */
/* Return the view of the stored tensors, which need not be closed. */
model_view model_view_of_stored(const heft_file *f);

/* Return the quantised tensor that a tensor of the view is, or HEFT_NONE. */
uint32_t view_quantised(const model_view *v, uint32_t tensor);
/* Return the stored tensor, or the weight of the quantised one. */
uint32_t view_stored(const model_view *v, uint32_t tensor);
/* Return whether a quantised tensor is one stored tensor with a layout of its own: a QFloat. */
bool view_has_own_layout(const model_view *v, uint32_t tensor);
/* Return the bytes of the tensor, of a quantised one the bytes of all parts;
 * HEFT_UNKNOWN_LENGTH if a length is not known. */
uint64_t view_bytes(const model_view *v, uint32_t tensor);
/* Return the number of parameters: packed words count as the numbers in them, scales and other
 * parts do not count. */
uint64_t view_parameters(const model_view *v, uint32_t tensor);
enum { VIEW_TYPE_BYTES = 128 }; /* more than a type has */
/* Write the type: "f32", and of a quantised tensor the scheme, too: "fp8-block/bf16". */
void view_put_type(outbuf *o, const model_view *v, uint32_t tensor);
/* Write the type into buf, and return it. */
heft_str view_type(char buf[VIEW_TYPE_BYTES], const model_view *v, uint32_t tensor);

/* Return whether two tensors of the view have the same type. */
bool view_has_same_type(const model_view *v, uint32_t a, uint32_t b);

enum { VIEW_TYPES = 64 };
typedef struct view_types { /* the types of quantised tensors, each by a tensor that has it */
    uint32_t first[VIEW_TYPES], count;
} view_types;
/* Return the number of the type of a quantised tensor, which is added if it is new; VIEW_TYPES for
 * types beyond the capacity. */
uint32_t view_types_add(view_types *types, const model_view *v, uint32_t tensor);

/* Write that type as the member "type", for a quantised tensor only. */
void view_json_type(json *j, const model_view *v, uint32_t tensor);
/* Write the member "quantised" of a quantised tensor; nothing for a stored one. */
void view_json(json *j, const model_view *v, uint32_t tensor);
/* Find a tensor by name, which may end with a slice, with the hint at --raw-tensors if it is a
 * part of a quantised one. HEFT_NONE, after an error line, if it does not exist. */
uint32_t view_find(const model_view *v, const char *path, const char *name);
/* Compare the stored checksums of the parts of a quantised tensor, unless --no-verify; those of a
 * stored tensor are for its reader. Return an exit code. */
int view_verify(const model_view *v, const session *s, const char *path, uint32_t tensor);
/* Do the same for the selected tensors. */
int view_verify_selected(const model_view *v, const session *s, const char *path,
                         const selection *chosen);

/* ---- verify the digests of the parts that a command reads as a whole ---- */

typedef struct checks {
    heft_checked_read *read; /* NULL if no digests are verified */
    const heft_file *f;      /* NULL before checks_begin() */
    uint32_t *parts, count, capacity;
    bool no_memory;
} checks;

/* Register a part that will be read. Return false without memory; checks_begin() reports the
 * error. */
bool checks_add(checks *c, uint32_t part);
/* Register all parts of a tensor. */
bool checks_add_tensor(checks *c, const heft_file *f, uint32_t tensor);
/* Begin after the last checks_add(). No digests are verified under --no-verify. Return an exit
 * code. */
int checks_begin(checks *c, const session *s, const heft_file *f, const char *path);
/* Call after all registered parts were read. Fail if the file has changed meanwhile. Return an exit
 * code. */
int checks_end(checks *c, const char *path);
void checks_close(checks *c); /* safe on a zeroed struct */

#endif
