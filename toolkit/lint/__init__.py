"""Static checks of the compile-safe boundary of custom operators in a training code base."""
