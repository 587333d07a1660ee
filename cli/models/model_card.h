/* model_card.h - the metadata of a model card: the YAML at the beginning of README.md. */
#ifndef HEFT_CLI_MODEL_CARD_H
#define HEFT_CLI_MODEL_CARD_H
#include "process/cmd.h"

typedef enum card_field {
    CARD_LICENCES,
    CARD_LICENCE_NAME,
    CARD_LICENCE_LINK,
    CARD_TASK,
    CARD_LIBRARY,
    CARD_LANGUAGES,
    CARD_DATASETS,
    CARD_BASE_MODELS,
    CARD_FIELDS
} card_field;

enum { CARD_VALUES = 256 };
typedef struct card_list { /* texts that are not empty */
    heft_str value[CARD_VALUES];
    uint32_t count;
} card_list;

typedef struct model_card {
    char *text; /* owned; the values are in it */
    card_list field[CARD_FIELDS];
} model_card;

/* Read README.md in the folder; without one, or without metadata in it, all lists are empty. What
 * is not understood is a warning with the line. Release with model_card_free(). Return an exit
 * code. */
int model_card_read(model_card *out, const char *folder);
void model_card_free(model_card *card);

#endif
