// Limits that the page and its worker share.

export const MOST_TENSORS = 4096; // tensors of a sample of values
