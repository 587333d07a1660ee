/* keyed.c - the numbers that names are multiplied with. */
#include "base/keyed.h"

void heft_keyed_begin(heft_keyed *key)
{
    for (uint32_t i = 0; i < sizeof key->times / sizeof *key->times; i++) {
        uint8_t number[4] = { (uint8_t)i };
        key->times[i] = heft_siphash13(key->secret, number, sizeof number);
    }
}
