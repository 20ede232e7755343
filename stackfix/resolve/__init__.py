"""Choose the stack from the matrix, then resolve its closure from the index. Pure over records and Protocols."""
