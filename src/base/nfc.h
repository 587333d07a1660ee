/* nfc.h - Unicode's normalization form C, as far as a small table proves that a text is not in it. */
#ifndef HEFT_NFC_H
#define HEFT_NFC_H
#include <heft/heft.h>

/* Whether a text in UTF-8 is certainly not in form C: it holds a character that the form replaces, marks that are not
 * in the order of their combining classes, or two characters that the form joins.  false: it is in form C, or differs from
 * it in a way that needs the decomposition of its characters to tell (U+1E61 U+0323). */
bool heft_str_breaks_nfc(heft_str text);

#endif
