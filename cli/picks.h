/* picks.h - options that take [GLOB=]VALUE and may be repeated: the first that matches a tensor's name counts. */
#ifndef HEFT_CLI_PICKS_H
#define HEFT_CLI_PICKS_H
#include "cmd.h"
#include "opt.h"

typedef struct pick {
    char *glob; /* NULL: every tensor */
    heft_dtype dtype;
    heft_layout layout;
    heft_storage how;     /* the encoding with its level, or the digest */
    bool is_known, value; /* whether a gradient is needed */
    bool has_matched;     /* some tensor, where that is noted */
} pick;

typedef struct picks {
    opt_list given;
    pick *items; /* one for each that was given */
} picks;

typedef enum pick_kind {
    PICK_CAST,
    PICK_SPARSIFY,
    PICK_COMPRESS,
    PICK_DIGEST,
    PICK_GRAD
} pick_kind;

/* Makes sense of what was given.  Not CODE_DONE: said why not. */
int picks_prepare(picks *p, pick_kind kind, const char *cmd);
void picks_release(picks *p);
/* The first that matches the name, or NULL. */
const pick *picks_find(bool *no_memory, const picks *p, heft_str name);
/* The first for every tensor, or NULL. */
const pick *picks_of_all(const picks *p);
/* Warns of a pattern behind --OPTION that no tensor of the file matches; *no_memory is set when that cannot be told. */
void pattern_check(bool *no_memory, const heft_file *f, const char *path, const char *option,
                   const char *glob);
void pattern_warn(const char *path, const char *option, const char *glob);
/* The same for all of them. */
void picks_check(bool *no_memory, const picks *p, pick_kind kind, const heft_file *f,
                 const char *path);

/* ---- --compress and --digest together ---- */

typedef struct storing {
    picks compress, digest;
    bool no_memory; /* for a name: storing_choose() says something then that ends the conversion */
} storing;

/* Sets what holds for every tensor in *o. */
int storing_prepare(storing *s, const char *cmd, heft_write_options *o);
bool storing_is_given(const storing *s);
/* For heft_convert_options; ctx is the storing. */
bool storing_choose(void *ctx, const heft_tensor *t, heft_str role, heft_storage *how);
/* What is said, and how it ends, once no_memory is set. */
int storing_say_no_memory(const char *path);
void storing_check(storing *s, const heft_file *f, const char *path);
void storing_release(storing *s);

#endif
