/* model_card.h - the metadata of a model card: the YAML at the beginning of README.md. */
#ifndef HEFT_CLI_MODEL_CARD_H
#define HEFT_CLI_MODEL_CARD_H
#include "models/model.h"
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

/* ---- facts about a model in metadata and the model card ---- */

/* Metadata of the file come first. Of a fact with one value the model card counts if the file says
 * nothing; other facts are joined, without repetitions. */
typedef struct model_facts {
    model_card card; /* owns texts, as the file does */
    heft_str name, version, task, library;
    card_list licences, bases, datasets, languages;
    heft_str licence_link; /* of the licence with a name of its own; http or https, or empty */
} model_facts;

/* Collect the facts about the model that was opened from `path`. Release with model_facts_free().
 * Return an exit code. */
int model_facts_find(model_facts *out, const heft_file *f, const char *path);
void model_facts_free(model_facts *facts);
/* Append a text, unless it is empty, repeated, or the list is full. */
void card_list_add(card_list *to, heft_str value);

#endif
