/* losses.h - what a writer says about things its format has no place for. */
#ifndef HEFT_LOSSES_H
#define HEFT_LOSSES_H
#include "format/format.h"

/* heft_plan_loss() with a text made as heft_error_set() makes it, in the plan's arena. */
heft_status heft_loss_report(heft_plan *p, heft_severity s, const char *rule, uint32_t tensor,
                             const char *fmt, ...);
/* A fault of a tensor that is left out, and why. */
heft_status heft_loss_tensor(heft_plan *p, const char *rule, uint32_t tensor, const char *why);
/* The same: its element type has no place in `where`, "GGUF"; and the cast that helps, if one does. */
heft_status heft_loss_type(heft_plan *p, const char *rule, uint32_t tensor, const char *where);
/* A scalar gets the shape [1], with a warning, since `where`, "GGUF", has no scalars. */
heft_status heft_loss_scalar(heft_plan *p, const char *rule, uint32_t tensor, const char *where);
/* A warning for each part of the file itself, the vocabulary included, but the one of the role `kept`,
 * which may be NULL. */
heft_status heft_loss_parts(heft_plan *p, const char *rule, const char *kept);
typedef struct heft_text_losses {   /* what a format of text metadata reports */
    const char *left_out, *as_text; /* rules */
    const char *where, *version;    /* "zTensor ", "1.0" */
} heft_text_losses;
/* Turn a metadata value into its text (heft_value_text()), with a note when the value was not a text.  *kept false: the
 * value has no text, or its key is not UTF-8, and the value is left out with a warning. */
heft_status heft_loss_as_text(bool *kept, heft_plan *p, heft_value *v, heft_text_losses say);
/* A fault: a length field of `where`, "an EMBD file", has no room for the key, or for the text (`what`: "value").  With
 * --allow-loss the value is left out. */
heft_status heft_loss_length(heft_plan *p, const char *rule, heft_str key, const char *what,
                             uint64_t bytes, uint64_t most, const char *where);
/* A warning for each top-level metadata value. */
heft_status heft_loss_metadata(heft_plan *p, const char *rule);
/* A warning for each kind of per-tensor attribute that some tensor has and no flag of `kept`
 * (HEFT_T_...) names.  Ids that follow from the name are no loss. */
heft_status heft_loss_attributes(heft_plan *p, const char *rule, uint8_t kept);
/* The same, where some attributes beside those flags are carried. */
heft_status heft_loss_attributes_except(heft_plan *p, const char *rule, uint8_t kept,
                                        bool (*is_kept)(const heft_value *));
/* Whether a tensor is dense and of one part: what a format of (name, type, shape, bytes) takes. */
bool heft_loss_is_plain(const heft_index *x, uint32_t tensor);

#endif
