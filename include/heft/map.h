/* map.h - a model under the names and in the layout of another framework.  The general rules of
 * heft.h apply.
 *
 * A map is a text with rules, docs/maps.md: which tensors of one framework make which tensors of
 * another.  Applying a map gives a file like any other; its tensors are gathered from those of the
 * input when they are read.
 *
 * Stability: provisional. */
#ifndef HEFT_MAP_H
#define HEFT_MAP_H
#include <heft/companion.h>
#include <heft/gguf_texts.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- maps --------------------------------------------------------------------------------- */

/* A map.  Several threads may use one map at the same time. */
typedef struct heft_map heft_map;

/* Parse the text of a map, which is copied.  host: NULL for the default; it must outlive the map.
 *   HEFT_E_FORMAT    a line is invalid; the message has its number
 *   HEFT_E_NOTFOUND  the map uses one that is not shipped
 *   HEFT_E_LIMIT     more than 4096 rules and statements */
HEFT_API HEFT_MUST_CHECK heft_status heft_map_parse(heft_map **out, heft_str text,
                                                    const heft_host *host, heft_error *err);
/* Close a map; files that were made with it stay valid.  NULL is ignored. */
HEFT_API void heft_map_close(heft_map *m);

/* The header of a map.  Strings are borrowed from the map; empty: nothing. */
typedef struct heft_map_info {
    heft_str name, title;
    heft_str from, to;     /* the frameworks of both sides */
    heft_str models;       /* values of "model_type" in config.json, separated by spaces */
    heft_str architecture; /* "general.architecture" in GGUF files */
} heft_map_info;
/* Return the header of a map. */
HEFT_API heft_map_info heft_map_describe(const heft_map *m);

/* Return the text of shipped map i; ptr NULL after the last.  Static. */
HEFT_API heft_str heft_map_shipped(uint32_t i);
/* Parse the shipped map of that name.  HEFT_E_NOTFOUND: there is none. */
HEFT_API HEFT_MUST_CHECK heft_status heft_map_open(heft_map **out, heft_str name,
                                                   const heft_host *host, heft_error *err);
/* Open the shipped map for a model: by "model_type" of config, or by "general.architecture" of the
 * file.  Of several, the one that matches the most tensors.
 *   HEFT_E_NOTFOUND  the model says nothing of its type, or no shipped map is for it */
HEFT_API HEFT_MUST_CHECK heft_status heft_map_open_for(heft_map **out, const heft_file *f,
                                                       const heft_settings *config,
                                                       heft_error *err);

/* ---- mapped models ------------------------------------------------------------------------ */

typedef enum heft_map_direction {
    HEFT_MAP_EITHER, /* the side of the map that matches more tensors is the input */
    HEFT_MAP_FORWARD,
    HEFT_MAP_INVERSE
} heft_map_direction;

typedef struct heft_map_options {
    size_t size;                 /* = sizeof(heft_map_options) */
    const heft_settings *config; /* config.json of the model, or NULL */
    heft_map_direction direction;
    bool allow_unmatched; /* tensors that no rule matches keep their names */
    bool verify; /* compare the stored checksums of rearranged tensors first, by reading them */
    uint8_t reserved[2]; /* 0; for further choices */
    /* Called for a result that a `tie` statement of the map names, and that is left out if it has
     * the content of the result `first` (is_same); or NULL. */
    void (*on_tied)(void *ctx, heft_str name, heft_str first, bool is_same);
    /* Called for each tensor that no rule matches, with allow_unmatched too; or NULL. */
    void (*on_unmatched)(void *ctx, heft_str name);
    /* Called for each tensor that the map leaves out by a `drop` rule; or NULL. */
    void (*on_dropped)(void *ctx, heft_str name);
    /* Called for the pattern of an `expect` statement that no tensor matches, although the settings
     * say that the model has such a tensor; or NULL. */
    void (*on_missing)(void *ctx, heft_str pattern);
    void *ctx;
    /* Metadata that replace or add to those of f, and tensors that f lacks; must outlive *out.
     * NULL: none. */
    const heft_gguf_metadata *gguf;
    /* Texts made of f: metadata that they state are left out.  NULL: all metadata are kept. */
    const heft_gguf_texts *texts;
} heft_map_options;
#define HEFT_MAP_OPTIONS_INIT                                                                   \
    {                                                                                           \
        sizeof(heft_map_options), NULL, HEFT_MAP_EITHER, false, false, { 0 }, NULL, NULL, NULL, \
            NULL, NULL, NULL, NULL                                                              \
    }

/* Open the model that f is under the map.  All metadata of f are kept.  f must outlive *out, the
 * map need not.  No data are read before the tensors of *out are, except by opt->verify, and
 * of results that may be tied.
 *   HEFT_E_FORMAT       a tensor matches two rules, or none; two tensors would have one name; one
 *                       that a rule needs is missing; a shape does not fit
 *   HEFT_E_NOTFOUND     the model does not state a number that a rule needs
 *   HEFT_E_UNSUPPORTED  the layout, the compression or the blocks of a tensor prevent a rule */
HEFT_API HEFT_MUST_CHECK heft_status heft_map_apply(heft_file **out, const heft_map *m,
                                                    const heft_file *f, const heft_map_options *opt,
                                                    heft_error *err);
/* Return the direction that HEFT_MAP_EITHER chooses for f. */
HEFT_API heft_map_direction heft_map_side(const heft_map *m, const heft_file *f);
/* Write the name that a tensor has on the other side to `to`, which has `bytes`, and return its
 * length; there is no NUL.  from: the side of the name.  0: no rule has the name, the rule does
 * more than rename, the name is too long, or memory ran out. */
HEFT_API size_t heft_map_rename(char *to, size_t bytes, const heft_map *m, heft_map_direction from,
                                heft_str name);

#ifdef __cplusplus
}
#endif
#endif
