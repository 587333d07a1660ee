/* candidates.h - words that may end a command line, written for a shell. */
#ifndef HEFT_CLI_CANDIDATES_H
#define HEFT_CLI_CANDIDATES_H
#include "options/opt.h"
#include "text/outbuf.h"

typedef enum shell {
    SHELL_BASH, /* quoted words, each on a line */
    SHELL_ZSH,  /* words and descriptions, each with a zero byte behind */
    SHELL_FISH  /* a word, a tab, the description, a zero byte */
} shell;

/* The word that is completed, and facts from the words before. */
typedef struct candidates {
    outbuf *o;
    shell shell;
    heft_str before;           /* stands before each candidate in the word: "--to=" */
    heft_str typed;            /* the rest of the word: candidates begin with this text */
    size_t kept;               /* bytes of both together that bash does not replace */
    char quote;                /* the open quotation, by shell_unquote() */
    uint32_t count;            /* candidates written so far */
    const char *file, *target; /* the first argument and the value of --to, or NULL */
    const char *key;           /* the value of --key, or NULL */
    session session;           /* the file is opened in it */
    bool options_ended;        /* by -- */
} candidates;

/* Announce the kind of the candidates: "words"; "stems", words that go on; "files" and "folders",
 * candidates that only the shell has. */
void candidates_begin(candidates *c, const char *what);
/* Write a candidate that begins with the typed text, if the shell can complete the candidate. */
void candidates_add(candidates *c, heft_str word, const char *description);
/* Write the values of an option. */
void candidates_of_option(candidates *c, const opt *option);
/* Write the values of argument i, by the arguments of the usage: "FILE [GLOB...]". */
void candidates_of_argument(candidates *c, const char *args, size_t i);

enum { COMPLETE_SHELL = 2, COMPLETE_KEPT, COMPLETE_FIRST_WORD }; /* arguments of __complete */

/* Complete the last word of argv: "heft __complete SHELL KEPT WORD...". SHELL is bash, zsh or fish;
 * of the last word bash keeps the first KEPT bytes. Each word is quoted as typed,
 * "heft" left out; fish passes the words before the last without quotation. Prints nothing on
 * stderr, and gives up after some seconds. Return an exit code. */
int complete_run(int argc, char **argv);

#endif
