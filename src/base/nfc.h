/* nfc.h - a check for text that is not in Unicode normalization form C, with small tables. */
#ifndef HEFT_NFC_H
#define HEFT_NFC_H
#include <heft/heft.h>

/* Return true if UTF-8 text is certainly not in form C: the text has a character that form C
 * replaces, marks that are not in the order of their combining classes, or two characters that form
 * C composes.  On false the text is in form C, or the violation would only be found by decomposing
 * characters (U+1E61 U+0323). */
bool heft_str_breaks_nfc(heft_str text);

#endif
