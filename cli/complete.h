/* complete.h - `heft __complete`, for shells: print the words that may end a command line. */
#ifndef HEFT_CLI_COMPLETE_H
#define HEFT_CLI_COMPLETE_H

enum { COMPLETE_SHELL = 2, COMPLETE_KEPT, COMPLETE_FIRST_WORD }; /* arguments of __complete */

/* Complete the last word of argv: "heft __complete SHELL KEPT WORD...". SHELL is bash, zsh or fish;
 * of the last word bash keeps the first KEPT bytes. Each word is quoted as typed,
 * "heft" left out; fish passes the words before the last without quotation. Prints nothing on
 * stderr, and gives up after some seconds. Return an exit code. */
int complete_run(int argc, char **argv);

#endif
