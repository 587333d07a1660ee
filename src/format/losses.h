/* losses.h - reports losses in the same words for every format. */
#ifndef HEFT_LOSSES_H
#define HEFT_LOSSES_H
#include "format/format.h"

/* Call heft_plan_loss() with a text formatted as by heft_error_set(), stored in the plan's
 * arena. */
heft_status heft_loss_report(heft_plan *p, heft_severity s, const char *rule, uint32_t tensor,
                             const char *fmt, ...);
/* Drop a tensor and report a fault; `why` is the message, to which the way on is added where the
 * target lacks the layout of a quantised tensor. */
heft_status heft_loss_tensor(heft_plan *p, const char *rule, uint32_t tensor, const char *why);
/* Drop a tensor with an element type that `where` ("GGUF") does not support; the message suggests a
 * cast if possible. */
heft_status heft_loss_type(heft_plan *p, const char *rule, uint32_t tensor, const char *where);
/* Convert the indices of a sparse tensor to the type that the format stores, with a note; an edit
 * converts nothing. */
heft_status heft_loss_index_type(heft_plan *p, const char *rule, uint32_t tensor,
                                 heft_ix_part_row *part, heft_dtype to);
/* Give a scalar the shape [1], with a warning that `where` ("GGUF") has no scalars. */
heft_status heft_loss_scalar(heft_plan *p, const char *rule, uint32_t tensor, const char *where);
/* Warn about each part of the model as a whole, including the vocabulary, except the part with the
 * role `kept` (may be NULL).  `where` ("a .mag file") is the target in the message. */
heft_status heft_loss_parts(heft_plan *p, const char *rule, const char *kept, const char *where);
typedef struct heft_text_losses {   /* for a format with text-only metadata */
    const char *left_out, *as_text; /* rules of the reports */
    const char *where, *version;    /* shown in messages: "zTensor ", "1.0" */
} heft_text_losses;
/* Convert a metadata value to text (heft_value_text()), with a note if the value was not text.  Set
 * *kept to false, with a warning, for a value without a text form, or a key that is not UTF-8. */
heft_status heft_loss_as_text(bool *kept, heft_plan *p, heft_value *v, heft_text_losses losses);
/* Report a fault: the length field of `where` ("an EMBD file") is limited to `limit` bytes, but the
 * key or value (`what`) has `bytes`.  With --allow-loss the metadata is left out. */
heft_status heft_loss_length(heft_plan *p, const char *rule, heft_str key, const char *what,
                             uint64_t bytes, uint64_t limit, const char *where);
/* Warn about each top-level metadata value: `where` ("an .npy file") stores no metadata. */
heft_status heft_loss_metadata(heft_plan *p, const char *rule, const char *where);
/* Warn about each kind of tensor attribute that some tensor has, unless `kept` has the flag
 * (HEFT_T_...).  Base ids derived from the name are not a loss. */
heft_status heft_loss_attributes(heft_plan *p, const char *rule, uint8_t kept);
/* Same, with a function that returns true for each further attribute that is stored. */
heft_status heft_loss_attributes_except(heft_plan *p, const char *rule, uint8_t kept,
                                        bool (*is_kept)(const heft_value *));
/* Return true if a tensor is dense with a single part: fully described by name, type, shape and
 * bytes. */
bool heft_loss_is_plain(const heft_index *x, uint32_t tensor);

/* ---- stores tensor attributes as text metadata ---- */

/* Add an entry to the plan's metadata for each attribute.  Call after all tensors have been dropped
 * that will not be written. */
heft_status heft_attributes_to_metadata(heft_plan *p);
/* Warn about attributes that heft_attributes_to_metadata() does not store. */
heft_status heft_loss_attributes_beyond_metadata(heft_plan *p, const char *rule);
/* Replace the entries by attributes, after all tensors have been added to x.  Builds the name table
 * of x if there are any entries. */
heft_status heft_attributes_from_metadata(heft_index *x);

#endif
