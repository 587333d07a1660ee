/* config_text.h - the text of a config.json without what it says of quantisation. */
#ifndef HEFT_CONFIG_TEXT_H
#define HEFT_CONFIG_TEXT_H
#include "base/out.h"
#include "grammar/json.h"

enum { HEFT_CONFIG_CUTS = 16 };
typedef struct heft_config_text {
    heft_str text;
    heft_range cut[HEFT_CONFIG_CUTS]; /* left out, in ascending order */
    uint32_t cuts;
    size_t end;       /* end of the last member of the outer object that is kept, or of its brace */
    bool has_members; /* the outer object keeps some */
    heft_json j;      /* while the text is read */
} heft_config_text;

/* Return true for keys that say how weights are stored. */
bool heft_is_about_quantisation(heft_str key);
/* Find the members with such keys in an object, and those that are objects in objects inside of it,
 * such as "text_config".  The text must outlive *c.  HEFT_E_FORMAT: it is not an object in JSON. */
heft_status heft_config_text_read(heft_config_text *c, heft_str text, const heft_allocator *al,
                                  heft_error *err);
/* Write [from, to) of the text without these members. */
void heft_config_text_put(heft_out *o, const heft_config_text *c, size_t from, size_t to);

#endif
