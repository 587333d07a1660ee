// Limits that the page and its worker share.

export const MOST_TENSORS = 4096; // tensors of a sample of values

// The form of a model to open: that of its decoded tensors if it seems to have quantised ones.
export const IF_QUANTISED = "if quantised";
