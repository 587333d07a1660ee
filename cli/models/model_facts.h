/* model_facts.h - facts about a model in metadata and the model card: licence, base models, ... */
#ifndef HEFT_CLI_MODEL_FACTS_H
#define HEFT_CLI_MODEL_FACTS_H
#include "models/model.h"
#include "models/model_card.h"

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
