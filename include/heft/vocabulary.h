/* vocabulary.h - vocabularies: the tokens of a model.  The general rules of heft.h apply.
 *
 * Several threads may read one vocabulary at the same time.  Text given to a parser is copied.  A
 * parser fails with HEFT_E_FORMAT for text that is malformed.  host NULL: heft_host_default(); the
 * host must outlive the vocabulary.
 *
 * Stability: provisional. */
#ifndef HEFT_VOCABULARY_H
#define HEFT_VOCABULARY_H
#include <heft/heft.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- vocabulary --------------------------------------------------------------------------- */

typedef enum heft_special { HEFT_PAD, HEFT_UNK, HEFT_CLS, HEFT_SEP, HEFT_MASK } heft_special;
enum { HEFT_SPECIALS = 5 };

/* Copy the vocabulary of a file.  HEFT_E_NOTFOUND: the file has no vocabulary. */
HEFT_API HEFT_MUST_CHECK heft_status heft_vocab_open(heft_vocab **out, const heft_file *f,
                                                     heft_error *err);
/* Parse a vocabulary with one token per line (vocab.txt). */
HEFT_API HEFT_MUST_CHECK heft_status heft_vocab_parse_lines(heft_vocab **out, heft_str text,
                                                            const heft_host *host, heft_error *err);
/* Parse a tokenizer.json.  HEFT_E_FORMAT also if ids are not 0, 1, 2, ... or not unique. */
HEFT_API HEFT_MUST_CHECK heft_status heft_vocab_parse_json(heft_vocab **out, heft_str text,
                                                           const heft_host *host, heft_error *err);
/* Close a vocabulary.  NULL is ignored. */
HEFT_API void heft_vocab_close(heft_vocab *v);
/* Return the number of tokens; ids are below this number. */
HEFT_API uint32_t heft_vocab_count(const heft_vocab *v);
/* Return the token with that id, borrowed from v. */
HEFT_API heft_str heft_vocab_at(const heft_vocab *v, uint32_t id);
/* Return the lowest id of a token with that text, or HEFT_NONE. */
HEFT_API uint32_t heft_vocab_find(const heft_vocab *v, heft_str token);
/* Return the id of a special token: the id stored in the file, else the id of the token [PAD],
 * [UNK], [CLS], [SEP] or [MASK], else HEFT_NONE. */
HEFT_API uint32_t heft_vocab_special(const heft_vocab *v, heft_special s);
/* Set the id of a special token; HEFT_NONE removes the special token. */
HEFT_API void heft_vocab_set_special(heft_vocab *v, heft_special s, uint32_t id);
/* Return the name of a special token, "pad" or "unk". */
HEFT_API const char *heft_vocab_special_name(heft_special s);

#ifdef __cplusplus
}
#endif
#endif
