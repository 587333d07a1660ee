/* companion.h - companion texts, the text files next to the weights: vocabularies, settings, profiles.  heft.h
 * includes this header and has the rules. */
#include <heft/heft.h> /* before the guard: heft.h includes this header, ahead of write.h, which needs it */
#ifndef HEFT_COMPANION_H
#define HEFT_COMPANION_H

#ifdef __cplusplus
extern "C" {
#endif

/* ---- vocabulary --------------------------------------------------------------------------- */

typedef struct heft_vocab heft_vocab;
typedef enum heft_special { HEFT_PAD, HEFT_UNK, HEFT_CLS, HEFT_SEP, HEFT_MASK } heft_special;
enum { HEFT_SPECIALS = 5 };

/* The vocabulary of a file, in memory of its own; HEFT_E_NOTFOUND when the file has none. */
HEFT_API HEFT_MUST_CHECK heft_status heft_vocab_open(heft_vocab **out, const heft_file *f,
                                                     heft_error *err);
/* From a text with a token on each line, a vocab.txt, or from a tokenizer.json.  host may be NULL. */
HEFT_API HEFT_MUST_CHECK heft_status heft_vocab_parse_lines(heft_vocab **out, heft_str text,
                                                            const heft_host *host, heft_error *err);
HEFT_API HEFT_MUST_CHECK heft_status heft_vocab_parse_json(heft_vocab **out, heft_str text,
                                                           const heft_host *host, heft_error *err);
HEFT_API void heft_vocab_close(heft_vocab *v); /* NULL is harmless */
HEFT_API uint32_t heft_vocab_count(const heft_vocab *v);
/* Lives as long as v. */
HEFT_API heft_str heft_vocab_token(const heft_vocab *v, uint32_t id);
/* The first token of that spelling, or HEFT_NONE. */
HEFT_API uint32_t heft_vocab_find(const heft_vocab *v, heft_str token);
/* Its id: as the file has it, else that of the token [PAD], [UNK], [CLS], [SEP] or [MASK]; or
 * HEFT_NONE. */
HEFT_API uint32_t heft_vocab_special(const heft_vocab *v, heft_special s);
HEFT_API void heft_vocab_set_special(heft_vocab *v, heft_special s, uint32_t id);
HEFT_API const char *heft_vocab_special_name(heft_special s); /* "pad", … */

/* ---- settings ----------------------------------------------------------------------------- */

/* Texts, numbers and truth values at the top level of a JSON object, such as a config.json, in
 * their order.  Numbers that are no integers are HEFT_KIND_STR, as they are written. */
typedef struct heft_settings heft_settings;
HEFT_API HEFT_MUST_CHECK heft_status heft_settings_parse_json(heft_settings **out, heft_str text,
                                                              const heft_host *host,
                                                              heft_error *err);
HEFT_API void heft_settings_close(heft_settings *s); /* NULL is harmless */
HEFT_API size_t heft_settings_count(const heft_settings *s);
HEFT_API heft_value heft_settings_at(const heft_settings *s, size_t i);
HEFT_API bool heft_settings_find(heft_value *out, const heft_settings *s, const char *key);
/* The same and what is nested: a flat list as that of heft_meta_at(), in which a container, HEFT_KIND_MAP or
 * HEFT_KIND_LIST, stands before its children.  The first child of value i is i + 1; behind value i, children
 * included, comes heft_settings_next(s, i).  null is HEFT_KIND_NULL.  A document of more than 2^20 values, or
 * more than 64 levels, is HEFT_E_LIMIT. */
HEFT_API uint32_t heft_settings_value_count(const heft_settings *s); /* one past the last value */
HEFT_API heft_value heft_settings_value_at(const heft_settings *s, uint32_t i);
HEFT_API uint32_t heft_settings_next(const heft_settings *s, uint32_t i);
/* The value at a path of keys and, in lists, of numbers from 0 on, with dots between: "config.layers.0.kind"; or
 * HEFT_NONE.  Of keys with dots in them the longest one counts that the path begins with. */
HEFT_API uint32_t heft_settings_find_path(const heft_settings *s, const char *path);

/* ---- profiles ----------------------------------------------------------------------------- */

/* What a file has to hold to be a certain model: docs/profiles.md. */
typedef struct heft_profile heft_profile;
HEFT_API HEFT_MUST_CHECK heft_status heft_profile_parse_json(heft_profile **out, heft_str text,
                                                             const heft_host *host,
                                                             heft_error *err);
HEFT_API void heft_profile_close(heft_profile *p); /* NULL is harmless */
HEFT_API heft_str heft_profile_name(const heft_profile *p);
/* One finding for each thing that is missing or wrong, of the rules profile/...; they are added to
 * those that out has counted. */
HEFT_API HEFT_MUST_CHECK heft_status heft_profile_check(heft_verify_result *out,
                                                        const heft_profile *p, const heft_file *f,
                                                        heft_finding_fn fn, void *ctx,
                                                        heft_error *err);

#ifdef __cplusplus
}
#endif
#endif
