/* opt.h - describe a command's options in a table, for parsing and for --help.
 *
 * This room reads the command line: options, operands, patterns and assignments, completion, and
 * the run of a command. Commands themselves are in commands. */
#ifndef HEFT_CLI_OPT_H
#define HEFT_CLI_OPT_H
#include <stddef.h>

#include "models/model_view.h"
#include "process/command_session.h"
#include "process/textfile.h"

typedef enum opt_kind {
    OPT_FLAG,      /* bool */
    OPT_TEXT,      /* const char * */
    OPT_MAYBE,     /* const char *, "" without a value: --name[=VALUE] */
    OPT_FILE,      /* const char *, path of a file to read */
    OPT_MODEL,     /* const char *, path of a model to read */
    OPT_OUTPUT,    /* const char *, path of a file to write; - is stdout */
    OPT_RECORDS,   /* const char *, beginning of the paths of files to read: STEM.1, STEM.2, ... */
    OPT_PROFILE,   /* const char *, path or name of a profile to read */
    OPT_SECRET,    /* secret, path of a file to read before the sandbox begins */
    OPT_LIST,      /* opt_list; the option may be repeated */
    OPT_MODELS,    /* opt_list of pairs: path of a model to read, and the NUMBER of MODEL=NUMBER or
                    * ""; the option may be repeated */
    OPT_KEY_FILES, /* opt_list of KEY=FILE, with files to read; the option may be repeated */
    OPT_CHOICE,    /* unsigned, number of one of the `words` */
    OPT_COUNT,     /* uint32_t, from `least` to `most` */
    OPT_TENSOR_FILES, /* opt_list of NAME=FILE[:NAME], with models to read */
    OPT_NUMBER,       /* uint64_t, decimal */
    OPT_SIZE,         /* uint64_t in bytes: 500, 500MB, 2GiB */
    OPT_REAL          /* double, not negative */
} opt_kind;

/* Things that a value names; completion offers their words. */
typedef enum opt_names {
    NAMES_NOTHING, /* nothing that completion knows, or one of the option's words */
    NAMES_DTYPE,
    NAMES_DTYPE_OF,     /* GLOB=DTYPE */
    NAMES_DECODED,      /* an element type of decoded tensors */
    NAMES_QUANTISATION, /* GLOB=NAME: a scheme, or a mix of GGUF */
    NAMES_ENCODING,     /* GLOB=ENCODING, as the following */
    NAMES_DIGEST,
    NAMES_LAYOUT, /* a layout of sparse tensors */
    NAMES_STATE,  /* of training */
    NAMES_FORMAT,
    NAMES_VERSION, /* a version of the format */
    NAMES_GLOB,
    NAMES_TENSOR, /* TENSOR=TEXT */
    NAMES_VIEW,   /* TENSOR=DTYPE */
    NAMES_ROLE,
    NAMES_KEY,       /* a key of the metadata */
    NAMES_KEY_TO_SET /* KEY=VALUE */
} opt_names;

/* The member that an option sets, of the command's request or of the session, and its values: any,
 * words with spaces between, the numbers from `least` to `most`, or what they name. */
#define AT(type, member)             offsetof(type, member), false, NULL, 0, 0, NAMES_NOTHING
#define AT_WORD(type, member, words) offsetof(type, member), false, words, 0, 0, NAMES_NOTHING
#define AT_NAME(type, member, names) offsetof(type, member), false, NULL, 0, 0, names
#define SETTING(member)              offsetof(session, member), true, NULL, 0, 0, NAMES_NOTHING
#define SETTING_NAME(member, names)  offsetof(session, member), true, NULL, 0, 0, names
#define SETTING_WORD(member, words)  offsetof(session, member), true, words, 0, 0, NAMES_NOTHING
#define SETTING_COUNT(member, least, most) \
    offsetof(session, member), true, NULL, least, most, NAMES_NOTHING

typedef struct opt {
    const char *name; /* "keep" for --keep */
    char letter;      /* 'l' for -l, or 0 */
    opt_kind kind;
    size_t offset;     /* the place of a member with the type that opt_kind says */
    bool is_setting;   /* a member of the session, not of the request */
    const char *words; /* the only values, or NULL */
    uint32_t least, most;
    opt_names names;
    const char *value; /* name of the value in --help, or NULL */
    const char *help;
} opt;

#define OPT_TITLE "" /* instead of a name: `help` is the title of the options that follow */

typedef struct shared_opt { /* an option in a table that commands share */
    unsigned commands;      /* their bits */
    opt opt;
} shared_opt;

/* Options of every command, listed after the command's own. */
typedef enum opt_common {
    COLOR,
    MESSAGES,
    KEY,
    VIEW,
    ACCESS,
    MAX_TENSORS,
    MAX_BYTES,
    THREADS,
    QUIET,
    NO_VERIFY,
    OFFLINE,
    FOLLOW_LINKS,
    NO_SANDBOX,
    HELP,
    COMMON
} opt_common;
#define WITHOUT(option) (1u << (option))

/* Set the session and its request and arguments by the words after the command's name; no file is
 * looked at.
 * Return false, with the exit code in *code, if the command must not run: an error was printed, or
 * the help that was asked for. */
bool opt_parse(session *s, int *code, int argc, char **argv);
/* Cut FILE[:NAME]: return the malloc'ed path, NULL without memory.  *name points behind a colon of
 * the text, or is NULL: a file with all of the text as its name is that file. */
char *opt_tensor_file(const char *text, const char **name);
/* Return option i of the command, its own first, or NULL after the last. */
const opt *opt_at(const command *c, size_t i);
/* Same, with the rows that are titles. */
const opt *opt_row_at(const command *c, size_t i);
/* Return the member that the option sets. */
void *opt_target(const session *s, const opt *o);
/* Find an option by the spelling between `word` and `end`: "--long", also abbreviated.
 * NULL: unknown or ambiguous. */
const opt *opt_find_long(const command *c, const char *word, const char *end);
const opt *opt_find_letter(const command *c, int letter);
/* Return true if an option of the command sets this member of the session. */
bool opt_sets(const command *c, size_t member);
static inline bool opt_wants_value(const opt *o)
{
    return o->kind != OPT_FLAG && o->kind != OPT_MAYBE;
}
/* Free the lists. */
void opt_release(const session *s);

/* ---- which tensors a listing shows, and in which order ---- */

typedef struct listing_order {
    const char *sort; /* --sort, or NULL */
    opt_list dtypes;  /* --dtype; empty: all */
    uint64_t limit;   /* --limit; 0: none */
} listing_order;

/* Refuse an unknown element type, unless a slash makes it that of a quantised tensor. Return an
 * exit code. */
int listing_order_check(const listing_order *l, const char *cmd);
/* Keep the tensors of the element types and sort them; apply no limit. Warn if no tensor is left.
 * Return false without memory, after an error line. */
bool listing_order_apply(selection *s, const listing_order *l, const model_view *v,
                         const char *path);

/* ---- keys and passwords, read before the sandbox begins ---- */

typedef struct secret { /* target of an OPT_SECRET option */
    const char *path;   /* NULL: not given */
    heft_str text;
    struct secret *password; /* password of an encrypted key, or NULL */
} secret;

/* Read all files of OPT_SECRET options, and ask for the password of an encrypted key without a
 * password file. Return an exit code. */
int secrets_read(const session *s);
/* Overwrite and free the text. */
void secret_free(secret *s);

#endif
