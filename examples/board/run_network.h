/* run_network.h - a network of two dense layers whose weights are tensors of a file. */
#ifndef RUN_NETWORK_H
#define RUN_NETWORK_H
#include <heft/heft.h>

/* Run the layers "dense.1" and "dense.2" and print the outputs; return 1 if the file does not have
 * them. */
int run_network(const heft_file *f);

#endif
